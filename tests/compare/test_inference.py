"""What the statistics of a comparison say: against scipy, and over many experiments that are drawn by seed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from harness.compare.inference import Contrast, Verdict, contrast_rows, smallest_p


def one(a: list[float | None], b: list[float | None], better: bool | None = True) -> Contrast:
    found = contrast_rows([a], [b], [better])[0]
    assert found is not None
    return found


def mean_difference(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(np.mean(b, axis=axis) - np.mean(a, axis=axis))


@pytest.mark.parametrize("sizes", [(4, 4), (5, 5), (3, 6), (7, 5)])
def test_p_is_scipys_of_all_labellings(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(sizes[0])
    a, b = (rng.normal(k, 1, n).tolist() for k, n in enumerate(sizes))
    theirs = stats.permutation_test((a, b), mean_difference, n_resamples=math.inf, vectorized=True)
    if sizes[0] == sizes[1]:  # of unequal numbers scipy doubles the smaller tail, and ours adds both
        assert one(a, b).p == pytest.approx(theirs.pvalue)
    else:
        observed = abs(theirs.statistic)
        assert one(a, b).p == pytest.approx(np.mean(np.abs(theirs.null_distribution) >= observed - 1e-9))


def test_p_of_many_samples_is_near_the_t_tests() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 1, 30), rng.normal(0.5, 1, 30)
    assert one(a.tolist(), b.tolist()).p == pytest.approx(stats.ttest_ind(a, b).pvalue, abs=0.01)


def test_effect_is_cliffs_delta() -> None:
    a, b = [1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 9.0]
    u = stats.mannwhitneyu(b, a).statistic
    assert one(a, b).effect == pytest.approx(2 * u / 16 - 1)
    assert one(a, a).effect == 0
    assert one([1.0, 2.0], [3.0, 4.0]).effect == 1


@pytest.mark.parametrize(
    ("better", "up", "verdict"),
    [
        (True, True, Verdict.WORSE),
        (True, False, Verdict.BETTER),
        (False, True, Verdict.BETTER),
        (False, False, Verdict.WORSE),
        (None, True, Verdict.HIGHER),
        (None, False, Verdict.LOWER),
    ],
)
def test_a_difference_that_is_shown_has_a_direction(better: bool | None, up: bool, verdict: Verdict) -> None:
    low, high = [1.0, 1.1, 0.9, 1.05, 0.95], [2.0, 2.1, 1.9, 2.05, 1.95]
    found = one(low, high, better) if up else one(high, low, better)
    assert found.verdict is verdict
    assert found.more == 0
    assert found.difference == pytest.approx(1.0 if up else -1.0)
    assert found.interval is not None
    assert found.interval[0] * found.interval[1] > 0


def test_constant_rows() -> None:
    same = one([7.0] * 5, [7.0] * 5)
    assert (same.verdict, same.p, same.interval, same.more) == (Verdict.NOT_SEEN, 1.0, (0.0, 0.0), None)
    other = one([7.0] * 5, [9.0] * 5)
    assert (other.verdict, other.interval) == (Verdict.WORSE, (2.0, 2.0))


@pytest.mark.parametrize(("n", "more"), [(1, 3), (2, 2), (3, 1)])
def test_too_few_samples_say_how_many_are_missing(n: int, more: int) -> None:
    found = one([1.0, 1.1, 0.9][:n], [2.0, 2.1, 1.9][:n])
    assert (found.verdict, found.more, found.interval) == (Verdict.TOO_FEW, more, None)
    assert (found.p is None) == (n == 1)


def test_noise_says_how_many_samples_would_settle_it() -> None:
    a, b = [1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 3.0, 4.0, 5.0, 6.0]
    found = one(a, b)
    assert found.verdict is Verdict.NOT_SEEN
    assert found.more == math.ceil(2 * ((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) ** 2) * 2.5) + 1 - 5
    assert one(a, [1.01, 2.0, 3.0, 4.0, 5.0]).more is None


def test_a_row_without_values_in_an_arm_has_no_contrast() -> None:
    assert contrast_rows([[None, None], [1.0, 2.0]], [[1.0, 2.0], [1.0, None]], [True, True])[0] is None


def test_missing_values_do_not_take_part() -> None:
    rows = contrast_rows(
        [[1.0, 1.1, 0.9, 1.05, 0.95, None], [5.0] * 6],
        [[2.0, 2.1, None, 1.9, 2.05, 1.95], [5.0] * 6],
        [True] * 2,
    )
    assert rows[0] is not None
    assert rows[0].verdict is Verdict.WORSE
    assert rows[0].difference == pytest.approx(1.0)


def test_five_samples_show_a_clear_difference_among_many_rows() -> None:
    """What Holm's correction cannot: 60 rows, of which 20 differ."""
    rng = np.random.default_rng(5)
    first = rng.normal(10, 1, (60, 5))
    other = rng.normal(10, 1, (60, 5))
    other[:20] += 15
    found = contrast_rows(first.tolist(), other.tolist(), [True] * 60)
    shown = [contrast is not None and contrast.verdict is Verdict.WORSE for contrast in found]
    assert sum(shown[:20]) == 20
    assert not any(shown[20:])
    assert all(
        contrast is not None and contrast.p_holm is not None and contrast.p_holm > 0.05 for contrast in found
    )


