"""The Locust users of informers: each one informer, one client that lists, or the writer."""

from __future__ import annotations

from collections.abc import Callable

from harness.client.machine import Finished, Fired, Key, Note, Sample, Tell
from harness.client.rest import Rest
from harness.fleet.informers.auditor import WHO, Auditor, auditor_limiters
from harness.fleet.informers.informer import Informer, informer_limiters
from harness.fleet.informers.lister import Lister
from harness.fleet.informers.options import NAMESPACE
from harness.fleet.informers.writer import READERS, Writer
from harness.load.context import WorkerContext
from harness.load.informerhub import InformerHub
from harness.load.labels import labels_of
from harness.load.shell import Shell
from harness.load.users import MachineUser, Running
from harness.transport.pool import Transport

_GROUPS = ("system:serviceaccounts", READERS)
_NO_LIMIT = {"main": None}


def _feeding(shell: Shell, key: Key) -> Callable[[], None]:
    return lambda: shell.feed(Fired(key))


class _AtTheMastersWord(MachineUser):
    """A user whose machines are made, and begin, when all users are there and what they are to find is too."""

    abstract = True

    def on_start(self) -> None:
        self.run_context = self.environment.swarmlet_context
        self.over = False
        self.hub = InformerHub.of(self.environment)
        self.settle()
        self.hub.at_go(self.begin)

    def settle(self) -> None:
        """Before the waiting."""

    def begin(self) -> None:
        if not self.over:
            self.start_machines()

    def on_stop(self) -> None:
        self.over = True
        super().on_stop()

    def _account(self, name: str) -> Transport:
        """Connections of a service account, so that flow control has something to say."""
        user = f"system:serviceaccount:{NAMESPACE}:{name}"
        return self.run_context.transport(self.kind, user, _GROUPS)


class InformerUser(_AtTheMastersWord):
    """One informer of ``--informers``; the first of a process brings the auditor along."""

    abstract = True
    kind = "informer"
    fixed_count = 1
    """The options say how many there are."""

    def settle(self) -> None:
        self.place = self.hub.place()

    def build(self, context: WorkerContext) -> list[Running]:
        hub, plan = self.hub, context.plan.informers
        assert plan is not None
        crowd = plan.crowds[hub.crowd_of(self.place)]
        name = f"informer-{hub.name[:5]}-{self.place}"
        one_of = context.kubelet_options.follow_one_of
        informer = Informer(name, crowd, hub.checker, hub.tally, context.rng(name), one_of)
        rest = Rest(informer, informer_limiters(crowd), content=crowd.content_type)
        running = [Running(rest, self._account(name))]
        if not hub.audited:
            hub.audited = True
            auditor = Rest(Auditor(hub.checker, plan.audit_every_s), auditor_limiters())
            running.append(Running(auditor, context.transport(WHO), WHO))
        return running

    def begin(self) -> None:
        super().begin()
        for shell in self.shells:
            if shell.user == WHO:
                self.hub.at_last(_feeding(shell, Auditor.LAST))

    def noted(self, item: Note | Sample | Tell) -> None:
        if isinstance(item, Sample):
            self.hub.sampled(item)
        super().noted(item)


class ListUser(_AtTheMastersWord):
    """One client of ``--lists``."""

    abstract = True
    kind = "lister"
    fixed_count = 1

    def build(self, context: WorkerContext) -> list[Running]:
        hub, plan = self.hub, context.plan.informers
        assert plan is not None
        assert plan.lists is not None
        name = f"lister-{hub.name[:5]}-{hub.next_lister()}"
        lister = Lister(name, plan.lists, hub.checker, hub.tally, context.rng(name))
        return [Running(Rest(lister, _NO_LIMIT, content=plan.lists.content_type), self._account(name))]


class WriterUser(MachineUser):
    """The one writer: first what informers find and their right to read it, then what changes beside them."""

    abstract = True
    kind = "writer"
    fixed_count = 1

    def build(self, context: WorkerContext) -> list[Running]:
        plan = context.plan.informers
        assert plan is not None
        labels = labels_of(context.plan.run)
        writer = Writer(plan.writer, plan.resources, context.plan.run, labels, context.rng(self.kind))
        return [Running(Rest(writer, _NO_LIMIT), context.transport(self.kind))]

    def on_start(self) -> None:
        hub = InformerHub.of(self.environment)
        super().on_start()
        for shell in self.shells:
            hub.at_go(_feeding(shell, Writer.GO))
            hub.at_last(_feeding(shell, Writer.HALT))

    def finished(self, end: Finished) -> None:
        for failure in end.failures:
            self.run_context.tell("user-failed", {"user": self.kind, "error": failure})
