"""The structure of every kind: which fields an object may have, of which types, and how its lists merge.

Here belongs what is known about types as such. What reads bodies by it, defaults, validates or stores objects does
not. Upstream compiles this into Go structs and publishes it as OpenAPI (kk/api/openapi-spec); here it is read, by kind
and on first need, from the text of the installed Kubernetes client's generated models, which come from that same
OpenAPI document. What those leave out (how lists merge, which strings are quantities) is a table of ours.
"""

from harness.apiserver.schema.builtin import schema_for, structure_of
from harness.apiserver.schema.structural import schema_from_openapi
from harness.apiserver.schema.tree import Schema

__all__ = ["Schema", "schema_for", "schema_from_openapi", "structure_of"]
