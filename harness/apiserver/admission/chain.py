"""The plugins in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.apiserver.admission.attributes import Attributes, Operation
from harness.apiserver.admission.lifecycle import NamespaceLifecycle
from harness.apiserver.admission.plugins import (
    default_tolerations,
    taint_new_node,
)
from harness.apiserver.admission.priorities import CLASSES, PriorityClasses
from harness.apiserver.admission.serviceaccount import ServiceAccounts

SyncPlugin = Callable[[Attributes], None]
Plugins = Mapping[Operation, Mapping[tuple[str, str], Sequence[SyncPlugin]]]
"""By operation, group and resource."""


class Admission:
    """`create` may wait (for a namespace or a service account to become visible); `update` and `delete` do not.

    `restrict` is NodeRestriction, which looks at every write of a node's; `more` are the plugins of single resources,
    by operation, group and resource, which are asked about subresources too.
    """

    def __init__(
        self,
        lifecycle: NamespaceLifecycle,
        accounts: ServiceAccounts,
        restrict: SyncPlugin,
        priorities: PriorityClasses,
        more: Plugins | None = None,
    ) -> None:
        self._lifecycle = lifecycle
        self._accounts = accounts
        self._restrict = restrict
        of_classes = {CLASSES: (priorities.admit_class,)}
        self._of_create = {**of_classes, **(more or {}).get(Operation.CREATE, {})}
        self._of_update = {**of_classes, **(more or {}).get(Operation.UPDATE, {})}
        self._creation: dict[str, Sequence[SyncPlugin]] = {
            "pods": (priorities.admit_pod, default_tolerations),
            "nodes": (taint_new_node,),
        }

    async def create(self, attributes: Attributes) -> None:
        """Raises StatusError; changes `attributes.new` in place."""
        if attributes.namespace:
            await self._lifecycle.admit_create(attributes)
        self._restrict(attributes)
        resource = attributes.resource
        for plugin in self._of_create.get((resource.group, resource.resource), ()):
            plugin(attributes)
        if attributes.subresource or resource.group:
            return
        if attributes.resource.resource == "pods":
            await self._accounts.admit(attributes)
        for plugin in self._creation.get(attributes.resource.resource, ()):
            plugin(attributes)

    def update(self, attributes: Attributes) -> None:
        self._restrict(attributes)
        resource = attributes.resource
        for plugin in self._of_update.get((resource.group, resource.resource), ()):
            plugin(attributes)

    def delete(self, attributes: Attributes) -> None:
        self._lifecycle.admit_delete(attributes)
        self._restrict(attributes)
