"""A client with real protobuf messages, made from a descriptor set: pays, retries, reuses the key for another amount.
Prints the outcomes as a JSON object, with what the ErrorInfo of the last one says.

Usage: stock_client.py <port> <file of a FileDescriptorSet> <request id> <order id>
"""

import json
import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from payment_calls import create_payment


def message_classes(path):
    """Full name -> class, for the types of a descriptor set. Its own copy of the well-known types is as good as any."""
    with open(path, "rb") as file:
        descriptors = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    pool = descriptor_pool.DescriptorPool()
    for file in descriptors.file:
        pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return lambda name: factory.GetPrototype(pool.FindMessageTypeByName(name))


def error_info(message_class, details):
    """Reason and domain of the ErrorInfo in the bytes of a google.rpc.Status."""
    status = message_class("google.rpc.Status").FromString(bytes.fromhex(details))
    for detail in status.details:
        if detail.type_url == "type.googleapis.com/google.rpc.ErrorInfo":
            info = message_class("google.rpc.ErrorInfo").FromString(detail.value)
            return {"reason": info.reason, "domain": info.domain}
    return None


def main(port, descriptor_set, request_id, order_id):
    message_class = message_classes(descriptor_set)
    request = message_class("payments.v1.CreatePaymentRequest")(
        order_id=order_id,
        amount_minor=1250,
        currency="EUR",
        payment_method="tok_visa",
        metadata={"basket": "7"},
    )
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        paid = create_payment(channel, request.SerializeToString(), request_id)
        retried = create_payment(channel, request.SerializeToString(), request_id)
        request.amount_minor += 1
        reused = create_payment(channel, request.SerializeToString(), request_id)
    response = message_class("payments.v1.CreatePaymentResponse").FromString(bytes.fromhex(paid["bytes"]))
    print(
        json.dumps(
            {
                "paid": paid,
                "paymentId": response.payment.payment_id,
                "retried": retried,
                "reused": reused,
                "errorInfo": error_info(message_class, reused["details"]),
            }
        )
    )


main(*sys.argv[1:])
