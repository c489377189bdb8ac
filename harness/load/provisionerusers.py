"""The Locust users of provisioners: their replicas, and whoever makes the claims."""

from __future__ import annotations

from harness.client.machine import Finished
from harness.client.rest import Rest
from harness.fleet.provisioners.options import ProvisionerOptions
from harness.fleet.provisioners.provisioner import Provisioner, provisioner_limiters
from harness.fleet.provisioners.scenario import ACCOUNT, ACCOUNT_GROUPS, ClaimsOptions, ClaimsScenario
from harness.load.context import WorkerContext
from harness.load.labels import labels_of
from harness.load.users import MachineUser, Running

CLAIMS_ENDED = "claims-ended"


class ProvisionerUser(MachineUser):
    """All replicas of the one provisioner, ``--provisioner-replicas``, each on connections of its own."""

    abstract = True
    kind = "provisioner"
    fixed_count = 1

    def build(self, context: WorkerContext) -> list[Running]:
        plan = context.plan.provisioners
        assert plan is not None
        return [self._replica(f"provisioner-{index}", context) for index in range(plan.replicas)]

    def _replica(self, name: str, context: WorkerContext) -> Running:
        assert context.plan.provisioners is not None
        labels = tuple(labels_of(context.plan.run).items())
        options = ProvisionerOptions(**{**context.plan.provisioners.options, "labels": labels})
        provisioner = Provisioner(name, options, context.rng(name), context.epoch_s)
        transport = context.transport("csi-provisioner", ACCOUNT, ACCOUNT_GROUPS)
        return Running(Rest(provisioner, provisioner_limiters(options)), transport)


class ClaimsUser(MachineUser):
    """The one user that makes ``--claims`` and waits until all are bound."""

    abstract = True
    kind = "claims"
    fixed_count = 1

    def build(self, context: WorkerContext) -> list[Running]:
        plan = context.plan.provisioners
        assert plan is not None
        options = ClaimsOptions(**plan.claims, labels=tuple(labels_of(context.plan.run).items()))
        return [Running(ClaimsScenario(options, context.rng(self.kind)), context.transport(self.kind))]

    def finished(self, end: Finished) -> None:
        self.run_context.tell(CLAIMS_ENDED, {"failures": list(end.failures)})
