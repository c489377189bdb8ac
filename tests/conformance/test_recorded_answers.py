"""Every recorded step is answered as the real server answered it: by one member, and by any member of a pool."""

import pytest

from tests.conformance.inprocess import TOKEN, VirtualPool
from tests.conformance.recorded import CASES, described, replay, steps_of

TOTAL = 281


def test_all_that_was_recorded_is_replayed() -> None:
    assert len(CASES) == 18
    assert sum(len(steps_of(case)) for case in CASES) == TOTAL


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("members", [1, 3])
def test_a_case_is_answered_as_the_real_server_did(case: str, members: int) -> None:
    pool = VirtualPool(members, seed=members)
    try:
        steps = list(replay(case, pool, TOKEN))
    finally:
        pool.close()
    assert not described(steps), described(steps)
