"""An existing control plane before, during and after a run: its members, our rights there, what a run leaves behind.

Belongs here: what Locust's master or a command asks of a cluster on its own account, a few requests at a time. Does not
belong here: load (`harness.load.users`), and how a cluster is reached (`harness.load.connect`). Nothing here imports
locust.
"""
