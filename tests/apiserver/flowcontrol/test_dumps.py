"""The debug pages, in the text form of apf_controller_debug.go."""

from __future__ import annotations

from harness.apiserver.flowcontrol import WorkEstimate
from harness.apiserver.flowcontrol.dump import page, seat_seconds, tabulate
from tests.apiserver.flowcontrol.requests import ADMIN, CREATE_POD, GET_SECRET, Server, node

PREFIX = "/debug/api_priority_and_fairness/"


def rows(server: Server, name: str, **query: str) -> list[list[str]]:
    """Cells without their padding."""
    body = page(server.flow, server.clock, PREFIX + name, query)
    assert body is not None
    return [[cell.strip() for cell in line.split(",")] for line in body.decode().splitlines()]


def test_columns_are_as_wide_as_their_widest_cell_and_eight_at_least() -> None:
    assert tabulate([("Name", "IsIdle", "Last"), ("workload-high", "true", "0")]) == (
        b"Name,          IsIdle, Last\nworkload-high, true,   0\n"
    )
    assert tabulate([("a", "b"), ("c", "d")]) == b"a,      b\nc,      d\n"


def test_levels_are_dumped_by_name() -> None:
    server = Server()
    served = server.fill("system", node("n1"))
    for _ in range(301):
        server.flow.admit(node("n1"), GET_SECRET)
    server.flow.admit(node("n2"), GET_SECRET).cancel()
    served[0].finish()
    found = rows(server, "dump_priority_levels")
    assert found[0] == [
        "PriorityLevelName",
        "ActiveQueues",
        "IsIdle",
        "IsQuiescing",
        "WaitingRequests",
        "ExecutingRequests",
        "DispatchedRequests",
        "RejectedRequests",
        "TimedoutRequests",
        "CancelledRequests",
    ]
    assert [row[0] for row in found[1:]] == sorted(server.flow.levels)
    by_name = {row[0]: row[1:] for row in found}
    # 117 at first, one more when one had finished; one full queue and one that left are both rejected, as upstream.
    assert by_name["system"] == ["6", "false", "false", "299", "117", "118", "2", "0", "1"]
    assert by_name["exempt"] == ["0", "true", "false", "0", "0", "0", "0", "0", "0"]


def test_queues_are_dumped_with_their_virtual_start_and_waiting_work() -> None:
    server = Server()
    server.fill("system", node("n1"))
    server.flow.admit(node("n1"), GET_SECRET, WorkEstimate(2, 5, 0.1))
    found = rows(server, "dump_queues")
    assert len(found) - 1 == 64 + 64 + 16 + 128 + 128 + 128
    waiting = [row for row in found if row[0] == "system" and row[2] == "1"]
    # 2 seats x 3 ms + 5 seats x 100 ms
    assert [row[6:] for row in waiting] == [["2", "5", "0.50600000ss"]]


def test_requests_are_dumped_waiting_and_executing() -> None:
    server = Server()
    server.clock.advance(1.5)
    server.fill("system", node("n1"))
    server.clock.advance(1)
    server.flow.admit(node("n2"), CREATE_POD, WorkEstimate(1, 3, 0.05))
    server.ticket(ADMIN, GET_SECRET)
    found = rows(server, "dump_requests")
    assert found[0][:5] == [
        "PriorityLevelName",
        "FlowSchemaName",
        "QueueIndex",
        "RequestIndexInQueue",
        "FlowDistingsher",
    ]
    waiting = [row for row in found if row[3] == "0"]
    assert [[row[0], row[1], *row[4:]] for row in waiting] == [
        [
            "system",
            "system-nodes",
            "system:node:n2",
            "2023-11-14T22:13:22.5Z",
            "1",
            "3",
            "50ms",
            "0001-01-01T00:00:00Z",
        ]
    ]
    executing = [row for row in found if row[0] == "system" and row[3] == "-1"]
    assert len(executing) == 117
    assert executing[0][5] == executing[0][9] == "2023-11-14T22:13:21.5Z"
    assert [row[:5] for row in found if row[0] == "exempt"] == [["exempt", "exempt", "-1", "-1", ""]]


def test_requests_are_dumped_with_details_where_they_are_asked_for() -> None:
    server = Server()
    server.ticket(ADMIN, GET_SECRET)
    found = rows(server, "dump_requests", includeRequestDetails="1")
    assert found[0][10:] == [
        "UserName",
        "Verb",
        "APIPath",
        "Namespace",
        "Name",
        "APIVersion",
        "Resource",
        "SubResource",
    ]
    assert found[1][10:] == ["kubernetes-admin", "get", GET_SECRET.path, "a", "s", "v1", "secrets", ""]


def test_seat_seconds_have_eight_decimals() -> None:
    assert seat_seconds(0.0) == "0.00000000ss"
    assert seat_seconds(1234.5) == "1234.50000000ss"


def test_other_paths_are_none_of_its_business() -> None:
    server = Server()
    assert page(server.flow, server.clock, "/debug/pprof", {}) is None
    assert page(server.flow, server.clock, PREFIX + "dump_all", {}) is None
