"""The lister, the writer and the auditor by themselves: answers that a server does not usually give."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from harness.client.machine import (
    Action,
    Answered,
    Arm,
    CloseConnections,
    Failed,
    Finished,
    Fired,
    Key,
    Note,
    Sample,
    Send,
)
from harness.client.requests import CONFIGMAPS
from harness.fleet.informers.auditor import CHECKED, LAST_WITHIN_S, QUIET_S, Auditor
from harness.fleet.informers.checker import Checker
from harness.fleet.informers.lister import AGAIN_S, IN_FLIGHT, Lister
from harness.fleet.informers.listmix import ListKind, ListMix
from harness.fleet.informers.options import WriterOptions
from harness.fleet.informers.tally import Tally
from harness.fleet.informers.views import Scope
from harness.fleet.informers.violations import Kind
from harness.fleet.informers.writer import AT_ONCE, READY, TRIES, Writer
from harness.wire.request import Failure, Response, TransportError

BROKEN = TransportError(Failure.RESET, "gone")
SCOPE = Scope("configmaps")


def page(revision: int, objects: dict[str, int], token: str = "") -> bytes:
    items = [
        {"metadata": {"namespace": "ns", "name": name, "resourceVersion": str(version)}}
        for name, version in objects.items()
    ]
    metadata = {"resourceVersion": str(revision), "continue": token}
    return msgspec.json.encode({"metadata": metadata, "items": items})


def answered(key: Key, status: int, body: bytes = b"{}") -> Answered:
    return Answered(key, Response(status, {}, body, "m0"))


def sends(actions: list[Action]) -> list[Send]:
    return [action for action in actions if isinstance(action, Send)]


def samples(actions: list[Action], name: str) -> list[Sample]:
    return [action for action in actions if isinstance(action, Sample) and action.name == name]


# ---- the lister ------------------------------------------------------------------------------------------------------
class Listing:
    def __init__(self, kind: ListKind, rate: float = 0.0) -> None:
        self.checker = Checker()
        self.tally = Tally()
        self.lister = Lister("l", ListMix([kind], rate=rate), self.checker, self.tally, Random(1))
        self.lister.start(0.0)

    def due(self, now: float = 0.0) -> Send:
        (send,) = sends(self.lister.handle(Fired(("due",)), now))
        return send

    def answer(self, send: Send, body: bytes, status: int = 200, now: float = 1.0) -> list[Action]:
        return self.lister.handle(answered(send.key, status, body), now)


def test_a_list_goes_on_until_its_last_page_and_is_measured_from_when_it_was_due() -> None:
    play = Listing(ListKind("paged", limit=2))
    first = play.due()
    assert (first.request.name, first.request.path) == (
        "configmaps paged",
        "/api/v1/configmaps?limit=2",
    )
    out = play.answer(first, page(10, {"a": 1, "b": 2}, "more"), now=0.5)
    (second,) = sends(out)
    assert second.request.path == "/api/v1/configmaps?continue=more&limit=2"
    out = play.answer(second, page(10, {"c": 3}), now=0.75)
    assert [sample.value for sample in samples(out, "list_ms")] == [750.0]
    assert [sample.value for sample in samples(out, "list_page_ms")] == [250.0]
    assert [sample.value for sample in samples(out, "list_objects")] == [3.0]
    assert Arm(("due",), 0.75) in out


def test_a_page_of_another_revision_is_a_violation() -> None:
    play = Listing(ListKind("paged", limit=1))
    (second,) = sends(play.answer(play.due(), page(10, {"a": 1}, "more")))
    play.answer(second, page(12, {"b": 11}))
    found = play.checker.take()
    assert [(each.kind, each.key) for each in found] == [(Kind.MIXED_PAGES, ""), (Kind.MIXED_PAGES, "ns/b")]
    assert found[0].who == "l paged"


def test_an_exact_list_must_be_of_the_revision_that_was_asked_for() -> None:
    play = Listing(ListKind("exact", resource_version="exact", limit=1))
    (second,) = sends(play.answer(play.due(), page(10, {"a": 1}, "more")))
    assert "Exact" not in second.request.path  # nothing was known when it began
    play.answer(second, page(10, {"b": 2}))
    again = play.due(5.0)
    assert again.request.path == ("/api/v1/configmaps?limit=1&resourceVersion=10&resourceVersionMatch=Exact")
    play.answer(again, page(12, {"a": 11}))
    assert [each.text for each in play.checker.take()] == ["asked for exactly revision 10, it is of 12"]


def test_an_exact_list_is_of_the_latest_revision_that_is_old_enough() -> None:
    play = Listing(ListKind("exact", resource_version="exact", age_s=5.0))
    for now, revision in ((0.0, 10), (3.0, 20), (6.0, 30)):
        play.answer(play.due(now), page(revision, {"a": 1}), now=now)
        play.checker.take()
    assert "resourceVersion=20&" in play.due(8.5).request.path


@pytest.mark.parametrize("status", [410, 429, 500])
def test_what_is_refused_is_counted_and_the_client_pauses(status: int) -> None:
    play = Listing(ListKind("cached", resource_version="0"))
    out = play.answer(play.due(), b"", status, now=2.0)
    (failed,) = samples(out, "list_failed")
    assert failed.labels == (("kind", "cached"), ("code", str(status)))
    assert Arm(("due",), 2.0 + AGAIN_S) in out
    assert play.tally.expired == (status == 410)


def test_an_answer_that_is_no_list_and_none_at_all_are_counted() -> None:
    play = Listing(ListKind("cached"))
    (undecodable,) = samples(play.answer(play.due(), b"nonsense"), "list_failed")
    assert undecodable.labels[1] == ("code", "undecodable")
    (broken,) = samples(play.lister.handle(Failed(play.due().key, BROKEN), 1.0), "list_failed")
    assert broken.labels[1] == ("code", "reset")
    assert play.lister.handle(Failed(("list", 99), BROKEN), 1.0) == []


def test_what_comes_due_while_too_many_are_under_way_is_left_out() -> None:
    play = Listing(ListKind("cached"), rate=10.0)
    for _ in range(IN_FLIGHT):
        play.due()
    out = play.lister.handle(Fired(("due",)), 1.0)
    assert sends(out) == []
    assert samples(out, "list_left_out")
    assert len(play.lister.stop(1.0)) == IN_FLIGHT + 1
    assert repr(play.lister) == "Lister('l', under_way=0)"


def test_a_get_is_of_an_object_that_was_seen() -> None:
    play = Listing(ListKind("get", get=True, resource_version="0"))
    first = play.due()
    assert first.request.path == "/api/v1/configmaps?limit=1000&resourceVersion=0"
    out = play.answer(first, page(10, {"a": 1}))
    assert samples(out, "list_ms")[0].labels == (("kind", "names"),)
    second = play.due()
    assert second.request.path == "/api/v1/namespaces/ns/configmaps/a?resourceVersion=0"
    out = play.answer(second, b'{"metadata":{}}')
    assert samples(out, "list_ms")[0].labels == (("kind", "get"),)


# ---- the writer ------------------------------------------------------------------------------------------------------
def writer(**options: Any) -> Writer:
    return Writer(WriterOptions(**{"objects": 2, **options}), [CONFIGMAPS], "", {"l": "v"}, Random(1))


def made(machine: Writer) -> list[Action]:
    """Everything that it makes first is there; what it said."""
    out: list[Action] = []
    waiting = sends(machine.start(0.0))
    while waiting:
        more = machine.handle(answered(waiting.pop().key, 201), 1.0)
        out += more
        waiting += sends(more)
    return out


def test_the_right_to_read_and_namespaces_come_before_objects() -> None:
    machine = writer(namespaces=2)
    first = machine.start(0.0)
    names = [send.request.name for send in sends(first)]
    assert names == ["namespaces", "namespaces", "clusterroles", "clusterrolebindings"]
    for send in sends(first)[:-1]:
        assert machine.handle(answered(send.key, 409), 0.0) == []
    created = sends(machine.handle(answered(sends(first)[-1].key, 201), 0.0))
    assert [send.request.path for send in created] == [
        "/api/v1/namespaces/informers-0/configmaps",
        "/api/v1/namespaces/informers-1/configmaps",
    ]
    body = msgspec.json.decode(created[1].request.body)
    assert body["metadata"]["labels"] == {"l": "v", "shard": "1", "generation": "0"}
    assert len(body["data"]["v"]) == 500


def test_it_says_when_all_is_there_once() -> None:
    notes = [action for action in made(writer()) if isinstance(action, Note)]
    assert [(note.kind, note.fields) for note in notes] == [(READY, {"objects": 2, "seconds": 1.0})]


def test_what_got_no_answer_is_tried_again_and_then_given_up() -> None:
    machine = writer()
    (key, *_) = [send.key for send in sends(machine.start(0.0))]
    for attempt in range(TRIES):
        out = machine.handle(Failed(key, BROKEN), float(attempt))
        if attempt < TRIES - 1:
            assert out == [Arm(("again", *key), attempt + 1.0)]
            assert sends(machine.handle(Fired(("again", *key)), attempt + 1.0))[0].key == key
    (end,) = out
    assert isinstance(end, Finished)
    assert end.failures == (f"writer: could not make first 0: {BROKEN}",)


def test_what_is_refused_ends_it_with_what_was_said() -> None:
    machine = writer()
    key = sends(machine.start(0.0))[0].key
    (end,) = machine.handle(answered(key, 403, b"no"), 0.0)
    assert isinstance(end, Finished)
    assert end.failures == ("writer: could not make first 0: 403 no",)


def test_writes_go_on_from_go_to_halt() -> None:
    machine = writer(objects=1, rate=5.0, replace_share=0.0)
    made(machine)
    assert machine.handle(Fired(("due",)), 1.0) == []
    (due,) = machine.handle(Fired(Writer.GO), 1.0)
    assert isinstance(due, Arm)
    update, _ = machine.handle(Fired(("due",)), 1.5)
    assert isinstance(update, Send)
    assert (update.request.method, update.request.name) == ("PUT", "configmaps")
    left_out, _ = machine.handle(Fired(("due",)), 1.6)  # the only object is being written
    assert isinstance(left_out, Sample)
    assert machine.handle(answered(update.key, 200), 1.7) == []
    assert machine.handle(Fired(Writer.HALT), 2.0)
    assert machine.handle(Fired(("due",)), 2.1) == []


@pytest.mark.parametrize("status", [200, 404])
def test_a_replacement_is_a_deletion_and_a_creation(status: int) -> None:
    machine = writer(objects=1, replace_share=1.0)
    made(machine)
    machine.handle(Fired(Writer.GO), 1.0)
    delete = sends(machine.handle(Fired(("due",)), 1.5))[0]
    assert delete.request.verb == "delete"
    (create,) = sends(machine.handle(answered(delete.key, status), 1.6))
    assert create.request.verb == "create"
    (failed,) = machine.handle(answered(create.key, 500), 1.7)
    assert isinstance(failed, Sample)
    assert failed.labels == (("verb", "create"), ("code", "500"))


def test_writes_under_way_are_bounded() -> None:
    machine = writer(objects=AT_ONCE + 50)
    made(machine)
    machine.handle(Fired(Writer.GO), 1.0)
    sent = sum(len(sends(machine.handle(Fired(("due",)), 2.0))) for _ in range(2000))
    assert sent == AT_ONCE
    assert len(machine.stop(3.0)) == 1 + 3 * AT_ONCE


# ---- the auditor -----------------------------------------------------------------------------------------------------
def audited(checker: Checker) -> tuple[Auditor, float]:
    """The last audit of a checker with one informer has been asked for; and when."""
    view = checker.open("i", SCOPE)
    checker.synced(view, 10, {"ns/a": 1}, 0.0)
    auditor = Auditor(checker, 30.0)
    auditor.start(0.0)
    auditor.handle(Fired(Auditor.LAST), 1.0)
    assert auditor.handle(Fired(("audit",)), 1.0) == []
    return auditor, 1.0 + QUIET_S


def test_an_audit_is_a_consistent_list_of_each_scope() -> None:
    checker = Checker()
    view = checker.open("i", Scope("configmaps", "ns", "a=b", "metadata.name=x"))
    checker.synced(view, 10, {}, 0.0)
    auditor = Auditor(checker, 30.0)
    assert Arm(("audit",), 30.0) in auditor.start(0.0)
    (send,) = sends(auditor.handle(Fired(("audit",)), 30.0))
    assert send.request.path == (
        "/api/v1/namespaces/ns/configmaps?fieldSelector=metadata.name%3Dx&labelSelector=a%3Db"
    )
    assert sends(auditor.handle(Fired(("audit",)), 60.0)) == []  # the first is not answered yet


def test_the_last_audit_ends_with_what_was_found() -> None:
    auditor, now = audited(Checker())
    (send,) = sends(auditor.handle(Fired(("last audit",)), now))
    auditor.handle(answered(send.key, 200, page(12, {"a": 1})), now)
    notes = [each for each in auditor.handle(Fired(("look",)), now) if isinstance(each, Note)]
    assert [note.kind for note in notes] == [CHECKED]
    assert notes[0].fields["compared"] == 2
    assert (notes[0].fields["undecided"], notes[0].fields["failed"]) == (0, 0)


@pytest.mark.parametrize("answer", ["none", "refused", "nonsense"])
def test_the_last_audit_is_asked_again_without_an_answer_and_that_is_said(answer: str) -> None:
    auditor, now = audited(Checker())
    (send,) = sends(auditor.handle(Fired(("last audit",)), now))
    if answer == "none":
        out = auditor.handle(Failed(send.key, BROKEN), now)
    else:
        out = auditor.handle(answered(send.key, 500 if answer == "refused" else 200, b"nonsense"), now)
    assert out == [CloseConnections("audit")], "another member may answer"
    (again,) = sends(auditor.handle(Fired(("look",)), now + 0.5))
    assert again.request == send.request
    auditor.handle(answered(again.key, 200, page(12, {"a": 1})), now + 0.6)
    (note,) = (each for each in auditor.handle(Fired(("look",)), now + 1) if isinstance(each, Note))
    assert (note.fields["failed"], note.fields["compared"]) == (1, 2)


def test_a_last_audit_that_fails_each_time_is_given_up() -> None:
    auditor, now = audited(Checker())
    (send,) = sends(auditor.handle(Fired(("last audit",)), now))
    auditor.handle(Failed(send.key, BROKEN), now)
    assert sends(auditor.handle(Fired(("look",)), now + 1))
    auditor.handle(Failed(send.key, BROKEN), now + 1)
    out = auditor.handle(Fired(("look",)), 1.0 + LAST_WITHIN_S)
    (note,) = (each for each in out if isinstance(each, Note))
    assert note.fields["failed"] == 2
    assert not sends(out)


def test_an_audit_that_is_never_answered_is_given_up() -> None:
    auditor, now = audited(Checker())
    auditor.handle(Fired(("last audit",)), now)
    (again,) = auditor.handle(Fired(("look",)), now + 1)
    assert isinstance(again, Arm)
    (note,) = auditor.handle(Fired(("look",)), 1.0 + LAST_WITHIN_S)
    assert isinstance(note, Note)
    assert auditor.stop(99.0)
