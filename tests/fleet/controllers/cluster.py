"""A small cluster in virtual time: kubelets, a scheduler and every controller, against one member."""

from __future__ import annotations

from random import Random
from typing import Any

from harness.client.rest import Rest
from harness.fleet.controllers.ensurer import controller_limiters
from harness.fleet.controllers.manager import ControllerManager, ManagerOptions, manager_limiters
from harness.fleet.controllers.namespaces import NamespaceController, NamespaceOptions, namespace_limiters
from harness.fleet.controllers.rootca import root_ca_publisher
from harness.fleet.controllers.serviceaccounts import serviceaccount_controller
from harness.fleet.kubelet import Kubelet, kubelet_limiters
from harness.fleet.options import KubeletOptions
from harness.fleet.scheduler import Scheduler, SchedulerOptions, scheduler_limiters
from tests.fleet.controllers.serverworld import ACCOUNT, Object, ServerWorld

NAMESPACE: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "m"}}


class Cluster(ServerWorld):
    """`nodes` kubelets; `manager` runs the controllers called `names`, all where it is None."""

    def __init__(
        self,
        nodes: int = 3,
        *,
        names: tuple[str, ...] | None = None,
        scheduler: bool = True,
        labels: tuple[tuple[str, str], ...] = (),
        kubelet: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        controllers = ManagerOptions().controllers if names is None else names
        chosen = ManagerOptions(controllers=controllers, labels=labels)
        self.manager = ControllerManager(chosen, Random(1), self.epoch_s)
        self.manager_index = self.join(Rest(self.manager, manager_limiters(chosen)), accounts=True)
        self._add_account("service-account-controller", serviceaccount_controller(Random(2)))
        self._add_account("root-ca-cert-publisher", root_ca_publisher("PEM", Random(3)))
        deleting = NamespaceOptions()
        namespaces = NamespaceController(deleting, Random(4), self.epoch_s)
        self.join(Rest(namespaces, namespace_limiters(deleting)), ACCOUNT + "namespace-controller")
        if scheduler:
            settings = SchedulerOptions()
            machine = Scheduler(settings, Random(5), self.epoch_s)
            self.join(Rest(machine, scheduler_limiters(settings)), "system:kube-scheduler")
        for index in range(nodes):
            self.add_kubelet(f"n{index}", **(kubelet or {}))

    def _add_account(self, name: str, machine: Any) -> None:
        self.join(Rest(machine, controller_limiters()), ACCOUNT + name)

    def add_kubelet(self, name: str, **options: Any) -> None:
        settings = KubeletOptions(**options)
        kubelet = Kubelet(name, settings, Random(name), self.epoch_s)
        self.join(Rest(kubelet, kubelet_limiters(settings)), f"system:node:{name}")

    def namespace(self) -> None:
        """Namespace m, with its service account."""
        self.admin("POST", "/api/v1/namespaces", NAMESPACE)
        self.run(self.now + 1.0)


def pod_template(app: str, **spec: Any) -> Object:
    container = {"name": "c", "image": "pause"}
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container], **spec}}


def workload(kind: str, name: str, version: str = "apps/v1", **spec: Any) -> Object:
    """A workload object of app `name` with its pod template."""
    template = spec.pop("template", None) or pod_template(name)
    selector: Object = {"selector": {"matchLabels": template["metadata"]["labels"]}}
    if kind == "Job":
        template["spec"].setdefault("restartPolicy", "Never")
        selector = {}
    if kind == "ReplicationController":
        selector = {"selector": template["metadata"]["labels"]}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**selector, "template": template, **spec},
    }


def service(name: str, app: str, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": app}, "ports": [{"port": 80}], **spec},
    }