def test_corrected_chances_are_never_below_those_of_the_row_alone() -> None:
    rng = np.random.default_rng(6)
    for contrast in contrast_rows(
        rng.normal(0, 1, (30, 6)).tolist(), rng.normal(0.8, 1, (30, 6)).tolist(), [None] * 30
    ):
        assert contrast is not None
        assert contrast.p is not None
        assert contrast.p_adjusted is not None
        assert contrast.p_holm is not None
        assert contrast.p <= contrast.p_adjusted <= contrast.p_holm + 1e-9


@pytest.mark.parametrize("n", [5, 8])
def test_arms_that_do_not_differ_are_rarely_called_different(n: int) -> None:
    """20 comparisons, 40 rows each: some skewed, some of counts, all of a run moved together by its host's luck."""
    rng = np.random.default_rng(n)
    called = rows = 0
    for _ in range(20):
        luck = rng.normal(0, 1, 2 * n)
        table = [np.round(np.exp(0.3 * (luck + rng.normal(0, 1, 2 * n)) + 2), k % 3) for k in range(40)]
        found = contrast_rows(
            [row[:n].tolist() for row in table], [row[n:].tolist() for row in table], [True] * 40
        )
        called += sum(contrast is not None and contrast.verdict is not Verdict.NOT_SEEN for contrast in found)
        rows += len(found)
    assert called <= 0.05 * rows


@pytest.mark.parametrize("n", [5, 10])
@pytest.mark.parametrize("skewed", [False, True])
def test_the_interval_covers_the_difference_of_medians(n: int, skewed: bool) -> None:
    rng = np.random.default_rng(n)
    experiments, covered = 500, 0
    draw = (lambda: rng.lognormal(0, 0.5, n)) if skewed else (lambda: rng.normal(1, 0.5, n))
    first, other = (
        [draw().tolist() for _ in range(experiments)],
        [(3 * draw()).tolist() for _ in range(experiments)],
    )
    for contrast in contrast_rows(first, other, [True] * experiments):
        assert contrast is not None
        assert contrast.interval is not None
        covered += contrast.interval[0] <= 2.0 <= contrast.interval[1]
    assert 0.93 <= covered / experiments <= 0.98


def test_the_same_seed_gives_the_same() -> None:
    a, b = [1.0, 2.0, 4.0, 3.0, 9.0], [2.0, 2.5, 3.0, 7.0, 5.0]
    assert contrast_rows([a], [b], [True], seed=4) == contrast_rows([a], [b], [True], seed=4)


def test_smallest_p() -> None:
    assert smallest_p(3, 3) == pytest.approx(0.1)
    assert smallest_p(4, 4) == pytest.approx(2 / 70)
    assert smallest_p(3, 5) == pytest.approx(1 / 56)
