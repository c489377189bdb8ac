"""Figures of a fleet's arithmetic that no bench of ours measures on the spot, each with its origin.

What an operation costs a real kube-apiserver is `harness.apiserver.model.costs`; docs/plan.md explains what is done
with all of these.
"""

from __future__ import annotations

# ---- a worker --------------------------------------------------------------------------------------------------------
WORKER_CORE = 0.7
"""Of the one core that a Locust process can use, what a fleet at rest may take: Locust warns above 90 % (runners.py,
CPU_WARNING_THRESHOLD), and what is left is for the next relist or restart of a member."""
TRIED_KUBELETS = 5000
"""Kubelets in one process that were run and looked at (docs/benchmarks.md); more is arithmetic."""
MEMORY_HEADROOM = 1.5
"""Limit over need: a process that restarts all its watches at once holds old and new ones, and Python gives memory back
late."""
LOCUST_BYTES = 70_000_000
"""What a worker of Locust's has beyond the load process of a bench, which is no whole Locust: 136 MB of resident memory
before its first kubelet, against 67."""
LEADER_BYTES = 256 << 20
"""What the worker that leads the scenario may need besides: it watches the scenario's objects. Which one that is,
Locust decides. An estimate."""

# ---- the master ------------------------------------------------------------------------------------------------------
MASTER_CORE_A_WORKER = 0.002
"""Measured with 50 workers of 50 kubelets each, which report each second: 0.05 cores at rest, 0.07 while 50 kubelets a
second are spawned, 0.16 in the 5 s in which all workers begin; this is the last one, the scraper's share aside."""
MASTER_CORE = 0.05
"""Scraper and record, at one scrape of three members each 5 s."""
MASTER_BYTES = 350 << 20
"""Locust's master with what the record needs, 190 MB, and the scraper beside it, 155 MB: resident, in a run of 50
kubelets on three members."""

# ---- requests at rest ------------------------------------------------------------------------------------------------
BOOKMARK_EVERY_S = 60.0
"""Of each watch, about once a minute: as/pkg/storage/cacher/cacher.go, defaultBookmarkFrequency."""
LEASE_EVERY_S = 10.0 * 1.02
"""leaseDurationSeconds / 4, jittered by up to 4 %; see harness/fleet/options.py."""
STATUS_EVERY_S = 300.0
"""nodeStatusReportFrequency: a status that says nothing new."""

# ---- bytes on the wire -----------------------------------------------------------------------------------------------
# Bodies as this fleet sends them and as an apiserver answers, in JSON. Around each: a frame's head (9), TLS (22), IP
# and TCP with timestamps (52), the peer's acknowledgement (52); of a request also HPACK's indexed headers (about 60).
FRAMED_BYTES = 135
REQUEST_BYTES = 2 * (FRAMED_BYTES + 60)
LEASE_BYTES = 430 + 700 + REQUEST_BYTES
STATUS_BYTES = 375 + 4000 + REQUEST_BYTES + 4000 + FRAMED_BYTES
"""The patch, its answer, and the event that the node itself watches."""
BOOKMARK_BYTES = 130 + FRAMED_BYTES
EVENT_BYTES = 1200 + FRAMED_BYTES
"""Of a small secret or configmap."""
OPEN_WATCH_BYTES = 1600 + 4 * FRAMED_BYTES
"""The request, the answer's head, one small object, the bookmark that ends the initial events."""
HANDSHAKE_BYTES = 6000
"""TLS 1.3 with a client's certificate, and SETTINGS."""

# ---- servers ---------------------------------------------------------------------------------------------------------
NODE_BYTES = 4000
"""A node's Node, CSINode and Lease in JSON. An emulated member holds them once, a real one three times that, as the
model has it (docs/model.md)."""
REAL_FACTOR = 3
ETCD_BYTES = 100 << 20
"""An etcd with some ten thousand small objects; the store and the supervisor of an emulated pool take 31 and 46 MB."""
EMULATED_BYTES = 45_000_000
"""A member's process with an empty store, resident."""
EMULATED_WATCH_BYTES = 3_410
"""Of it for each open watch, TLS and HTTP/2 included: 3.33 KB (docs/design.md)."""
EMULATED_LEASE_S = 330e-6
"""CPU of a member for a lease's renewal: member/lease put of benchmarks/results."""
EMULATED_EVENT_S = 3e-6
"""CPU of a member for an event or bookmark to one watcher: serving/watch/event of benchmarks/results."""
EMULATED_OPEN_S = 250e-6
"""CPU of a member for a watch-list of one secret: member/watch-list of one secret of benchmarks/results."""
