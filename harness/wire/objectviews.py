"""Small views of objects, from whichever encoding the server chose: JSON, or protobuf in its envelope."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from harness.wire.protobuf import MAGIC, ProtobufError
from harness.wire.protobuf.views import ViewDecoder, split_list

T = TypeVar("T")
PROTOBUF = "application/vnd.kubernetes.protobuf"


class ListMeta(
    msgspec.Struct, gc=False, rename={"resource_version": "resourceVersion", "continue_token": "continue"}
):
    resource_version: str = ""
    continue_token: str = ""


class _ListBody(msgspec.Struct, gc=False):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None  # Go writes null for a nil slice


_decode_list = msgspec.json.Decoder(_ListBody).decode


def view_decoder(view: type[T]) -> Callable[[bytes], T]:
    """A decode function that raises msgspec.DecodeError for what is not a `view`, in either encoding. Decoders are not
    small: keep one for each view."""
    from_json = msgspec.json.Decoder(view).decode
    from_protobuf = ViewDecoder(view).decode

    def decode(body: bytes) -> T:
        if body[:4] != MAGIC:
            return from_json(body)
        try:
            return from_protobuf(body)
        except ProtobufError as error:
            raise msgspec.DecodeError(str(error)) from error

    return decode


def decode_list(body: bytes) -> tuple[ListMeta, list[bytes]]:
    """A list's metadata and the bytes of its items. Raises msgspec.DecodeError."""
    if body[:4] != MAGIC:
        found = _decode_list(body)
        return found.metadata, [bytes(item) for item in found.items or ()]
    try:
        metadata, items = split_list(body)
    except ProtobufError as error:
        raise msgspec.DecodeError(str(error)) from error
    return msgspec.convert(metadata, ListMeta), items
