"""YAML files that a user gives, read as Kubernetes' Go programs read them, into structs, with mistakes that name file,
line and value.

What belongs here: text of files, YAML, places in it, keys to fields. What does not: what any key means
(`harness.clusterloader`, `harness.kperf`). Mirrors sigs.k8s.io/yaml, go-yaml v2 and encoding/json.
"""
