"""The same small fleet in real time and at a pace: for the model, nothing is different."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.compare.run import Run
from harness.load.looplag import BEAT_S
from tests.load.plays import REST, WHOLE_RUNS, Outcome, Play, assert_ended_well

pytestmark = WHOLE_RUNS

RENEW_S = 0.5
LASTS_S = 4
KUBELETS = 5
MOST, LEAST = KUBELETS / RENEW_S, KUBELETS / (1.04 * RENEW_S)
"""Leases a second of five kubelets, jitter of their periods left out and at its most."""


def play(folder: Path, pace: float) -> Outcome:
    fleet = f"lease_renew_s={RENEW_S:g}"
    return Play(folder, *REST, "--fleet", fleet, "-t", f"{LASTS_S}s", "--pace", f"{pace:g}").end()


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[float, Outcome]:
    """By their pace."""
    folder = tmp_path_factory.mktemp("paces")
    paces = (1.0, 4.0)
    with ThreadPoolExecutor() as pool:
        ended = pool.map(lambda pace: play(folder / f"pace-{pace:g}", pace), paces)
        return dict(zip(paces, ended, strict=True))


@pytest.mark.parametrize("pace", [1.0, 4.0])
def test_it_ends_in_order_and_says_its_pace(outcomes: dict[float, Outcome], pace: float) -> None:
    outcome = outcomes[pace]
    assert_ended_well(outcome)
    assert outcome.manifest.pace.factor == pace


@pytest.mark.parametrize("pace", [1.0, 4.0])
def test_members_and_clients_count_as_many_renewals_in_a_second_of_the_model(
    outcomes: dict[float, Outcome], pace: float
) -> None:
    run = Run(outcomes[pace].record)
    frame = run.frame("apiserver_request_total", {"resource": "leases", "verb": "PUT"})["member-0"].dropna()
    manifest = outcomes[pace].manifest
    # What kept the loop of the kubelets waiting kept its beats waiting too: these say for how long it ran. Answers of a
    # crowded member may let some slip beyond that, though not three of four.
    ran_s = manifest.results["host"]["beats"] * BEAT_S
    assert frame.max() >= 0.5 * LEAST * ran_s - KUBELETS
    # Timers never fire before their time. A scrape may come late and find more than its second's: so not by scrapes.
    assert manifest.ended is not None
    lasted = manifest.ended - outcomes[pace].events("target-ready")[0]["t"]
    assert frame.max() <= MOST * lasted + KUBELETS
    sent = run.sent(user="kubelet", verb="update", names=("leases",))
    assert frame.max() - KUBELETS <= sent <= frame.max(), "some may be under way at the end"


@pytest.mark.parametrize("pace", [1.0, 4.0])
def test_it_lasts_as_long_for_the_model(outcomes: dict[float, Outcome], pace: float) -> None:
    manifest = outcomes[pace].manifest
    assert manifest.ended is not None
    ready = outcomes[pace].events("target-ready")[0]["t"]
    assert manifest.ended - ready >= LASTS_S
    scrapes = Run(outcomes[pace].record).frame("up").index
    assert len(scrapes) <= manifest.ended - manifest.started + 2, "one a second of the model"
