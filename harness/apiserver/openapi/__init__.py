"""OpenAPI: what the types and paths of a member are, for clients that ask (kubectl explain, apply, create --validate).

Documents are made from the type trees (`harness.apiserver.schema`) and the rows of resources when they are first asked
for. Discovery documents do not belong here. Mirrors cm/pkg/handler3 (v3) and cm/pkg/handler (v2) of kube-openapi; what
the documents leave out is everything that no client of a cluster reads: responses beside success, enums, defaults.
"""

from harness.apiserver.openapi.documents import CustomType, OpenApi

__all__ = ["CustomType", "OpenApi"]
