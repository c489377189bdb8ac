"""Measurements: what a test observes and waits for, by ClusterLoader2's method names.

Here belongs one file for each method that is simulated, mirroring clusterloader2/pkg/measurement/common, and the table
of them (`methods`). What needs a container that really runs, a Prometheus or a shell on a node is skipped, with the
reason that `skipped` has for it; the executor says so in the run's record.
"""

from __future__ import annotations

from harness.clusterloader.measurements.methods import METHODS

__all__ = ["METHODS"]
