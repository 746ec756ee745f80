"""Calls a payments service with bytes, and tells what came back as plain values."""

import grpc

CREATE_PAYMENT = "/payments.v1.PaymentsService/CreatePayment"


def outcome(code, response, trailers):
    """One call as it ended; trailers are pairs of name and value, binary ones as bytes."""
    values = dict(trailers or ())
    return {
        "code": code.name,
        "bytes": None if response is None else response.hex(),
        "replayed": values.get("idempotent-replayed") == "true",
        "details": values.get("grpc-status-details-bin", b"").hex(),
    }


def create_payment(channel, request, request_id, compression=None):
    """Sends the bytes of a CreatePaymentRequest, without a key where that is None. Without serializers, bytes go out and
    come in as they are.
    """
    metadata = () if request_id is None else (("request-id", request_id),)
    call = channel.unary_unary(CREATE_PAYMENT, request_serializer=None, response_deserializer=None)
    try:
        response, ended = call.with_call(
            request, timeout=20, metadata=metadata, compression=compression
        )
        return outcome(ended.code(), response, ended.trailing_metadata())
    except grpc.RpcError as error:
        return outcome(error.code(), None, error.trailing_metadata())
