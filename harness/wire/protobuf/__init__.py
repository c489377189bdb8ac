"""Objects in ``application/vnd.kubernetes.protobuf``: bytes to the JSON-shaped dicts of the rest, and back.

Here belong the envelope, the wire format and a table of message types; what a kind means does not. Mirrored are
k8s.io/api and k8s.io/apimachinery of v1.36: field numbers are those of the ``protobuf:`` tags of their types, what is
left out of JSON follows the ``json:`` tags, the texts of errors are gogo/protobuf's. The table holds what clients write
to the served resources and the lists of them, not every kind that Kubernetes has.
"""

from harness.wire.protobuf.decoding import decode_object
from harness.wire.protobuf.encoding import encode_object
from harness.wire.protobuf.wireformat import MAGIC, ProtobufError, UnknownKind

__all__ = ["MAGIC", "ProtobufError", "UnknownKind", "decode_object", "encode_object"]
