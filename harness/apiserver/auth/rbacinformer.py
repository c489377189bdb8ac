"""What keeps an `Rbac` up to date: the member's own informers of roles and bindings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from harness.apiserver.auth.bootstrappolicy import GROUP
from harness.apiserver.auth.rbac import KINDS, Rbac
from harness.apiserver.auth.rules import decode_binding, decode_role
from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.clock import Clock
from harness.apiserver.informer import Followed, Following
from harness.wire.watching import DELETED


class RbacInformer:
    """`follow` begins; `synced` once all four kinds have been read through. Until then the bootstrap policy holds, so
    that health checks are answered from the first moment on."""

    def __init__(self, clock: Clock, rbac: Rbac) -> None:
        self._clock = clock
        self._rbac = rbac
        self._informers: list[Following] = []

    @property
    def synced(self) -> bool:
        return bool(self._informers) and all(informer.synced for informer in self._informers)

    def follow(self, cachers: Mapping[str, Followed]) -> None:
        """`cachers` by group resource."""
        for kind in KINDS:
            cacher = cachers[f"{kind}.{GROUP}"]
            changed = self._binding_changed if kind.endswith("bindings") else self._role_changed
            listed = partial(self._listed, cacher, kind)
            self._informers.append(Following(self._clock, cacher, changed, listed))
        for informer in self._informers:
            informer.start()

    def stop(self) -> None:
        for informer in self._informers:
            informer.stop()

    def _role_changed(self, event: str, obj: CachedObject) -> None:
        if event == DELETED:
            self._rbac.drop_role((obj.namespace, obj.name))
        else:
            self._rbac.put_role(decode_role(obj.body))

    def _binding_changed(self, event: str, obj: CachedObject) -> None:
        if event == DELETED:
            self._rbac.drop_binding((obj.namespace, obj.name))
        else:
            self._rbac.put_binding(decode_binding(obj.body))

    def _listed(self, cacher: Followed, kind: str, keys: set[str]) -> None:
        """What is known and was not listed has gone."""
        namespaced = cacher.resource.namespaced
        roles, bindings = self._rbac.keys()
        known = bindings if kind.endswith("bindings") else roles
        drop = self._rbac.drop_binding if kind.endswith("bindings") else self._rbac.drop_role
        for namespace, name in known:
            if bool(namespace) == namespaced and cacher.resource.key(namespace, name) not in keys:
                drop((namespace, name))
