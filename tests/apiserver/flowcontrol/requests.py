"""Users and requests for the tests of flow control."""

from __future__ import annotations

from harness.apiserver.auth.authentication import UserInfo, account_user, admin_user
from harness.apiserver.clock import VirtualClock
from harness.apiserver.flowcontrol import Admission, FlowController, Rejection, Ticket
from harness.apiserver.metrics.families import Metrics
from harness.wire.paths import RequestInfo, parse_path

LIST_PODS = parse_path("/api/v1/pods")
GET_SECRET = parse_path("/api/v1/namespaces/a/secrets/s")
PUT_LEASE = parse_path("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1", "PUT")
CREATE_POD = parse_path("/api/v1/namespaces/a/pods", "POST")


def node(name: str) -> UserInfo:
    return UserInfo(f"system:node:{name}", ("system:nodes", "system:authenticated"))


def user(name: str) -> UserInfo:
    return UserInfo(name, ("system:authenticated",))


ADMIN = admin_user()
SCHEDULER = user("system:kube-scheduler")
PROVISIONER = account_user("kube-system", "csi-provisioner")
TENANT = account_user("default", "default")


class Server:
    """A flow controller under a virtual clock."""

    def __init__(self, seats: int = 600) -> None:
        self.clock = VirtualClock()
        self.metrics = Metrics()
        self.flow = FlowController(self.clock, self.metrics, seats)

    def ticket(self, who: UserInfo, info: RequestInfo = GET_SECRET, **options: object) -> Ticket:
        """Of a request that is admitted at once."""
        admission = self.flow.admit(who, info, **options)  # type: ignore[arg-type]
        assert admission.done, "had to wait"
        ticket = admission.result()
        assert isinstance(ticket, Ticket), ticket
        return ticket

    def fill(self, level: str, who: UserInfo, info: RequestInfo = GET_SECRET) -> list[Ticket]:
        """Take all seats of a level."""
        return [self.ticket(who, info) for _ in range(self.flow.levels[level].queues.limit)]


def rejection(admission: Admission) -> Rejection:
    assert admission.done, "still waits"
    outcome = admission.result()
    assert isinstance(outcome, Rejection), outcome
    return outcome
