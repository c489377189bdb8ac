"""An informer's store says what changed."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from harness.client.store import (
    Change,
    Changed,
    ObjectMeta,
    ObjectView,
    SingleStore,
    Store,
    decode_object_view,
    decoder_for,
    object_key,
)


def _view(name: str, version: str, uid: str = "u", namespace: str = "ns") -> ObjectView:
    return ObjectView(ObjectMeta(name, namespace, uid, version))


def test_a_view_is_decoded_from_any_object() -> None:
    view = decode_object_view(
        b'{"kind":"Pod","metadata":{"name":"a","uid":"u","resourceVersion":"5"},"spec":{}}'
    )
    assert view == _view("a", "5", namespace="")
    assert object_key(view) == "a"
    assert object_key(_view("a", "5")) == "ns/a"
    assert decoder_for(ObjectView) is decode_object_view


def test_whether_an_object_is_new_depends_on_the_store() -> None:
    store = Store()
    first, second = _view("a", "1"), _view("a", "2")
    assert store.apply("k", False, first) == Changed("k", Change.ADDED, first)
    assert store.apply("k", False, second) == Changed("k", Change.MODIFIED, second, first)
    gone = _view("a", "3")
    assert store.apply("k", True, gone) == Changed("k", Change.DELETED, gone, second)
    assert store.apply("k", True, gone) is None
    assert len(store) == 0


def test_a_replacement_comes_as_differences_and_a_last_word() -> None:
    store = Store()
    old = {name: _view(name, "1") for name in "abcd"}
    store.replace("k", {f"ns/{name}": view for name, view in old.items()})
    new = {
        "ns/a": _view("a", "1"),
        "ns/b": _view("b", "2"),
        "ns/c": _view("c", "1", uid="v"),
        "ns/e": _view("e", "9"),
    }
    assert store.replace("k", new) == [
        Changed("k", Change.DELETED, old["d"], old["d"]),
        Changed("k", Change.MODIFIED, new["ns/b"], old["b"]),
        Changed("k", Change.DELETED, old["c"], old["c"]),
        Changed("k", Change.ADDED, new["ns/c"]),
        Changed("k", Change.ADDED, new["ns/e"]),
        Changed("k", Change.REPLACED),
    ]
    assert (store.get("ns/b"), "ns/d" in store, list(store.keys())) == (new["ns/b"], False, list(new))
    assert list(store.values()) == list(new.values())


_STATES = st.dictionaries(
    st.sampled_from("abcd"), st.tuples(st.integers(1, 3), st.integers(1, 2)), max_size=4
)


@given(_STATES, _STATES)
def test_the_differences_lead_to_the_new_state(
    before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]
) -> None:
    def state(versions: dict[str, tuple[int, int]]) -> dict[str, Any]:
        return {
            f"ns/{name}": _view(name, str(version), str(uid)) for name, (version, uid) in versions.items()
        }

    store, mirror = Store(), state(before)
    store.replace("k", state(before))
    for changed in store.replace("k", state(after))[:-1]:
        key = object_key(changed.object)
        if changed.change is Change.DELETED:
            del mirror[key]
        else:
            assert (key in mirror) == (changed.change is Change.MODIFIED)
            mirror[key] = changed.object
    assert mirror == state(after)


_ONE = st.none() | st.tuples(st.integers(1, 3), st.integers(1, 2))
_STEPS = st.lists(st.tuples(st.sampled_from(("apply", "delete", "replace")), _ONE), max_size=12)


@given(_STEPS)
def test_a_store_of_one_object_says_what_a_store_says(
    steps: list[tuple[str, tuple[int, int] | None]],
) -> None:
    store, single = Store(), SingleStore()
    for what, state in steps:
        obj = None if state is None else _view("a", str(state[0]), str(state[1]))
        if what == "replace":
            objects = {} if obj is None else {"ns/a": obj}
            assert single.replace("k", dict(objects)) == store.replace("k", objects)
        elif obj is not None:
            assert single.apply("k", what == "delete", obj) == store.apply("k", what == "delete", obj)
        assert (len(single), list(single.keys())) == (len(store), list(store.keys()))
        assert list(single.values()) == list(store.values())
        assert single.get("ns/a") == store.get("ns/a")
        assert ("ns/a" in single, "ns/b" in single) == ("ns/a" in store, False)


def test_views_are_small_and_outside_the_garbage_collector() -> None:
    view = _view("a", "1")
    assert msgspec.structs.asdict(view.metadata)["resource_version"] == "1"
    assert not view.__struct_config__.gc
