"""Sends hand-assembled requests twice with one key each, and prints a JSON object: case -> [first, second] outcome.

Usage: foreign_bytes.py <port>
"""

import json
import sys
import uuid

import grpc

from payment_calls import create_payment

VARINT = 0
LENGTH_DELIMITED = 2


def varint(value):
    """An unsigned number, seven bits a byte, the lowest first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number(field, value):
    return varint(field << 3 | VARINT) + varint(value)


def text(field, value):
    content = value if isinstance(value, bytes) else value.encode()
    return varint(field << 3 | LENGTH_DELIMITED) + varint(len(content)) + content


def note(name, value):
    return text(5, text(1, name) + text(2, value))


def payment(order, amount=1250, notes=(("basket", "7"), ("shop", "berlin"))):
    """The fields of a CreatePaymentRequest in the order of their numbers."""
    fields = [text(1, order), number(2, amount), text(3, "EUR"), text(4, "tok_visa")]
    return fields + [note(name, value) for name, value in notes]


def cases():
    """Name of the case -> the two requests."""

    def order():
        return f"order-{uuid.uuid4()}"

    swapped, turned, empty, plain, unknown, large = (order() for _ in range(6))
    exact = 2**53
    return {
        "map entries swapped": (payment(swapped), payment(swapped, notes=(("shop", "berlin"), ("basket", "7")))),
        "fields reversed": (payment(turned), payment(turned)[::-1]),
        "default written": (
            payment(empty, notes=()) + [text(5, text(1, "gift"))],
            payment(empty, notes=()) + [note("gift", "")],
        ),
        "compressed": (payment(plain), payment(plain)),
        "another value of an unknown field": (payment(unknown) + [number(99, 1)], payment(unknown) + [number(99, 2)]),
        "amounts above 2^53": (payment(large, exact), payment(large, exact + 1)),
    }


def main(port):
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        outcomes = {}
        for name, (first, second) in cases().items():
            request_id = str(uuid.uuid4())
            compression = grpc.Compression.Gzip if name == "compressed" else None
            outcomes[name] = [
                create_payment(channel, b"".join(first), request_id),
                create_payment(channel, b"".join(second), request_id, compression),
            ]
        print(json.dumps(outcomes))


main(sys.argv[1])
