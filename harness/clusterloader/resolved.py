"""A test as it was understood: modules included, placeholders replaced, defaults filled in.

ClusterLoader2 writes the same to generatedConfig_<name>.yaml (cmd/clusterloader.go: dumpTestConfig), for people to see
what a config came to; keys are spelled as its API spells them, durations as Go prints them.
"""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from harness.clusterloader.config import Config
from harness.clusterloader.durations import Seconds
from harness.wire.gotext import duration


def resolved(config: Config) -> dict[str, Any]:
    """The test in plain values, keys in the config's usual order; what is empty is left out."""
    test = msgspec.structs.replace(
        config.read, namespace=config.namespace, automanaged_namespaces=0, steps=[]
    )
    steps = {"steps": [_plain(step) for step in config.steps]}
    found: dict[str, Any] = _plain(test)
    order = ("name", "dependencies", "namespace", "tuningSets", "chaosMonkey")
    return {**{key: found[key] for key in order if key in found}, **steps}


def resolved_text(config: Config) -> str:
    """The same as YAML."""
    return yaml.dump(
        resolved(config),
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=False,
        width=110,
        allow_unicode=True,
    )


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        """Values that stand in several places are written in each."""
        return True


def _plain(value: object) -> Any:
    """`value` as YAML has it; of structs the fields that are not empty."""
    if isinstance(value, Seconds):
        return ("-" if value < 0 else "") + duration(abs(value))
    if isinstance(value, msgspec.Struct):
        fields = ((field.encode_name, getattr(value, field.name)) for field in msgspec.structs.fields(value))
        kept = {key: _plain(item) for key, item in fields if item is not None and item != ""}
        return {key: item for key, item in kept.items() if item not in ([], {}, "0s")}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value
