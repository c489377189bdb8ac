"""Locust's distributed mode as a fleet needs it: where users are placed, which nodes they are, what became of a worker.

`placement` decides which worker runs which users, `nodes` which names their kubelets have, `roster` what the master
knows of each worker. What users do is elsewhere.
"""
