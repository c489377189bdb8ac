"""Who a request is from and whether it may: bearer tokens, impersonation, RBAC and the node authorizer with its graph.

Mirrors k8s.io/apiserver pkg/authentication and pkg/authorization, and kubernetes plugin/pkg/auth. What is asked of an
object before it is written is `admission`."""
