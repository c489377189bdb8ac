"""The plugins in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.apiserver.admission.attributes import Attributes
from harness.apiserver.admission.lifecycle import NamespaceLifecycle
from harness.apiserver.admission.plugins import (
    default_tolerations,
    priority,
    taint_new_node,
)
from harness.apiserver.admission.serviceaccount import ServiceAccounts

SyncPlugin = Callable[[Attributes], None]


class Admission:
    """`create` may wait (for a namespace or a service account to become visible); `update` and `delete` do not.

    `restrict` is NodeRestriction, which looks at every write of a node's.
    """

    def __init__(
        self, lifecycle: NamespaceLifecycle, accounts: ServiceAccounts, restrict: SyncPlugin
    ) -> None:
        self._lifecycle = lifecycle
        self._accounts = accounts
        self._restrict = restrict
        self._creation: dict[str, Sequence[SyncPlugin]] = {
            "pods": (priority, default_tolerations),
            "nodes": (taint_new_node,),
        }

    async def create(self, attributes: Attributes) -> None:
        """Raises StatusError; changes `attributes.new` in place."""
        if attributes.namespace:
            await self._lifecycle.admit_create(attributes)
        self._restrict(attributes)
        if attributes.subresource or attributes.resource.group:
            return
        if attributes.resource.resource == "pods":
            await self._accounts.admit(attributes)
        for plugin in self._creation.get(attributes.resource.resource, ()):
            plugin(attributes)

    def update(self, attributes: Attributes) -> None:
        self._restrict(attributes)

    def delete(self, attributes: Attributes) -> None:
        self._lifecycle.admit_delete(attributes)
        self._restrict(attributes)
