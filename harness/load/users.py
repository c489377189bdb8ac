"""The Locust users: each runs one machine over connections of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

import gevent
from gevent.pool import Group
from locust import User, task

from harness.client.machine import Finished, Machine, Note, Sample, Tell
from harness.client.rest import Rest
from harness.fleet.controllers.ensurer import controller_limiters
from harness.fleet.controllers.informers import CLIENT as INFORMERS
from harness.fleet.controllers.manager import ControllerManager, ManagerOptions, manager_limiters
from harness.fleet.controllers.namespaces import NamespaceController, NamespaceOptions, namespace_limiters
from harness.fleet.controllers.registry import CONTROLLERS
from harness.fleet.controllers.rootca import root_ca_publisher
from harness.fleet.controllers.serviceaccounts import serviceaccount_controller
from harness.fleet.kubelet import Kubelet, kubelet_limiters
from harness.fleet.kubeproxy import USER as KUBE_PROXY
from harness.fleet.kubeproxy import KubeProxy, kube_proxy_limiters
from harness.fleet.scheduler import Scheduler, SchedulerOptions, scheduler_limiters
from harness.load.byclient import TransportsByClient
from harness.load.context import NODE_GROUP, WorkerContext
from harness.load.controllerarguments import ALONE, NAMES
from harness.load.identity.rotation import renewal_of
from harness.load.labels import labels_of
from harness.load.scenarios import scenario_machine
from harness.load.shell import Shell
from harness.transport.pool import Transport
from harness.wire.errors import SwarmletError

logger = logging.getLogger("swarmlet")


class Running(NamedTuple):
    """A machine and the connections that it runs over. `kind` is its name in statistics, "" for its user's."""

    machine: Machine
    transport: Transport | TransportsByClient
    kind: str = ""
    on_certificate: Callable[[bytes], None] | None = None


def _never(_: MachineUser) -> None:
    """What the greenlet of a user in Locust's group would run."""


# Worth keeping of what machines note; a kubelet's own notes, thousands of times over, are counted by their samples.
_UNTOLD = ("kubelet-registered", "kubelet-ready", "kubelet-certificate", "kube-proxy-synced")


class MachineUser(User):
    """Base: `build` gives the machines that this user runs; none where this run has no need of it.

    Machines live on events and timers, so no greenlet waits for a user's end, which would take 8 KB. The one in
    Locust's group never runs: it is what Locust counts, finds the user by and waits for.
    """

    abstract = True
    kind = "user"
    replaceable = False
    """Whether one that is started anew elsewhere finds all that it needs at the apiservers."""

    def start(self, group: Group) -> gevent.Greenlet:
        self.shells: list[Shell] = []
        self._group = group
        self._greenlet: gevent.Greenlet = gevent.Greenlet(_never, self)
        group.add(self._greenlet)
        self._beginning: gevent.Greenlet | None = gevent.spawn(self._begin)
        return self._greenlet

    def _begin(self) -> None:
        try:
            self.on_start()
        except Exception as error:
            logger.exception("a %s could not start", self.kind)
            self.environment.events.user_error.fire(
                user_instance=self, exception=error, tb=error.__traceback__
            )
            self._group.killone(self._greenlet, block=False)
        self._beginning = None

    def stop(self, force: bool = False) -> bool:
        """Machines have no task to be waited for: it is over when this returns, forced or not."""
        if self._greenlet.dead:
            return True
        if self._beginning is not None:
            self._beginning.kill()
        self.on_stop()
        self._group.killone(self._greenlet)
        return True

    def build(self, context: WorkerContext) -> list[Running]:
        raise NotImplementedError

    def on_start(self) -> None:
        context: WorkerContext = self.environment.swarmlet_context
        self.run_context = context
        context.turns.wait()
        self.start_machines()

    def start_machines(self) -> None:
        """Make them, and begin."""
        context = self.run_context
        try:
            for running in self.build(context):
                self.shells.append(self._shell(running))
        except (
            SwarmletError
        ) as error:  # a scenario that is not on this worker's machine, a node without a token
            context.tell("user-failed", {"user": self.kind, "error": str(error)})
        for shell in self.shells:
            shell.start()

    def _shell(self, running: Running) -> Shell:
        context = self.run_context
        return Shell(
            running.kind or self.kind,
            running.machine,
            running.transport,
            context.timers,
            context.statistics,
            self.noted,
            self.finished,
            self.failed,
            running.on_certificate,
        )

    def on_stop(self) -> None:
        for shell in self.shells:
            shell.stop()

    @task
    def live(self) -> None:
        """Never runs, as `start` begins no task; Locust warns of a user that has none."""

    def noted(self, item: Note | Sample | Tell) -> None:
        if isinstance(item, Sample):
            self.run_context.statistics.sample(self.kind, item)
        elif isinstance(item, Tell):
            self.run_context.executors.tell(item.to, item.message)
        elif item.kind not in _UNTOLD:
            self.run_context.tell(item.kind, {"user": self.kind, **item.fields})

    def finished(self, _: Finished) -> None:
        """A machine has nothing more to do."""

    def failed(self, error: Exception) -> None:
        """A machine raised; it no longer runs, so neither does what the run was to show."""
        logger.error("error in a %s", self.kind, exc_info=error)
        self.run_context.tell("user-failed", {"user": self.kind, "error": repr(error)})


