"""Whether a small fleet's member, slowed down to its share of cores, needs its share of seats too: heartbeats beside a
load of 1.3 times what the host can do."""

from __future__ import annotations

from random import Random

from harness.apiserver.flowcontrol import Rejection, Ticket
from harness.apiserver.model.capacity import Host
from harness.apiserver.model.costs import Costs
from harness.pool.emulated import PoolOptions
from harness.wire.paths import parse_path
from tests.apiserver.flowcontrol.requests import PUT_LEASE, Server, node

PATCH_STATUS = parse_path("/api/v1/namespaces/a/pods/p/status", "PATCH")
COSTS = Costs()
LOAD = 1.3


def heartbeat_p99_s(nodes: int, seats: int, seconds: float) -> float:
    """Of lease updates, each node's one in ten seconds; status patches make up the rest of the load."""
    server, rng = Server(seats), Random(1)
    clock, flow = server.clock, server.flow
    host = Host(clock, PoolOptions(nodes=nodes).modelled_cores(), COSTS)
    flow.start()
    took: list[float] = []
    cores = host.cores or 0.0
    lease_rate = nodes / 10
    patch_rate = (LOAD * cores - lease_rate * COSTS.update_lease_us * 1e-6) / (COSTS.patch_status_us * 1e-6)

    def lease(ticket: Ticket, began: float) -> None:
        ticket.finish()
        took.append(clock.now() - began)

    def arrive(is_lease: bool) -> None:
        began = clock.now()
        rate = lease_rate if is_lease else patch_rate
        clock.call_at(began + rng.expovariate(rate), arrive, is_lease)
        admission = flow.admit(node(f"n{rng.randrange(nodes)}"), PUT_LEASE if is_lease else PATCH_STATUS)

        def admitted(_: object) -> None:
            ticket = admission.result()
            if isinstance(ticket, Rejection):
                return
            if is_lease:
                host.run(COSTS.update_lease_us, lambda: lease(ticket, began))  # type: ignore[arg-type]
            else:
                host.run(COSTS.patch_status_us, ticket.finish)

        admission.then(admitted)

    arrive(False)
    arrive(True)
    clock.run_until(seconds)
    flow.stop()
    return sorted(took)[int(0.99 * len(took))]


def test_seats_in_proportion_to_cores_keep_heartbeats_as_much_apart_as_at_5000_nodes() -> None:
    """Over 20 s, with what levels borrow after ten: 0.07 s at 5,000 nodes; at 100, 2.95 s, and 0.14 s with 12 seats."""
    large = heartbeat_p99_s(5000, 600, 1.5)
    all_seats = heartbeat_p99_s(100, 600, 20)
    its_seats = heartbeat_p99_s(100, PoolOptions(nodes=100, max_requests_inflight="auto").seats(), 20)
    assert large < 0.1
    assert all_seats > 1
    assert its_seats < 0.2
