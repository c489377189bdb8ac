"""Custom resources: CustomResourceDefinitions, and the objects of the kinds that they define.

Mirrors k8s.io/apiextensions-apiserver (`ae/` in comments): validation and controllers of definitions, structural
schemas (pruning, defaults, validation), and a handler that serves whatever is established. What a CEL rule
(``x-kubernetes-validations``) says is not evaluated, webhooks do not convert, and schemas under allOf, anyOf, oneOf and
not validate but do not prune, as upstream.
"""