class KubeletUser(MachineUser):
    """One node: a kubelet on a connection of its own, and where it is asked for a kube-proxy on another. ``-u`` is how
    many."""

    abstract = True
    kind = "kubelet"
    replaceable = True
    node = ""
    """Its name, once it has one."""
    _replaces = False
    _down = False
    _boots = 0

    def start(self, group: Group) -> gevent.Greenlet:
        self._replaces = (
            self.environment.swarmlet_context.nodes.settled
        )  # it may begin when the fleet is complete
        return super().start(group)

    def build(self, context: WorkerContext) -> list[Running]:
        name = self.node or context.nodes.take(replaces=self._replaces)
        if name is None:
            return []
        self.node = name
        options = context.kubelet_options
        user = f"system:node:{name}"
        self.transport = context.transport("kubelet", user, (NODE_GROUP,))
        renewal = renewal_of(self.transport, user, (NODE_GROUP,))
        kubelet = Kubelet(
            name,
            options,
            context.draws(f"{name}/boot-{self._boots}" if self._boots else name),
            context.epoch_s,
            certificate=renewal,
            boots=self._boots,
        )
        rest = Rest(kubelet, kubelet_limiters(options), content=options.content_type)
        running = [Running(rest, self.transport, on_certificate=renewal.accept if renewal else None)]
        if options.kube_proxy and options.draw_kube_proxy(context.draws(f"kube-proxy or none/{name}")):
            running.append(self._kube_proxy(name, context))
        return running

    def _kube_proxy(self, name: str, context: WorkerContext) -> Running:
        options = context.kubelet_options
        proxy = KubeProxy(name, options, context.draws(f"kube-proxy/{name}"), context.epoch_s)
        rest = Rest(proxy, kube_proxy_limiters(), content=options.content_type)
        return Running(rest, context.transport("kube-proxy", KUBE_PROXY), "kube-proxy")

    def on_start(self) -> None:
        super().on_start()
        self._down = False

    def fail(self) -> bool:
        """Its machine dies: connections, leases, watches and all that runs on it, at once and without a goodbye; what
        the apiservers have of it stays there. False where it is down, or has not begun."""
        if self._down or not self.shells:
            return False
        for shell in self.shells:
            shell.kill()
        self.shells.clear()
        self._down = True
        return True

    def reboot(self) -> bool:
        """Its machine starts, in its turn among others, and is the same node. False where it is not down."""
        if not self._down or self._beginning is not None:
            return False
        self._boots += 1
        self._beginning = gevent.spawn(self._begin)
        return True

    def on_stop(self) -> None:
        if self.shells or self._down:  # else it never got what it needs to show who it is
            self.run_context.count_members(self.transport)
            self.run_context.nodes.give_back(self.node)
        super().on_stop()


