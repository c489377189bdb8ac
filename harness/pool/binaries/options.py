"""What only a pool of real apiservers is asked for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.pool.binaries.finding import find_programs, within
from harness.pool.binaries.flags import check_given
from harness.pool.stores import StoreOptions


class BinariesOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`folder` holds kube-apiserver, and kube-scheduler and kube-controller-manager if these are to be started; ""
    looks where Kubernetes' test tools look. The others are flags beside those that a pool passes, as ``name=value``; a
    later one replaces an earlier one of the same name, and the pool's default, which ``name=`` leaves out."""

    folder: str = ""
    apiserver_flags: tuple[str, ...] = ()
    scheduler_flags: tuple[str, ...] = ()
    controller_manager_flags: tuple[str, ...] = ()

    def validate(self, store: StoreOptions) -> None:
        """Raises ConfigError; where there is no kube-apiserver or no etcd too."""
        for option, given in self.by_option():
            check_given(option, given)
        find_programs(self.folder)
        self.etcd(store).validate({})

    def etcd(self, store: StoreOptions) -> StoreOptions:
        """The store that a real apiserver has: one member of etcd of the pool's own, where nothing else is said."""
        return msgspec.structs.replace(
            store,
            etcd_servers=store.etcd_servers or "binary",
            etcd_binary=store.etcd_binary or within(self.folder, "etcd"),
        )

    def by_option(self) -> Sequence[tuple[str, Sequence[str]]]:
        """The flags by the option that takes them."""
        return (
            ("--apiserver-flag", self.apiserver_flags),
            ("--scheduler-flag", self.scheduler_flags),
            ("--controller-manager-flag", self.controller_manager_flags),
        )
