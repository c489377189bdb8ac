"""The Locust users: each runs one machine over connections of its own."""

from __future__ import annotations

import logging

import gevent
from locust import User, task

from harness.client.machine import Finished, Machine, Note, Sample
from harness.client.rest import Rest
from harness.fleet.ensurer import controller_limiters
from harness.fleet.kubelet import Kubelet, kubelet_limiters
from harness.fleet.namespaces import NamespaceController, NamespaceOptions, namespace_limiters
from harness.fleet.options import KubeletOptions
from harness.fleet.rootca import root_ca_publisher
from harness.fleet.scheduler import Scheduler, SchedulerOptions, scheduler_limiters
from harness.fleet.serviceaccounts import serviceaccount_controller
from harness.load.context import NODE_GROUP, WorkerContext
from harness.load.scenarios import scenario_machine
from harness.load.shell import Shell
from harness.transport.pool import Transport
from harness.wire.errors import ConfigError

logger = logging.getLogger("swarmlet")

Running = tuple[Machine, Transport]
"""A machine and the connections that it runs over."""

# Worth keeping of what machines note; a kubelet's own notes, thousands of times over, are counted by their samples.
_UNTOLD = ("kubelet-registered", "kubelet-ready", "progress")


class MachineUser(User):
    """Base: `build` gives the machines that this user runs; none where this run has no need of it."""

    abstract = True
    kind = "user"

    def build(self, context: WorkerContext) -> list[Running]:
        raise NotImplementedError

    def on_start(self) -> None:
        context: WorkerContext = self.environment.swarmlet_context
        self.run_context = context
        self.shells: list[Shell] = []
        try:
            for machine, transport in self.build(context):
                self.shells.append(self._shell(machine, transport))
        except ConfigError as error:  # a scenario that is not on this worker's machine, say
            context.tell("user-failed", {"user": self.kind, "error": str(error)})
        for shell in self.shells:
            shell.start()

    def _shell(self, machine: Machine, transport: Transport) -> Shell:
        context = self.run_context
        return Shell(
            self.kind,
            machine,
            transport,
            context.timers,
            context.statistics,
            self.noted,
            self.finished,
            self.failed,
        )

    def on_stop(self) -> None:
        for shell in self.shells:
            shell.stop()

    @task
    def live(self) -> None:
        """The machines live on events and timers; Locust's own loop has nothing to do."""
        gevent.sleep(3600)

    def noted(self, item: Note | Sample) -> None:
        if isinstance(item, Sample):
            self.run_context.statistics.sample(self.kind, item)
        elif item.kind not in _UNTOLD:
            self.run_context.tell(item.kind, {"user": self.kind, **item.fields})

    def finished(self, _: Finished) -> None:
        """A machine has nothing more to do."""

    def failed(self, error: Exception) -> None:
        """A machine raised; it no longer runs, so neither does what the run was to show."""
        logger.error("error in a %s", self.kind, exc_info=error)
        self.run_context.tell("user-failed", {"user": self.kind, "error": repr(error)})


class KubeletUser(MachineUser):
    """One node: a kubelet on a connection of its own. ``-u`` is how many."""

    abstract = True
    kind = "kubelet"

    def build(self, context: WorkerContext) -> list[Running]:
        name = context.next_node_name()
        options = KubeletOptions(**context.plan.fleet)
        kubelet = Kubelet(name, options, context.rng(name), context.epoch_s)
        self.transport = context.transport("kubelet", f"system:node:{name}", (NODE_GROUP,))
        return [(Rest(kubelet, kubelet_limiters(options)), self.transport)]

    def on_stop(self) -> None:
        self.run_context.count_members(self.transport)
        super().on_stop()


class ClusterLoaderUser(MachineUser):
    """The one user that runs the scenario, as the cluster's administrator."""

    abstract = True
    kind = "clusterloader"
    fixed_count = 1

    def build(self, context: WorkerContext) -> list[Running]:
        if not context.plan.scenario:
            return []
        return [(scenario_machine(context), context.transport("clusterloader"))]

    def finished(self, end: Finished) -> None:
        fields = {"failures": list(end.failures), "violations": list(end.violations)}
        self.run_context.tell("scenario-ended", fields)


class SchedulerUser(MachineUser):
    """A scheduler, where the target has none."""

    abstract = True
    kind = "scheduler"
    fixed_count = 1

    def build(self, context: WorkerContext) -> list[Running]:
        if context.plan.target.has_scheduler:
            return []
        options = SchedulerOptions(**context.plan.scheduler)
        scheduler = Scheduler(options, context.rng(self.kind), context.epoch_s)
        transport = context.transport("kube-scheduler", "system:kube-scheduler")
        return [(Rest(scheduler, scheduler_limiters(options)), transport)]


class ControllersUser(MachineUser):
    """The controllers that a fleet's pods need, where the target has none; each on a connection of its own."""

    abstract = True
    kind = "controllers"
    fixed_count = 1

    def build(self, context: WorkerContext) -> list[Running]:
        if context.plan.target.has_controllers:
            return []
        rng = context.rng(self.kind)
        accounts = Rest(serviceaccount_controller(rng), controller_limiters())
        root_ca = Rest(root_ca_publisher(context.plan.target.ca, rng), controller_limiters())
        options = NamespaceOptions()
        namespaces = Rest(NamespaceController(options, rng, context.epoch_s), namespace_limiters(options))
        return [
            (
                machine,
                context.transport("kube-controller-manager", f"{_KUBE_SYSTEM}:{account}", _ACCOUNT_GROUPS),
            )
            for machine, account in (
                (accounts, "service-account-controller"),
                (root_ca, "root-ca-cert-publisher"),
                (namespaces, "namespace-controller"),
            )
        ]


_KUBE_SYSTEM = "system:serviceaccount:kube-system"
_ACCOUNT_GROUPS = ("system:serviceaccounts", "system:serviceaccounts:kube-system")
