"""A client that leaves its retries to gRPC service config. Pays once, and prints the outcome as a JSON object.

Usage: service_config_client.py <port> <file of a service config> <request in hexadecimal digits> [<request id>]
"""

import json
import sys

import grpc

from payment_calls import create_payment


def main(port, service_config, request, request_id=None):
    with open(service_config, encoding="utf-8") as file:
        options = [("grpc.service_config", file.read())]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        print(json.dumps(create_payment(channel, bytes.fromhex(request), request_id)))


main(*sys.argv[1:])
