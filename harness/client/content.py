"""In which encoding a client speaks: what client-go sets as ContentType and AcceptContentTypes.

Bodies are made as JSON and turned into protobuf here where that is asked for; answers are told apart where they are
decoded (`harness.wire.objectviews`). Patches have a content type of their own and stay JSON, as upstream.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from harness.wire.errors import ConfigError
from harness.wire.objectviews import PROTOBUF
from harness.wire.protobuf import UnknownKind, encode_object
from harness.wire.request import JSON, Request

ContentType: TypeAlias = Literal["auto", "protobuf", "json"]
"""``protobuf``: bodies in protobuf, answers as the server prefers among protobuf and JSON; what a kubelet does.
``auto``: the same answers, bodies in JSON, which every server takes. ``json``: JSON both ways, as a client without
generated types."""

CONTENT_TYPES: tuple[ContentType, ...] = ("auto", "protobuf", "json")
ACCEPT = f"{PROTOBUF},{JSON}"


def check_content_type(value: str) -> None:
    """Raises ConfigError."""
    if value not in CONTENT_TYPES:
        raise ConfigError(f"content_type={value!r} is not known; allowed are {', '.join(CONTENT_TYPES)}")


def prepared(request: Request, content: ContentType) -> Request:
    """`request` as a client of this content type sends it."""
    if content == "json" or request.accept != JSON:
        return request
    if content == "protobuf" and request.content_type == JSON and request.body:
        try:
            body = encode_object(msgspec.json.decode(request.body))
        except UnknownKind:  # a kind without generated types: JSON, as a dynamic client
            pass
        else:
            return msgspec.structs.replace(request, accept=ACCEPT, body=body, content_type=PROTOBUF)
    return msgspec.structs.replace(request, accept=ACCEPT)
