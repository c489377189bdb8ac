"""--feature-gates: upstream's names, nothing that would change nothing."""

from __future__ import annotations

import pytest

from harness.apiserver.featuregates import FeatureGates, parse_gates
from harness.wire.errors import ConfigError


def test_gates_have_upstreams_names_and_defaults() -> None:
    assert FeatureGates.parse({}) == FeatureGates(True, True)
    off = FeatureGates.parse({"ListFromCacheSnapshot": False})
    assert (off.list_from_cache_snapshot, off.detect_cache_inconsistency) == (False, True)


@pytest.mark.parametrize(
    ("text", "gates"),
    [
        ("", {}),
        ("ListFromCacheSnapshot=false", {"ListFromCacheSnapshot": False}),
        (
            "ListFromCacheSnapshot=False, DetectCacheInconsistency=true,",
            {"ListFromCacheSnapshot": False, "DetectCacheInconsistency": True},
        ),
    ],
)
def test_the_flags_form_is_understood(text: str, gates: dict[str, bool]) -> None:
    assert parse_gates(text) == gates


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ListFromCacheSnapshots=false", "did you mean 'ListFromCacheSnapshot'"),
        ("Nonsense=true", "unknown gate 'Nonsense' \\(emulated: ListFromCacheSnapshot, "),
        ("ListFromCacheSnapshot", "is not NAME=true or NAME=false"),
        ("ListFromCacheSnapshot=off", "is not NAME=true or NAME=false"),
    ],
)
def test_what_is_wrong_is_said(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_gates(text)


def test_a_value_that_is_no_boolean_is_refused() -> None:
    with pytest.raises(ConfigError, match="ListFromCacheSnapshot is 0; allowed are true and false"):
        FeatureGates.parse({"ListFromCacheSnapshot": 0})  # type: ignore[dict-item]
