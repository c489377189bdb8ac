"""Provisioners, the binder and one emulated member in virtual time, and what they sent."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from harness.client.machine import Finished, Note, Sample
from harness.client.rest import Rest
from harness.fleet.controllers.informers import CLIENT as INFORMERS
from harness.fleet.controllers.manager import ControllerManager, ManagerOptions, manager_limiters
from harness.fleet.provisioners.options import PRESETS, ProvisionerOptions
from harness.fleet.provisioners.provisioner import Provisioner, provisioner_limiters
from harness.fleet.provisioners.scenario import ACCOUNT, ACCOUNT_GROUPS, ClaimsOptions, ClaimsScenario
from harness.virtual.observer import Call, Observer
from harness.virtual.pool import VirtualPool
from harness.virtual.world import Identity, World, account
from harness.wire.request import Response

NAMES = ("persistent-volume-binder", "pvc-protection-controller", "pv-protection-controller")


class ClaimsWorld(World):
    """`preset` and `options` are the provisioner's; `claims` how many are made at once, 15 s after all is set up."""

    def __init__(
        self,
        preset: str,
        claims: int,
        *,
        replicas: int = 1,
        seed: int = 1,
        delete: bool = False,
        most_s: float = 3600.0,
        delete_time: str = "constant:1",
        **options: Any,
    ) -> None:
        self.sent: Counter[str] = Counter()
        self.codes: Counter[int] = Counter()
        self.log: list[tuple[float, str, str, str]] = []
        self.samples: dict[str, list[float]] = {}
        self.notes: list[Note] = []
        self.ends: list[Finished] = []
        super().__init__(VirtualPool(1, seed=seed), seed=seed, observer=_Log(self))
        settings = ProvisionerOptions(**{**PRESETS[preset], "delete": delete_time, **options})
        self._add_manager(settings, seed)
        self.replicas = []
        for index in range(replicas):
            replica = Provisioner(f"p{index}", settings, Random(f"{seed}/{index}"), self.epoch_s)
            self.replicas.append(replica)
            rest = Rest(replica, provisioner_limiters(settings))
            self.add(rest, "provisioner", Identity(ACCOUNT, ACCOUNT_GROUPS))
        self.scenario = ClaimsScenario(
            ClaimsOptions(claims, delete=delete, most_s=most_s), Random(f"{seed}/claims")
        )
        self.add(self.scenario, "claims")

    def _add_manager(self, settings: ProvisionerOptions, seed: int) -> None:
        options = ManagerOptions(NAMES, provisioned_elsewhere=(settings.driver,))
        manager = ControllerManager(options, Random(f"{seed}/manager"), self.epoch_s)
        self.add(Rest(manager, manager_limiters(options)), "controllers", _controller)

    def run_to_the_end(self) -> None:
        assert self.run_until(lambda: bool(self.ends), 8000.0)
        self.close()

    @property
    def all_bound_s(self) -> float:
        """From the first claim's creation."""
        (note,) = [note for note in self.notes if note.kind == "claims-bound"]
        return float(str(note.fields["seconds"]))


class _Log(Observer):
    def __init__(self, world: ClaimsWorld) -> None:
        self._world = world

    def answered(self, call: Call, response: Response, seconds: float, error: str = "") -> None:
        if call.kind == "provisioner":
            self._world.sent[f"{call.request.verb} {call.request.name}"] += 1
            self._world.codes[response.status] += 1
            self._world.log.append((call.sent_at, call.request.verb, call.request.name, call.request.path))

    def sampled(self, kind: str, sample: Sample) -> None:
        self._world.samples.setdefault(f"{kind} {sample.name}", []).append(sample.value)

    def noted(self, kind: str, note: Note) -> None:
        self._world.notes.append(note)

    def finished(self, kind: str, end: Finished) -> None:
        self._world.ends.append(end)


def _controller(client: str) -> Identity:
    return Identity("system:kube-controller-manager") if client == INFORMERS else account(client)
