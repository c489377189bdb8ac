"""The label by which what a run made is found again.

Nodes and the objects of a scenario carry it, namespaces and signing requests too. A node's lease and CSINode follow
it by their ownerReferences, and what lies in a namespace goes with that.
"""

from __future__ import annotations

RUN_LABEL = "swarmlet.io/run"


def labels_of(run: str) -> dict[str, str]:
    """Of an object that the run `run` makes; none for a run without a name."""
    return {RUN_LABEL: run} if run else {}
