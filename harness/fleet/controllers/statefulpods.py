"""One turn of a StatefulSet over its pods. kk/pkg/controller/statefulset/stateful_set_control.go (updateStatefulSet).

With OrderedReady one pod is created or deleted at a time and the next waits until it is ready; with Parallel they go
out 1, 2, 4... at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.client.requests import PODS
from harness.fleet.controllers.api import CLAIMS, ApiError, Steps, call_all, failure
from harness.fleet.controllers.history import HASH_LABEL, template_of
from harness.fleet.controllers.podcontrol import pod_from
from harness.fleet.controllers.replicaset import available
from harness.fleet.controllers.views import Object, PodView
from harness.wire.request import Response

if TYPE_CHECKING:
    from harness.fleet.controllers.statefulset import StatefulSetController

_NAME = re.compile(r"^(.*)-([0-9]+)$")
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def ordinal_of(name: str, owner: str) -> int:
    """The number of a pod of `owner`, -1 where it is none of its pods."""
    found = _NAME.match(name)
    return int(found[2]) if found is not None and found[1] == owner else -1


class Turn:
    """`status` is what is written afterwards; `run` raises ApiError where a request failed."""

    __slots__ = ("controller", "current", "name", "owner", "pods", "spec", "status", "update")

    def __init__(
        self,
        controller: StatefulSetController,
        owner: Object,
        current: Object,
        update: Object,
        pods: list[PodView],
    ) -> None:
        self.controller = controller
        self.owner = owner
        self.spec = owner["spec"]
        self.name = owner["metadata"]["name"]
        self.current = current
        self.update = update
        self.pods = {ordinal_of(pod.name, self.name): pod for pod in pods}
        self.pods.pop(-1, None)
        self.status = self._counted()

    @property
    def _ordered(self) -> bool:
        return bool(self.spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady")

    @property
    def _first(self) -> int:
        return int((self.spec.get("ordinals") or {}).get("start", 0))

    def _counted(self) -> Object:
        min_ready_s, now_s = self.spec.get("minReadySeconds", 0), self.controller.hub.wall_s()
        pods = [pod for pod in self.pods.values() if pod.phase]
        status: Object = {
            "observedGeneration": self.owner["metadata"].get("generation", 0),
            "replicas": len(pods),
            "readyReplicas": sum(_ready(pod) for pod in pods),
            "availableReplicas": sum(_ready(pod) and available(pod, min_ready_s, now_s) for pod in pods),
            "currentReplicas": 0,
            "updatedReplicas": 0,
            "currentRevision": self.current["metadata"]["name"],
            "updateRevision": self.update["metadata"]["name"],
            "collisionCount": (self.owner.get("status") or {}).get("collisionCount", 0),
        }
        self.status = status
        for pod in pods:
            if pod.deleted is None:
                self._count(pod.labels.get(HASH_LABEL, ""), 1)
        return status

    def _count(self, digest: str, difference: int) -> None:
        if digest == self.current["metadata"]["labels"].get(HASH_LABEL):
            self.status["currentReplicas"] += difference
        if digest == self.update["metadata"]["labels"].get(HASH_LABEL):
            self.status["updatedReplicas"] += difference

    def finished_status(self) -> Object:
        """completeRollingUpdate: once all pods are updated and ready, the update is what is current."""
        status = self.status
        if (
            self.spec["updateStrategy"]["type"] == "RollingUpdate"
            and status["updatedReplicas"] == status["replicas"] == status["readyReplicas"]
        ):
            status["currentReplicas"] = status["updatedReplicas"]
            status["currentRevision"] = status["updateRevision"]
        return status

    # ---- the turn ----------------------------------------------------------------------------------------------------
    def run(self) -> Steps[None]:
        if "deletionTimestamp" in self.owner["metadata"]:
            return
        wanted = range(self._first, self._first + self.spec["replicas"])
        if not (yield from self._fill(wanted)):
            return
        condemned = sorted((each for each in self.pods if each not in wanted), reverse=True)
        if not (yield from self._shrink(wanted, condemned)):
            return
        if self.spec["updateStrategy"]["type"] != "OnDelete":
            yield from self._roll(wanted)

    def _fill(self, wanted: range) -> Steps[bool]:
        """processReplica of each; False where a turn ends here."""
        missing: list[int] = []
        for ordinal in wanted:
            pod = self.pods.get(ordinal)
            if pod is None:
                missing.append(ordinal)
                if self._ordered:
                    yield from self._create(missing)
                    return False
            elif pod.ended:
                if pod.deleted is None:
                    yield from self._delete([pod])
                return False
            elif self._ordered and (pod.deleted is not None or not self._healthy(pod)):
                return False
        sent, batch = 0, min(1, len(missing))
        while batch > 0:
            yield from self._create(missing[sent : sent + batch])
            sent += batch
            batch = min(2 * batch, len(missing) - sent)
        return True

    def _healthy(self, pod: PodView) -> bool:
        now_s = self.controller.hub.wall_s()
        return _ready(pod) and available(pod, self.spec.get("minReadySeconds", 0), now_s)

    def _shrink(self, wanted: range, condemned: Sequence[int]) -> Steps[bool]:
        """processCondemned, from the highest; ordered sets wait for the one before, and for the unhealthy first."""
        if not condemned:
            return True
        if not self._ordered:
            going = [self.pods[each] for each in condemned if self.pods[each].deleted is None]
            yield from self._delete(going)
            return True
        everyone = [*wanted, *reversed(condemned)]
        unhealthy = next(
            (each for each in everyone if each in self.pods and not _ready(self.pods[each])), None
        )
        pod = self.pods[condemned[0]]
        if pod.deleted is None and (_ready(pod) or condemned[0] == unhealthy):
            yield from self._delete([pod])
        return False

    def _roll(self, wanted: range) -> Steps[None]:
        """From the highest down to the partition: delete one that is outdated, or wait for one that is not ready."""
        partition = (self.spec["updateStrategy"].get("rollingUpdate") or {}).get("partition", 0)
        newest = self.update["metadata"]["labels"].get(HASH_LABEL)
        for ordinal in reversed(wanted):
            pod = self.pods.get(ordinal)
            if pod is None or ordinal < self._first + partition:
                return
            if pod.labels.get(HASH_LABEL) != newest and pod.deleted is None:
                yield from self._delete([pod])
                return
            if not self._healthy(pod) or pod.deleted is not None:
                return

    # ---- pods --------------------------------------------------------------------------------------------------------
    def _create(self, ordinals: list[int]) -> Steps[None]:
        """Their claims first, then the pods; raises what failed."""
        controller, namespace = self.controller, self.owner["metadata"]["namespace"]
        yield from self._create_claims(ordinals)
        made = [self._pod(ordinal) for ordinal in ordinals]
        answers = yield [controller.create(PODS, namespace, pod) for pod in made]
        first: ApiError | None = None
        for pod, answer in zip(made, answers, strict=True):
            error = failure(answer)
            name = pod["metadata"]["name"]
            if error is None:
                assert isinstance(answer, Response)
                controller.wrote(f"{namespace}/{self.name}", controller.pods, answer)
                text = f"create Pod {name} in StatefulSet {self.name} successful"
                controller.recorder.normal(self.owner, "SuccessfulCreate", text)
                self.status["replicas"] += 1
                self._count(pod["metadata"]["labels"][HASH_LABEL], 1)
            elif error.exists:
                first = first or error
            else:
                text = f"create Pod {name} in StatefulSet {self.name} failed error: {error}"
                controller.recorder.warning(self.owner, "FailedCreate", text)
                first = first or error
        if first is not None:
            raise first

    def _create_claims(self, ordinals: list[int]) -> Steps[None]:
        controller, namespace = self.controller, self.owner["metadata"]["namespace"]
        missing = [
            (claim, ordinal)
            for ordinal in ordinals
            for claim in self._claims(ordinal)
            if f"{namespace}/{claim['metadata']['name']}" not in controller.claims.reflector.store
        ]
        errors = yield from call_all([controller.create(CLAIMS, namespace, claim) for claim, _ in missing])
        for (claim, ordinal), error in zip(missing, errors, strict=True):
            about = f"create Claim {claim['metadata']['name']} Pod {self.name}-{ordinal} in StatefulSet {self.name}"
            if error is None:
                controller.recorder.normal(self.owner, "SuccessfulCreate", f"{about} success")
            elif not error.exists:
                controller.recorder.warning(self.owner, "FailedCreate", f"{about} failed error: {error}")
                raise error

    def _claims(self, ordinal: int) -> list[Object]:
        labels = self.spec["selector"].get("matchLabels") or {}
        made = []
        for template in self.spec.get("volumeClaimTemplates") or ():
            metadata = template["metadata"]
            claim: Object = {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "metadata": {
                    "name": f"{metadata['name']}-{self.name}-{ordinal}",
                    "namespace": self.owner["metadata"]["namespace"],
                    "labels": {**(metadata.get("labels") or {}), **labels},
                },
                "spec": template["spec"],
            }
            if metadata.get("annotations"):
                claim["metadata"]["annotations"] = metadata["annotations"]
            made.append(claim)
        return made

    def _pod(self, ordinal: int) -> Object:
        """newVersionedStatefulSetPod: below the partition, of the current revision."""
        rolling = self.spec["updateStrategy"].get("rollingUpdate")
        current = self.status["currentReplicas"] if rolling is None else rolling.get("partition", 0)
        old = self.spec["updateStrategy"]["type"] == "RollingUpdate" and ordinal < self._first + current
        revision = self.current if old else self.update
        pod = pod_from(template_of(revision), self.owner)
        name = f"{self.name}-{ordinal}"
        metadata = pod["metadata"]
        metadata["name"] = name
        digest = revision["metadata"]["labels"].get(HASH_LABEL, "")
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            HASH_LABEL: digest,
            POD_NAME: name,
            POD_INDEX: str(ordinal),
        }
        claims = {each["metadata"]["name"] for each in self.spec.get("volumeClaimTemplates") or ()}
        volumes = [
            {"name": each, "persistentVolumeClaim": {"claimName": f"{each}-{name}"}}
            for each in sorted(claims)
        ]
        volumes += [each for each in pod["spec"].get("volumes") or () if each["name"] not in claims]
        pod["spec"] = {**pod["spec"], "hostname": name, "subdomain": self.spec.get("serviceName", "")}
        if volumes:
            pod["spec"]["volumes"] = volumes
        return pod

    def _delete(self, pods: list[PodView]) -> Steps[None]:
        controller = self.controller
        errors = yield from call_all([controller.delete(PODS, pod.namespace, pod.name) for pod in pods])
        for pod, error in zip(pods, errors, strict=True):
            about = f"delete Pod {pod.name} in StatefulSet {self.name}"
            if error is None:
                controller.recorder.normal(self.owner, "SuccessfulDelete", f"{about} successful")
                self._count(pod.labels.get(HASH_LABEL, ""), -1)
            elif not error.not_found:
                controller.recorder.warning(self.owner, "FailedDelete", f"{about} failed error: {error}")
                raise error


def _ready(pod: PodView) -> bool:
    """isRunningAndReady."""
    return pod.phase == "Running" and pod.ready
