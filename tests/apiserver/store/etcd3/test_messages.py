"""etcd's messages as bytes; expected ones were written by hand after rpc.proto."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.apiserver.store.core import ABSENT, KeyValue, StoreEvent, Txn, TxnResult
from harness.apiserver.store.etcd3 import messages as m
from harness.wire.protobuf.wireformat import ProtobufError

HEADER = m.nested(1, m.message((1, 7), (2, 8), (3, 300), (4, 2)))


def kv(key: str, value: bytes, created: int, modified: int, version: int = 1) -> bytes:
    return m.message((1, key), (2, created), (3, modified), (4, version), (5, value))


def test_a_create_compares_with_no_revision_and_reads_what_is_in_its_way() -> None:
    assert m.txn_request(Txn("/a", b"v", ABSENT)) == bytes.fromhex(
        "0a08 1002 1a022f61 3000"  # compare: EQUAL (left out), MOD, key, mod_revision 0
        "1209 1207 0a022f61 120176"  # success: put
        "1a06 0a04 0a022f61"  # failure: range
    )


def test_an_update_of_a_leased_key_names_its_lease() -> None:
    assert m.txn_request(Txn("/a", b"v", 300, 5.0), 9) == bytes.fromhex(
        "0a09 1002 1a022f61 30ac02 120b 1209 0a022f61 120176 1809 1a06 0a04 0a022f61"
    )


def test_what_is_deleted_whatever_it_is_must_exist() -> None:
    assert m.txn_request(Txn("/a", None)) == bytes.fromhex(
        "0a0a 0801 1001 1a022f61 2800 1206 1a04 0a022f61 1a06 0a04 0a022f61"
    )


def test_an_unconditional_put_has_no_compare() -> None:
    assert m.txn_request(Txn("/a", b"")) == bytes.fromhex("1206 1204 0a022f61 1a06 0a04 0a022f61")


def test_other_requests() -> None:
    assert m.range_request("/a", "/b", 2, 300) == bytes.fromhex("0a022f61 12022f62 1802 20ac02")
    assert m.compaction_request(5) == bytes.fromhex("0805")
    assert m.grant_request(60) == bytes.fromhex("083c")
    assert m.watch_everything(0) == bytes.fromhex("0a0a 0a0100 120100 2001 3001")
    assert m.watch_everything(3) == bytes.fromhex("0a0c 0a0100 120100 1803 2001 3001")


def test_a_range_answers_with_keys_and_how_many_there_are() -> None:
    data = HEADER + m.nested(2, kv("/a", b"1", 2, 200)) + m.nested(2, kv("/b", b"", 3, 3)) + m.message((4, 9))
    found = m.range_answer(data)
    assert found.kvs == [KeyValue("/a", b"1", 2, 200), KeyValue("/b", b"", 3, 3)]
    assert (found.count, found.revision, found.more) == (9, 300, True)
    assert m.range_answer(data, 250).revision == 250


def test_a_transaction_answers_with_what_stands_where_it_failed() -> None:
    done = HEADER + m.message((2, 1)) + m.nested(3, m.nested(2, HEADER))
    assert m.txn_answer(done) == TxnResult(True, 300)
    failed = HEADER + m.nested(3, m.nested(1, HEADER + m.nested(2, kv("/a", b"1", 2, 4))))
    assert m.txn_answer(failed) == TxnResult(False, 300, KeyValue("/a", b"1", 2, 4))
    assert m.txn_answer(HEADER + m.nested(3, m.nested(1, HEADER))) == TxnResult(False, 300)


def test_compare_and_put_answers_with_the_version_that_stands() -> None:
    assert m.versioned_answer(HEADER + m.message((2, 1))) == (True, 300, (0, b""))
    found = m.nested(3, m.nested(1, m.nested(2, kv("k", b"77", 2, 4, version=6))))
    assert m.versioned_answer(HEADER + found) == (False, 300, (6, b"77"))


def test_events_know_what_was_before() -> None:
    created = m.nested(2, kv("/a", b"1", 5, 5))
    updated = m.nested(2, kv("/a", b"2", 5, 6)) + m.nested(3, kv("/a", b"1", 5, 5))
    deleted = (
        m.message((1, 1)) + m.nested(2, m.message((1, "/a"), (3, 7))) + m.nested(3, kv("/a", b"2", 5, 6))
    )
    data = HEADER + b"".join(m.nested(11, event) for event in (created, updated, deleted))
    answer = m.watch_answer(data)
    assert answer.events == [
        StoreEvent(5, "/a", b"1", 5),
        StoreEvent(6, "/a", b"2", 5, b"1"),
        StoreEvent(7, "/a", None, 5, b"2"),
    ]
    assert (answer.revision, answer.created, answer.canceled) == (300, False, False)


def test_a_watch_that_is_canceled_says_why() -> None:
    answer = m.watch_answer(HEADER + m.message((3, 1), (4, 1), (5, 40), (6, "because")))
    assert (answer.created, answer.canceled, answer.compacted, answer.reason) == (True, True, 40, "because")


def test_fields_that_nobody_knows_are_passed_over() -> None:
    assert m.grant_answer(m.message((2, 1234), (99, 5), (100, b"xyz")) + b"\x19" + bytes(8)) == 1234


@given(st.binary(max_size=60))
def test_bytes_of_any_kind_are_an_answer_or_the_one_error(data: bytes) -> None:
    for decode in (m.range_answer, m.txn_answer, m.watch_answer, m.versioned_answer, m.grant_answer):
        try:
            decode(data)
        except ProtobufError:
            continue


def test_an_event_without_a_key_is_an_error() -> None:
    with pytest.raises(ProtobufError):
        m.watch_answer(m.nested(11, m.message((1, 1))))
