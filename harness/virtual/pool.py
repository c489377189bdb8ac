"""Members of the emulated apiserver over one store, all on one virtual clock."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from harness.apiserver.clock import VirtualClock
from harness.apiserver.member import Member
from harness.apiserver.options import MemberOptions
from harness.apiserver.store.client import LocalStore
from harness.apiserver.store.core import StoreCore
from harness.apiserver.store.etcd import EtcdModel, EtcdOptions
from harness.apiserver.store.replicated import ReplicatedStore

ADMIN_TOKEN = "secret-token"  # noqa: S105  # nobody outside this process can show it to anybody
STARTED_WITHIN_S = 60.0


class VirtualPool:
    """Started members. `options` are fields of `MemberOptions`, the same for all, and `of_member` those of one, by
    name; `etcd` overrides the model of the store, whose lag a member's own etcd has behind the leader's. Raises
    AssertionError where members do not start within a minute of virtual time."""

    def __init__(
        self,
        members: int = 1,
        *,
        seed: int = 1,
        etcd: EtcdOptions | None = None,
        of_member: Mapping[str, Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> None:
        self.clock = VirtualClock()
        self._options = {"admin_token": ADMIN_TOKEN, **options}
        names = [f"member-{index}" for index in range(members)]
        self.core = StoreCore()
        self.store = ReplicatedStore(self.core, EtcdModel(names, Random(seed), etcd), self.clock)
        self.members: list[Member] = []
        started = [self._make(name, name, (of_member or {}).get(name, {})) for name in names]
        end = self.clock.now() + STARTED_WITHIN_S
        while not all(promise.done for promise in started) and self.clock.now() < end:
            self.clock.advance(1.0)
        assert all(promise.done for promise in started), f"members did not start in {STARTED_WITHIN_S:g} s"
        for promise in started:
            promise.result()

    @property
    def member(self) -> Member:
        """The first."""
        return self.members[0]

    def join(self, name: str, **options: Any) -> Member:
        """One more member, beside the first one's etcd; it is ready some time later."""
        self._make(name, self.member.options.name, options)
        return self.members[-1]

    def close(self) -> None:
        for member in self.members:
            member.stop()
        self.store.close()

    def _make(self, name: str, etcd: str, options: Mapping[str, Any]) -> Any:
        settings = MemberOptions(name=name, **{**self._options, **options})
        member = Member(settings, self.clock, LocalStore(self.store, etcd, self.clock))
        self.members.append(member)
        return member.start()
