"""Benchmarks of whole processes: how much of this machine a fleet of a given size takes.

Belongs here: what `swarmlet bench` starts, what it puts on the emulated control plane, what it measures from outside
(memory, CPU, counters of the members) and how it is shown. Does not belong here: how a fleet runs (`harness.load`),
what single parts cost (the repository's ``benchmarks``), and loads that answer a question about Kubernetes, which are
scenarios.
"""
