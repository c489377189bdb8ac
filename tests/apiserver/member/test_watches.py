"""Watches through the whole chain: what they send, hold, count and leave."""

from fakemember import Server

CONFIGMAPS = "/api/v1/namespaces/ns/configmaps"
WATCH_LIST = "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true"


def create(server: Server, name: str) -> dict:
    return server.ask("POST", CONFIGMAPS, {"metadata": {"name": name}, "data": {"k": "v"}}).json


def executing(server: Server) -> int:
    return sum(level.queues.executing for level in server.member.flow.levels.values())


def test_a_watch_list_sends_the_state_then_a_bookmark_then_changes(server: Server) -> None:
    create(server, "a")
    watch = server.send("GET", f"{CONFIGMAPS}?{WATCH_LIST}&timeoutSeconds=300")
    server.settle()
    create(server, "b")
    server.settle()
    types = [event["type"] for event in watch.events]
    assert types[:3] == ["ADDED", "BOOKMARK", "ADDED"]
    assert types[3:] in ([], ["BOOKMARK"]), (
        "the first tick after a watch-list brings one more where it has news"
    )
    annotations = watch.events[1]["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}


def test_a_watch_holds_seats_only_until_its_initial_events_are_queued(server: Server) -> None:
    watch = server.send("GET", f"{CONFIGMAPS}?{WATCH_LIST}")
    server.settle()
    assert not watch.finished
    assert executing(server) == 0


def test_a_watch_is_counted_while_it_is_open(server: Server) -> None:
    labels = ("WATCH", "", "v1", "configmaps", "", "namespace", "apiserver")
    gauge = server.member.metrics.apiserver_longrunning_requests.labels(*labels)
    watch = server.send("GET", f"{CONFIGMAPS}?watch=true&timeoutSeconds=10")
    server.settle()
    assert gauge.value == 1
    server.settle(11)
    assert watch.finished
    assert gauge.value == 0
    total = server.member.metrics.apiserver_request_total.labels(
        "WATCH", "", "", "v1", "configmaps", "", "namespace", "apiserver", "200"
    )
    assert total.value == 1


def test_a_client_that_leaves_ends_its_watch(server: Server) -> None:
    before = server.member.chain.open_watches
    watch = server.send("GET", f"{CONFIGMAPS}?watch=true&resourceVersion=0")
    server.settle()
    assert server.member.chain.open_watches == before + 1
    watch.leave()
    sent = watch.data
    create(server, "late")
    server.settle()
    assert watch.data == sent
    assert server.member.chain.open_watches == before
    assert executing(server) == 0


def test_open_watches_cost_cpu_time_at_rest() -> None:
    server = Server(cores=1.0, costs={"watch_idle_us": 1000.0})
    for _ in range(10):
        server.send("GET", f"{CONFIGMAPS}?watch=true&resourceVersion=0")
    server.settle(1.0)
    before = server.member.host.busy_s
    server.settle(10.0)
    spent = server.member.host.busy_s - before
    assert 0.1 <= round(spent, 6) < 0.11  # the rest: progress requests
    server.close()


def test_a_table_watch_defines_its_columns_once(server: Server) -> None:
    create(server, "a")
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    watch = server.send("GET", f"{CONFIGMAPS}?watch=true&resourceVersion=0", headers=accept)
    server.settle()
    create(server, "b")
    server.settle()
    tables = [event["object"] for event in watch.events]
    assert [table["kind"] for table in tables] == ["Table", "Table"]
    assert [column["name"] for column in tables[0]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert tables[1]["columnDefinitions"] is None
    assert tables[1]["rows"][0]["cells"][:2] == ["b", 1]


def test_a_watch_of_metadata_has_no_data(server: Server) -> None:
    create(server, "a")
    accept = {"accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    watch = server.send("GET", f"{CONFIGMAPS}?watch=true&resourceVersion=0", headers=accept)
    server.settle()
    assert watch.events[0]["object"]["kind"] == "PartialObjectMetadata"
    assert "data" not in watch.events[0]["object"]


def test_events_are_watched_from_the_store(server: Server) -> None:
    events = "/api/v1/namespaces/ns/events"
    watch = server.send("GET", f"{events}?watch=true&fieldSelector=involvedObject.name%3Dp")
    server.settle()
    for name in ("p", "q"):
        involved = {"kind": "Pod", "namespace": "ns", "name": name}
        body = {"metadata": {"name": f"{name}.1"}, "involvedObject": involved, "reason": "Started"}
        assert server.ask("POST", events, body).status == 201
    server.settle()
    assert [event["object"]["metadata"]["name"] for event in watch.events] == ["p.1"]


def test_a_watch_that_goes_on_by_name_sees_only_that_object(server: Server) -> None:
    version = create(server, "a")["metadata"]["resourceVersion"]
    create(server, "b")
    create(server, "c")
    path = f"{CONFIGMAPS}?watch=true&resourceVersion={version}&fieldSelector=metadata.name%3Dc"
    watch = server.send("GET", path)
    server.settle()
    assert [event["object"]["metadata"]["name"] for event in watch.events] == ["c"]
