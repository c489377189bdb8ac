"""A store that is away for a while, as a member sees it: what fails, what goes on, what begins anew."""

from __future__ import annotations

import pytest

from harness.apiserver.clock import resolved
from harness.apiserver.store.core import Compacted, StoreError, StoreEvent, StoreUnavailable, TxnResult
from harness.apiserver.store.storage import unavailable
from tests.apiserver.cache.test_storage import Sink
from tests.apiserver.cache.world import ROWS, World, secret

AWAY = unavailable("connection refused")
SECRETS = ROWS["secrets"]


def test_an_outage_ends_no_watch_and_is_over_when_the_store_is_back() -> None:
    world = World()
    storage, sink = world.member.storage, Sink()
    storage.watch(SECRETS, SECRETS.prefix, sink, 1)
    storage.on_interrupted(AWAY)
    assert (storage.outage, storage.error) == (AWAY, None)
    storage.on_resumed()
    world.put(secret("a"))
    assert storage.outage is None
    assert (sink.revisions, sink.lost) == ([2], [])


def test_after_missed_events_watches_end_and_the_next_ones_are_served() -> None:
    world = World()
    storage, before = world.member.storage, Sink()
    storage.watch(SECRETS, SECRETS.prefix, before, 1)
    world.put(secret("a"))
    storage.on_lost(Compacted(2, 5))
    assert [type(error) for error in before.lost] == [Compacted]
    assert storage.error is None
    after = Sink()
    storage.watch(SECRETS, SECRETS.prefix, after, 1)
    world.put(secret("b"))
    assert after.revisions == [2, 3]
    assert before.revisions == [2]


def test_a_cache_that_missed_events_is_filled_again() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.put(secret("a"))
    world.member.storage.on_lost(Compacted(2, 5))
    world.settle(1.0)
    assert cacher.ready
    world.put(secret("b"))
    assert len(cacher) == 2


@pytest.mark.parametrize("error", [Compacted(1, 5), AWAY])
def test_an_answer_whose_event_is_missed_is_given_where_the_store_has_the_write(error: StoreError) -> None:
    world = World()
    storage = world.member.storage
    storage._store.txn = lambda txn: resolved(TxnResult(True, 7))  # type: ignore[method-assign]
    promise = world.write(secret("a"))
    world.settle()
    given: list[object] = []
    promise.then(given.append)
    assert given == [], "the own replica has not applied it"
    storage.on_lost(error)
    world.settle()
    assert given == [promise]
    if isinstance(error, Compacted):
        assert promise.result().revision == 7
    else:
        with pytest.raises(StoreUnavailable):
            promise.result()


def test_progress_without_events_is_handed_on() -> None:
    world = World()
    storage, sink = world.member.storage, Sink()
    watch = storage.watch(SECRETS, SECRETS.prefix, sink, 1)
    storage.on_progress(40)
    watch.request_progress()
    assert sink.progress[-1] == 40
    assert storage.until_delivered(40).done


def test_several_events_may_have_one_revision() -> None:
    world = World()
    storage, sink = world.member.storage, Sink()
    storage.watch(SECRETS, SECRETS.prefix, sink, 1)
    keys = [SECRETS.key("ns", name) for name in "ab"]
    storage.on_events([StoreEvent(9, key, None, 2, b"{}") for key in keys])
    assert sink.revisions == [9, 9]


def test_keys_that_are_no_resources_are_passed_over() -> None:
    world = World()
    storage, sink = world.member.storage, Sink()
    storage.watch(SECRETS, SECRETS.prefix, sink, 1)
    strange = ("/registry/masterleases/10.0.0.1", "/registry/ranges/serviceips", "/elsewhere", "/")
    storage.on_events([StoreEvent(2 + at, key, b"\0", 2 + at) for at, key in enumerate(strange)])
    assert storage.revision == 5
    assert sink.revisions == []


def test_a_real_etcd_is_charged_to_nobodys_modelled_cores() -> None:
    world = World(cores=1)
    host, storage = world.member.host, world.member.storage
    storage._modelled = False
    promise = world.write(secret("a"))
    storage.range(SECRETS, SECRETS.prefix)
    world.settle(1.0)
    assert promise.done
    assert host.busy_s == 0