def replaceable(classes: Sequence[type[User]], scenario: str) -> set[str]:
    """Names of those whose users another worker can start again; without a scenario its user does nothing."""
    return {
        user.__name__
        for user in classes
        if issubclass(user, MachineUser)
        and (user.replaceable or (issubclass(user, ClusterLoaderUser) and not scenario))
    }


class ClusterLoaderUser(MachineUser):
    """The one user that runs the scenario, as the cluster's administrator."""

    abstract = True
    kind = "clusterloader"
    fixed_count = 1

    def build(self, context: WorkerContext) -> list[Running]:
        if not context.plan.scenario:
            return []
        return [Running(scenario_machine(context), context.transport("clusterloader"))]

    def _shell(self, running: Running) -> Shell:
        shell = super()._shell(running)
        self.run_context.executors.lead(shell)
        return shell

    def finished(self, end: Finished) -> None:
        fields = {"failures": list(end.failures), "violations": list(end.violations)}
        self.run_context.tell("scenario-ended", fields)


class SchedulerUser(MachineUser):
    """A scheduler, where the target has none."""

    abstract = True
    kind = "scheduler"
    replaceable = True
    fixed_count = 1

    def build(self, context: WorkerContext) -> list[Running]:
        if context.plan.target.has_scheduler:
            return []
        options = SchedulerOptions(**context.plan.scheduler)
        scheduler = Scheduler(options, context.rng(self.kind), context.epoch_s)
        transport = context.transport("kube-scheduler", "system:kube-scheduler")
        return [Running(Rest(scheduler, scheduler_limiters(options)), transport)]


class ControllersUser(MachineUser):
    """The controllers of a controller manager, where the target has none; each on a connection of its own."""

    abstract = True
    kind = "controllers"
    replaceable = True
    fixed_count = 1

    def build(self, context: WorkerContext) -> list[Running]:
        if context.plan.target.has_controllers:
            return []
        plan = context.plan.controllers
        names = NAMES if plan.names is None else plan.names
        alone = [self._alone(name, context) for name in ALONE if name in names]
        managed = tuple(name for name in names if name in CONTROLLERS)
        return [*alone, self._manager(managed, context)] if managed else alone

    def _alone(self, name: str, context: WorkerContext) -> Running:
        rng = context.rng(name)
        if name == "namespace-controller":
            options = NamespaceOptions()
            rest = Rest(NamespaceController(options, rng, context.epoch_s), namespace_limiters(options))
        elif name == "root-ca-cert-publisher":
            rest = Rest(root_ca_publisher(context.plan.target.ca, rng), controller_limiters())
        else:
            rest = Rest(serviceaccount_controller(rng), controller_limiters())
        return Running(rest, self._account(name, context))

    def _manager(self, names: tuple[str, ...], context: WorkerContext) -> Running:
        """All over one set of informers, each with an account and connections of its own."""
        plan = context.plan.controllers
        provisioners = context.plan.provisioners
        elsewhere = () if provisioners is None else (provisioners.driver,)
        labels = tuple(labels_of(context.plan.run).items())
        options = ManagerOptions(names, plan.qps, plan.burst, elsewhere, labels)
        manager = ControllerManager(options, context.rng("controller-manager"), context.epoch_s)
        transports = {
            INFORMERS: context.transport("kube-controller-manager", "system:kube-controller-manager"),
            **{name: self._account(name, context) for name in names},
        }
        return Running(Rest(manager, manager_limiters(options)), TransportsByClient(transports))

    def _account(self, name: str, context: WorkerContext) -> Transport:
        return context.transport("kube-controller-manager", f"{_KUBE_SYSTEM}:{name}", _ACCOUNT_GROUPS)


_KUBE_SYSTEM = "system:serviceaccount:kube-system"
_ACCOUNT_GROUPS = ("system:serviceaccounts", "system:serviceaccounts:kube-system")
