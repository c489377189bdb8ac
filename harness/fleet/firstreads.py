"""How long a pod's way to each secret, configmap and token is, and how often it was refused on that way.

A pod that came to this node before the API server's authorizer knew of it is answered 403 until it does; this is where
that shows. Kept for a pod from its being heard of until it runs. An object that was there already is read at once, and
counts too: a pod does wait for nothing then.
"""

from __future__ import annotations

from collections.abc import Hashable

from harness.client.delivery import binding_key, followed
from harness.client.machine import Sample, Seen
from harness.fleet.context import Context, Out

TOKENS = "tokens"


class _Way:
    """One pod on its way; `had` are the objects and tokens that it has read."""

    __slots__ = ("had", "heard_at", "refused_at")

    def __init__(self, now: float) -> None:
        self.heard_at = now
        self.had: set[Hashable] = set()
        self.refused_at = -1.0  # the last 403 to a token request


class FirstReads:
    """Samples: ``first_read_ms`` from hearing of the pod (labels kind, member, refused: whether a 403 came meanwhile),
    ``first_read_403s``, one for each such answer (kind, member). Of one pod in `follow_one_of` also `Seen`:
    ``binding_heard_ms`` (member) and ``binding_to_read_ms`` (kind, member), both from the binding's write."""

    __slots__ = ("_context", "_ways")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ways: dict[str, _Way] = {}

    def __len__(self) -> int:
        return len(self._ways)

    def begin(self, uid: str, member: str, now: float, out: Out) -> None:
        """This kubelet hears of the pod, from `member`."""
        self._ways[uid] = _Way(now)
        if followed(uid, self._context.options.follow_one_of):
            out.append(Seen(binding_key(uid), "binding_heard_ms", (("member", member),)))

    def forget(self, uid: str) -> None:
        """The pod runs, or never will."""
        self._ways.pop(uid, None)

    def read(
        self, uid: str, what: Hashable, kind: str, member: str, refused_at: float, now: float, out: Out
    ) -> None:
        """The pod has `what` (a secret or configmap's name, a token's audience); `refused_at`: the last 403 to it."""
        way = self._ways.get(uid)
        if way is None or what in way.had:
            return
        way.had.add(what)
        refused = (
            "yes" if max(refused_at, way.refused_at if kind == TOKENS else -1.0) >= way.heard_at else "no"
        )
        labels = (("kind", kind), ("member", member))
        out.append(Sample("first_read_ms", (now - way.heard_at) * 1000.0, (*labels, ("refused", refused))))
        if followed(uid, self._context.options.follow_one_of):
            out.append(Seen(binding_key(uid), "binding_to_read_ms", labels))

    def token_refused(self, uid: str, member: str, now: float, out: Out) -> None:
        """A token request of the pod was answered 403."""
        way = self._ways.get(uid)
        if way is not None:
            way.refused_at = now
            out.append(refusal(TOKENS, member))


def refusal(kind: str, member: str) -> Sample:
    """One answer 403 on the way to a first read."""
    return Sample("first_read_403s", 1.0, (("kind", kind), ("member", member)))
