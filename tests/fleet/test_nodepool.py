"""The pool of nodes against a plain search."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from harness.fleet.nodepool import NodePool
from harness.fleet.placement import Placing
from harness.fleet.schedulable import Demand, NodeState

_NAMES = st.sampled_from("abcde")
_STEPS = st.one_of(
    st.tuples(st.just("update"), _NAMES, st.booleans(), st.integers(0, 4), st.sampled_from([{}, {"k": "v"}])),
    st.tuples(st.just("remove"), _NAMES),
    st.tuples(st.just("count"), _NAMES, st.sampled_from([1, -1])),
)


@given(steps=st.lists(_STEPS, max_size=60), selector=st.sampled_from([{}, {"k": "v"}]))
def test_the_choice_is_a_least_loaded_node_that_fits(steps: list[tuple], selector: dict[str, str]) -> None:
    pool = NodePool(Random(1))
    nodes: dict[str, tuple[bool, int, dict[str, str]]] = {}
    pods: dict[str, int] = {}
    for step in steps:
        if step[0] == "update":
            nodes[step[1]] = step[2:]
            pool.update(step[1], NodeState(*step[2:]))
        elif step[0] == "remove":
            nodes.pop(step[1], None)
            pool.remove(step[1])
        elif pods.get(step[1], 0) + step[2] >= 0:
            pods[step[1]] = pods.get(step[1], 0) + step[2]
            pool.count(step[1], step[2], Demand())
        pool.validate()
    fitting = {
        name: pods.get(name, 0)
        for name, (usable, capacity, labels) in nodes.items()
        if usable and pods.get(name, 0) < capacity and selector.items() <= labels.items()
    }
    chosen = pool.choose(Demand(Placing(selector or None)))
    if not fitting:
        assert chosen is None
    else:
        assert chosen is not None
        assert fitting[chosen] == min(fitting.values())
