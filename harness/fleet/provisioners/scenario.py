"""The claims of a run: made at a rate, followed until each is bound, and where asked deleted again.

One machine, as the cluster's administrator: a namespace, the provisioners' rights, a storage class of their driver,
then the claims. It watches
them (one informer of its namespace) and takes a claim for bound when its status says so, as a user would. It ends when
all are bound and the provisioners have had `settle_s` to finish, or, with `delete`, when every volume is gone.

Keys: ("setup", n), ("claim", n), ("delete", n), ("claims", part) and ("volumes", part) of informers, ("tick",) of
progress, ("begin",), ("arrival",), ("settled",), ("cap",).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Literal

import msgspec

from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Disarm,
    Event,
    Failed,
    Finished,
    Fired,
    Note,
    Sample,
    Send,
)
from harness.client.reflector import Output, Reflector
from harness.client.requests import (
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    ResourceRef,
    create_,
    delete_,
)
from harness.client.store import Change, Changed, ObjectView, decoder_for
from harness.fleet.claimnotes import PROVISIONED_BY
from harness.fleet.context import Out
from harness.fleet.controllers.api import STORAGECLASSES
from harness.wire.errors import ConfigError
from harness.wire.request import Request

ACCOUNT = "system:serviceaccount:kube-system:csi-provisioner"
"""Who the provisioners are; the scenario gives it its rights."""
ACCOUNT_GROUPS = ("system:serviceaccounts", "system:serviceaccounts:kube-system")
RIGHTS = (
    ("", ("events", "nodes", "persistentvolumes", "persistentvolumeclaims")),
    ("storage.k8s.io", ("csinodes", "storageclasses", "volumeattachments")),
    ("coordination.k8s.io", ("leases",)),
)
"""API groups and resources of ep/deploy/kubernetes/rbac.yaml, of which verbs do not matter here."""
PROGRESS_S = 1.0
KEPT_FAILURES = 20
_IN_FLIGHT = 100  # creations and deletions at once, as a client without a limit would have few more of


@dataclass(frozen=True, slots=True)
class ClaimsOptions:
    """Times in seconds."""

    claims: int = 100
    rate: float = 0.0
    """Claims made a second; 0: all at once."""
    arrival: Literal["even", "poisson"] = "even"
    """How they are spread at that rate."""
    delete: bool = False
    """Whether the claims are deleted once all are bound, and the run goes on until their volumes are gone."""
    settle_s: float = 10.0
    """How long the run goes on after that, for what provisioners still have to write."""
    begin_s: float = 15.0
    """How long provisioners have to find a leader and to fill their informers, once they have their rights."""
    most_s: float = 7200.0
    """After how long it gives up."""
    driver: str = "csi.swarmlet.io"
    namespace: str = "claims"
    storage_class: str = "swarmlet-csi"
    size: str = "1Gi"
    labels: tuple[tuple[str, str], ...] = ()
    """On everything that is made."""

    def __post_init__(self) -> None:
        if self.claims < 1:
            raise ConfigError(f"claims: {self.claims} is less than 1")
        for name in ("rate", "settle_s", "begin_s", "most_s"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"claims: {name}={getattr(self, name):g} is not 0 or more")


class Phase(Enum):
    SETUP = "namespace and storage class"
    WAITING = "until the provisioners are ready"
    BINDING = "until every claim is bound"
    DELETING = "until every volume is gone"
    SETTLING = "what is still to be written"
    OVER = "over"


class _Status(msgspec.Struct, gc=False):
    phase: str = ""


class _Claim(ObjectView, gc=False):
    status: _Status = msgspec.field(default_factory=_Status)


class _Notes(msgspec.Struct, gc=False):
    annotations: dict[str, str] | None = None
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Volume(msgspec.Struct, gc=False):
    metadata: _Notes


class ClaimsScenario:
    """A machine. Samples: ``claim_bound_ms`` from the answer to a claim's creation to its being seen bound,
    ``volume_deleted_ms`` from the answer to a claim's deletion to its volume's end. Notes: ``phase-started``,
    ``claims-progress`` with how many were created, bound and deleted, ``claims-bound``, ``claims-deleted``."""

    def __init__(self, options: ClaimsOptions, rng: Random) -> None:
        self._options = options
        self._rng = rng
        self.phase = Phase.SETUP
        self._setups = [_namespace(options), *_rights(options), _storage_class(options)]
        self._next = 0  # the claim to be created or deleted next
        self._flying = 0
        self._due = 0  # how many have appeared
        self._arrives_at = self._began_at = 0.0
        self._created: dict[str, float] = {}  # by name, when that was answered
        self._bound: dict[str, float] = {}  # by name, how long it took
        self._deleted_at: dict[str, float] = {}  # by uid of the claim
        self._volumes_gone = 0
        self._told = (0, 0, 0)
        self._failures: list[str] = []
        self._failed = 0
        claims = decoder_for(_Claim)
        self._claims = Reflector(
            "claims", PERSISTENTVOLUMECLAIMS, options.namespace, "", "", rng, decode=claims
        )
        self._volumes = Reflector(
            "volumes", PERSISTENTVOLUMES, None, "", "", rng, decode=decoder_for(_Volume)
        )

    def __repr__(self) -> str:
        return f"ClaimsScenario({self.phase.name.lower()}, created={len(self._created)}, bound={len(self._bound)})"

    @property
    def bound(self) -> int:
        return len(self._bound)

    # ---- the machine -------------------------------------------------------------------------------------------------
    def start(self, now: float) -> list[Action]:
        return [Arm(("cap",), now + self._options.most_s), Send(("setup", 0), self._setups[0])]

    def stop(self, now: float) -> list[Action]:
        out: Out = [Disarm((key,)) for key in ("cap", "tick", "begin", "arrival", "settled")]
        if self.phase is not Phase.OVER:
            for reflector in (self._claims, self._volumes):
                self._take(reflector.stop(now), now, out)
        return out

    def handle(self, event: Event, now: float) -> list[Action]:
        out: Out = []
        part = event.key[0]
        if self.phase is Phase.OVER:
            return out
        if part in ("claims", "volumes"):
            reflector = self._claims if part == "claims" else self._volumes
            self._take(reflector.handle(event, now), now, out)
            self._advance(now, out)
        elif isinstance(event, Fired):
            self._fired(str(part), now, out)
        elif isinstance(event, Answered | Failed):
            self._answered(event, now, out)
        return out

    def _fired(self, part: str, now: float, out: Out) -> None:
        if part == "cap":
            self._give_up(now, out)
        elif part == "tick":
            self._tell_progress(now, out)
            out.append(Arm(("tick",), now + PROGRESS_S))
        elif part == "begin":
            self._begin(now, out)
        elif part == "arrival":
            self._due += 1
            self._arrive(now, out)
            self._create(out)
        elif part == "settled":
            self._finish(now, out)

    # ---- setting up --------------------------------------------------------------------------------------------------
    def _answered(self, event: Answered | Failed, now: float, out: Out) -> None:
        part, index = event.key[0], event.key[1]
        assert isinstance(index, int)
        if part == "setup":
            self._set_up(index, event, now, out)
            return
        self._flying -= 1
        if part == "claim":
            name = _name(index)
            if _ok(event, 409):
                self._created[name] = now
                self._see_bound(name, now, out)
            else:
                self._fail(f"claim {name} was not created: {_why(event)}")
            self._create(out)
        else:
            if not _ok(event, 404):
                self._fail(f"claim {_name(index)} was not deleted: {_why(event)}")
            self._delete(out)
        self._advance(now, out)

    def _set_up(self, index: int, event: Answered | Failed, now: float, out: Out) -> None:
        """What is there already serves as well."""
        if not _ok(event, 409):
            self._fail(f"{self._setups[index].name} could not be made: {_why(event)}")
            self._finish(now, out)
        elif index + 1 < len(self._setups):
            out.append(Send(("setup", index + 1), self._setups[index + 1]))
        else:
            self._take(self._claims.start(now), now, out)
            if self._options.delete:
                self._take(self._volumes.start(now), now, out)

    def _begin(self, now: float, out: Out) -> None:
        self.phase = Phase.BINDING
        self._began_at = self._arrives_at = now
        out.append(Note("phase-started", {"phase": "claims", "claims": self._options.claims}))
        out.append(Arm(("tick",), now + PROGRESS_S))
        if self._options.rate:
            self._arrive(now, out)
        else:
            self._due = self._options.claims
        self._create(out)

    # ---- claims ------------------------------------------------------------------------------------------------------
    def _arrive(self, now: float, out: Out) -> None:
        """When the next claim appears; the first at once."""
        if self._due >= self._options.claims:
            return
        out.append(Arm(("arrival",), max(now, self._arrives_at)))
        gap_s = 1.0 / self._options.rate
        self._arrives_at += (
            self._rng.expovariate(1.0 / gap_s) if self._options.arrival == "poisson" else gap_s
        )

    def _create(self, out: Out) -> None:
        while self.phase is Phase.BINDING and self._next < self._due and self._flying < _IN_FLIGHT:
            out.append(Send(("claim", self._next), _claim(self._options, self._next)))
            self._next += 1
            self._flying += 1

    def _delete(self, out: Out) -> None:
        while self._next < self._options.claims and self._flying < _IN_FLIGHT:
            request = delete_(PERSISTENTVOLUMECLAIMS, self._options.namespace, _name(self._next))
            out.append(Send(("delete", self._next), request))
            self._next += 1
            self._flying += 1

    def _take(self, outputs: list[Output], now: float, out: Out) -> None:
        for output in outputs:
            if not isinstance(output, Changed):
                out.append(output)
            elif output.key == "volumes":
                self._volume_changed(output, now, out)
            elif output.change is Change.DELETED:
                self._deleted_at[output.object.metadata.uid] = now
            elif output.change is not Change.REPLACED:
                self._see_bound(output.object.metadata.name, now, out)

    def _see_bound(self, name: str, now: float, out: Out) -> None:
        """Whichever comes last: the answer to its creation, or the event that shows it bound."""
        claim = self._claims.store.get(f"{self._options.namespace}/{name}")
        created = self._created.get(name)
        if claim is None or created is None or claim.status.phase != "Bound" or name in self._bound:
            return
        self._bound[name] = now - created
        out.append(Sample("claim_bound_ms", (now - created) * 1e3))

    def _volume_changed(self, changed: Changed, now: float, out: Out) -> None:
        if changed.change is not Change.DELETED:
            return
        notes = changed.object.metadata.annotations or {}
        name = changed.object.metadata.name.removeprefix("pvc-")
        if notes.get(PROVISIONED_BY) == self._options.driver and name in self._deleted_at:
            self._volumes_gone += 1
            out.append(Sample("volume_deleted_ms", (now - self._deleted_at[name]) * 1e3))

    # ---- phases ------------------------------------------------------------------------------------------------------
    def _advance(self, now: float, out: Out) -> None:
        if self.phase is Phase.SETUP:
            if self._claims.synced and (not self._options.delete or self._volumes.synced):
                self.phase = Phase.WAITING
                out.append(Arm(("begin",), now + self._options.begin_s))
        elif self.phase is Phase.BINDING and len(self._bound) + self._failed >= self._options.claims:
            self._all_bound(now, out)
        elif self.phase is Phase.DELETING and self._volumes_gone + self._failed >= self._options.claims:
            self._tell_progress(now, out)
            seconds = now - self._began_at
            out.append(Note("claims-deleted", {"deleted": self._volumes_gone, "seconds": seconds}))
            self._settle(now, out)

    def _all_bound(self, now: float, out: Out) -> None:
        self._tell_progress(now, out)
        times = sorted(self._bound.values())
        fields: dict[str, object] = {"bound": len(times), "seconds": now - self._began_at}
        if times:
            fields |= {"p50_s": _quantile(times, 0.5), "p99_s": _quantile(times, 0.99), "last_s": times[-1]}
        out.append(Note("claims-bound", fields))
        if self._options.delete and not self._failed:
            self.phase, self._next, self._began_at = Phase.DELETING, 0, now
            self._delete(out)
        else:
            self._settle(now, out)

    def _settle(self, now: float, out: Out) -> None:
        self.phase = Phase.SETTLING
        out.append(Arm(("settled",), now + self._options.settle_s))

    def _give_up(self, now: float, out: Out) -> None:
        total = self._options.claims
        done = f"{len(self._bound)} of {total} claims were bound"
        if self.phase is Phase.DELETING:
            done = f"{self._volumes_gone} of {total} volumes were deleted"
        self._fail(f"{done} after {self._options.most_s:g} s")
        self._finish(now, out)

    def _finish(self, now: float, out: Out) -> None:
        self._tell_progress(now, out)
        out += self.stop(now)
        self.phase = Phase.OVER
        failures = tuple(self._failures)
        if self._failed > len(failures):
            failures += (f"and {self._failed - len(failures)} more failures",)
        out.append(Finished(failures))

    def _fail(self, text: str) -> None:
        self._failed += 1
        if len(self._failures) < KEPT_FAILURES:
            self._failures.append(text)

    def _tell_progress(self, now: float, out: Out) -> None:
        """Only what has changed."""
        state = (len(self._created), len(self._bound), self._volumes_gone)
        if state != self._told:
            self._told = state
            fields: dict[str, object] = dict(zip(("created", "bound", "deleted"), state, strict=True))
            out.append(Note("claims-progress", fields))


def _quantile(ordered: list[float], q: float) -> float:
    """Nearest rank."""
    return ordered[max(0, -(-int(q * 100) * len(ordered) // 100) - 1)]


def _ok(event: Answered | Failed, also: int) -> bool:
    return isinstance(event, Answered) and (event.response.ok or event.response.status == also)


def _why(event: Answered | Failed) -> str:
    if isinstance(event, Failed):
        return str(event.error)
    return f"{event.response.status} {event.response.body[:200].decode('utf-8', 'replace')}"


def _name(index: int) -> str:
    return f"claim-{index:05d}"


def _made(
    options: ClaimsOptions, ref: ResourceRef, kind: str, name: str, namespace: str | None, **fields: object
) -> Request:
    version = f"{ref.group}/{ref.version}" if ref.group else ref.version
    metadata: dict[str, object] = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    if options.labels:
        metadata["labels"] = dict(options.labels)
    body = msgspec.json.encode({"kind": kind, "apiVersion": version, "metadata": metadata, **fields})
    return create_(ref, namespace, body)


def _namespace(options: ClaimsOptions) -> Request:
    return _made(options, NAMESPACES, "Namespace", options.namespace, None)


def _rights(options: ClaimsOptions) -> list[Request]:
    group, name = "rbac.authorization.k8s.io", "swarmlet-csi-provisioner"
    rules = [{"apiGroups": [api], "resources": resources, "verbs": ["*"]} for api, resources in RIGHTS]
    role = ResourceRef(group, "v1", "clusterroles")
    binding = ResourceRef(group, "v1", "clusterrolebindings")
    _, _, namespace, account = ACCOUNT.split(":")
    return [
        _made(options, role, "ClusterRole", name, None, rules=rules),
        _made(
            options,
            binding,
            "ClusterRoleBinding",
            name,
            None,
            roleRef={"apiGroup": group, "kind": "ClusterRole", "name": name},
            subjects=[{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        ),
    ]


def _storage_class(options: ClaimsOptions) -> Request:
    fields = {
        "provisioner": options.driver,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }
    return _made(options, STORAGECLASSES, "StorageClass", options.storage_class, None, **fields)


def _claim(options: ClaimsOptions, index: int) -> Request:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": options.size}},
        "storageClassName": options.storage_class,
    }
    ref, namespace = PERSISTENTVOLUMECLAIMS, options.namespace
    return _made(options, ref, "PersistentVolumeClaim", _name(index), namespace, spec=spec)
