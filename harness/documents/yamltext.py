"""YAML as Kubernetes' Go programs read it.

PyYAML follows YAML 1.1 where go-yaml v2 (behind sigs.k8s.io/yaml) does not: timestamps become dates, ``10:20``
becomes 620, and ``1e+06`` stays text. Documents here hold only what JSON has. Several documents are read one by one
(apimachinery's NewYAMLOrJSONDecoder), so that a broken second one does not hide the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

_BOOLEANS = {
    "y": True,
    "yes": True,
    "true": True,
    "on": True,
    "n": False,
    "no": False,
    "false": False,
    "off": False,
}

_RESOLVERS = (
    (
        "tag:yaml.org,2002:bool",
        r"^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$",
        "yYnNtTfFoO",
    ),
    ("tag:yaml.org,2002:null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    (
        "tag:yaml.org,2002:int",
        r"^[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*)$",
        "-+0123456789",
    ),
    (
        "tag:yaml.org,2002:float",
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        "-+0123456789.",
    ),
    ("tag:yaml.org,2002:merge", r"^<<$", "<"),
)


class YamlError(Exception):
    """Text that is not YAML; `line` counts from 1 within the text given, 0 where unknown."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


class _Loader(yaml.CSafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  # PyYAML's own seam


def _boolean(loader: _Loader, node: yaml.ScalarNode) -> bool:
    return _BOOLEANS[loader.construct_scalar(node).lower()]


for _tag, _pattern, _first in _RESOLVERS:
    _Loader.add_implicit_resolver(_tag, re.compile(_pattern), list(_first))
_Loader.add_constructor("tag:yaml.org,2002:bool", _boolean)


def documents(text: str) -> Iterator[object]:
    """Each document that is not empty. Raises YamlError at the first one that does not parse."""
    loader = _Loader(text)
    try:
        while loader.check_data():  # type: ignore[no-untyped-call]
            document = loader.get_data()
            if document is not None and document != {}:
                yield document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(error.problem or str(error), mark.line + 1 if mark else 0) from error
    except (yaml.YAMLError, ValueError) as error:
        raise YamlError(" ".join(str(error).split()), 0) from error
    finally:
        loader.dispose()


def first_document(text: str) -> object:
    """The first document, None where there is none: ClusterLoader2 decodes one document of a config."""
    return next(documents(text), None)
