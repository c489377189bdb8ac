"""POST pods/eviction: a deletion that disruption budgets must allow (kk/pkg/registry/core/pod/storage/eviction.go)."""

from __future__ import annotations

from typing import Protocol

import msgspec

from harness.apiserver.admission import Attributes, Operation
from harness.apiserver.admission.chain import Admission
from harness.apiserver.apierrors import forbidden
from harness.apiserver.cache.watchcache import Listing
from harness.apiserver.deletion import Deletion
from harness.apiserver.handlers.call import Answer, Call, Object
from harness.apiserver.handlers.options import delete_options, write_options
from harness.apiserver.handlers.shaping import finished
from harness.apiserver.handlers.writing import read_object
from harness.apiserver.registry import Caller, Registry
from harness.apiserver.strategies.labelselectors import parsed
from harness.wire.status import Cause, Details, Status, StatusError, success

MAX_DISRUPTED = 2000
STILL_PROCESSED_S = 10  # Retry-After where the controller has not seen the budget's newest version
_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_MORE_THAN_ONE = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
_UNGUARDED = ("Pending", "Succeeded", "Failed")
_CREATED = success(code=201).body()
_decode = msgspec.json.Decoder().decode


class Budgets(Protocol):
    """The cache of PodDisruptionBudgets."""

    def list(self, namespace: str = "") -> Listing: ...


class Evictions:
    """`budgets` is the cache, `registry` where what an eviction uses up of a budget is written."""

    def __init__(self, admission: Admission, budgets: Budgets, registry: Registry) -> None:
        self._admission = admission
        self._budgets = budgets
        self._registry = registry

    async def create(self, call: Call) -> Answer:
        """Raises StatusError, 429 where the budget does not allow it."""
        dry_run = write_options(call.info.query, "CreateOptions").dry_run
        body = read_object(call, "Eviction", "policy/v1")
        caller = call.caller()
        attributes = Attributes(
            Operation.CREATE, call.resource, "eviction", caller.namespace, caller.name, caller.user, body
        )
        await self._admission.create(attributes)
        options = delete_options(body.get("deleteOptions"), {})
        caller = msgspec.structs.replace(caller, dry_run=dry_run or options.dry_run)
        found = self._budgets.list(caller.namespace).items
        if found:
            await self._ask(call, caller, [_decode(each.body) for each in found])
        deletion = Deletion(options.grace_s, options.uid, options.resource_version, options.propagation)
        await call.registry.delete(caller, deletion)
        return finished(call, _CREATED, 201)

    async def _ask(self, call: Call, caller: Caller, budgets: list[Object]) -> None:
        """Use up one disruption of the budget that is about the pod."""
        pod = await call.registry.read(caller)
        phase = (pod.get("status") or {}).get("phase")
        if phase in _UNGUARDED or "deletionTimestamp" in pod["metadata"]:
            return
        labels = pod["metadata"].get("labels") or {}
        about = [each for each in budgets if _selects(each, labels)]
        if len(about) > 1:
            raise StatusError(Status(500, message=_MORE_THAN_ONE))
        if not about or _may_go_unguarded(pod, about[0]):
            return
        name = about[0]["metadata"]["name"]
        now = self._registry.context().now

        def use_up(budget: Object, revision: int) -> Object:
            self._check(budget)
            status = dict(budget["status"])
            status["disruptionsAllowed"] -= 1
            status["disruptedPods"] = {**(status.get("disruptedPods") or {}), caller.name: now}
            return {**budget, "metadata": dict(budget["metadata"]), "status": status}

        writer = msgspec.structs.replace(caller, name=name, subresource="status", manager="")
        await self._registry.update(writer, use_up)

    def _check(self, budget: Object) -> None:
        """checkAndDecrement. Raises StatusError."""
        status, meta = budget["status"], budget["metadata"]
        name, resource = meta["name"], self._registry.resource
        if status.get("observedGeneration", 0) < meta.get("generation", 0):
            why = f"The disruption budget {name} is still being processed by the server."
            raise _too_many(why, STILL_PROCESSED_S)
        if status["disruptionsAllowed"] < 0:
            raise forbidden(resource, name, "pdb disruptions allowed is negative")
        if len(status.get("disruptedPods") or ()) > MAX_DISRUPTED:
            text = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
            raise forbidden(resource, name, text)
        if status["disruptionsAllowed"] == 0:
            wanted, there = status["desiredHealthy"], status["currentHealthy"]
            raise _too_many(
                f"The disruption budget {name} needs {wanted} healthy pods and has {there} currently"
            )


def _selects(budget: Object, labels: dict[str, str]) -> bool:
    selector = budget["spec"].get("selector")
    return selector is not None and parsed(selector).match(labels)


def _may_go_unguarded(pod: Object, budget: Object) -> bool:
    """A pod that is not ready may go where the budget says so, or where it is met without that pod."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    wanted = budget["status"]["desiredHealthy"]
    return bool(budget["status"]["currentHealthy"] >= wanted > 0)


def _too_many(why: str, retry_after_s: int = 0) -> StatusError:
    details = Details(causes=(Cause("DisruptionBudget", why),), retry_after_s=retry_after_s)
    return StatusError(Status(429, "TooManyRequests", _VIOLATES, details))
