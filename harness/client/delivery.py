"""Which writes and events are followed from the writer to those who watch, and under which key they meet.

A write is known by the revision that it made, which every event about it carries; a binding, whose answer names none,
by the pod's uid. Writer and watcher may be in different processes: each notes its own time under the same key, and
both choose by the key alone, so that they follow the same ones. Who notes and who joins is `harness.load`'s.
"""

from __future__ import annotations

from zlib import crc32


def followed(identity: str, one_of: int) -> bool:
    """Whether a revision or uid is among the one in `one_of` that are followed; 0 follows none, 1 all."""
    return one_of == 1 or (one_of > 1 and crc32(identity.encode()) % one_of == 0)


def revision_key(resource: str, resource_version: str) -> str:
    """Of an object's write. Revisions are one sequence for a whole cluster, except that events may be kept apart."""
    return f"{resource}/{resource_version}"


def binding_key(uid: str) -> str:
    """Of a pod's binding."""
    return f"binding/{uid}"
