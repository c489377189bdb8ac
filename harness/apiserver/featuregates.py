"""The feature gates of an emulated apiserver, by upstream's names and defaults (as/features/kube_features.go, v1.36).

Only gates whose effect is emulated are known, so that a typo, or a gate that would change nothing, is an error rather
than a run that compares nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from harness.wire.errors import ConfigError


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """`list_from_cache_snapshot`: exact lists and pages are served from the cache's past states (KEP-4988), else from
    the store. `detect_cache_inconsistency`: each cache is compared with the store every five minutes or so."""

    list_from_cache_snapshot: bool = True
    detect_cache_inconsistency: bool = True

    @classmethod
    def parse(cls, gates: Mapping[str, bool]) -> FeatureGates:
        """From upstream's names (``ListFromCacheSnapshot``). Raises ConfigError."""
        fields = {}
        for name, value in gates.items():
            if name not in _FIELDS:
                close = difflib.get_close_matches(name, _FIELDS, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise ConfigError(
                    f"feature-gates: unknown gate {name!r}{hint} (emulated: {', '.join(_FIELDS)})"
                )
            if not isinstance(value, bool):
                raise ConfigError(f"feature-gates: {name} is {value!r}; allowed are true and false")
            fields[_FIELDS[name]] = value
        return cls(**fields)

    def describe(self) -> list[tuple[str, str, bool]]:
        """(name, stage, whether it is enabled) of each gate whose behaviour is here; the stage of what is generally
        available is "", as in kubernetes_feature_enabled."""
        chosen = [(name, "BETA", bool(getattr(self, field))) for name, field in _FIELDS.items()]
        return [*chosen, *((name, stage, True) for name, stage in _ALWAYS.items())]


_ALWAYS = {"ConsistentListFromCache": "", "SizeBasedListCostEstimate": "BETA", "WatchList": "BETA"}
"""Gates that are on upstream, whose effect is here and cannot be turned off."""

_FIELDS = {
    "ListFromCacheSnapshot": "list_from_cache_snapshot",
    "DetectCacheInconsistency": "detect_cache_inconsistency",
}


def parse_gates(text: str, *, any_gate: bool = False) -> dict[str, bool]:
    """The form of kube-apiserver's flag: ``ListFromCacheSnapshot=false,DetectCacheInconsistency=true``; "" is none.
    With `any_gate` those that only a real one knows too. Raises ConfigError."""
    gates: dict[str, bool] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = item.partition("=")
        if not equals or value.lower() not in ("true", "false"):
            raise ConfigError(f"feature-gates: {item!r} is not NAME=true or NAME=false")
        gates[name.strip()] = value.lower() == "true"
    if not any_gate:
        FeatureGates.parse(gates)
    return gates
