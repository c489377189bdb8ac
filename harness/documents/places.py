"""Where a key stands in the text of a document; looked for only once something is wrong."""

from __future__ import annotations

import yaml


def line_of(text: str, key: str) -> int:
    """The line of a key such as ``steps[0].phases[1].tuningSet`` in YAML; of its nearest ancestor that is there, and 0
    where that is the document itself."""
    try:
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return 0
    line = 0
    for part in key.replace("[", ".").replace("]", "").split("."):
        if isinstance(node, yaml.MappingNode):
            pair = next((pair for pair in node.value if _is(pair[0], part)), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and part.isdecimal() and int(part) < len(node.value):
            node = node.value[int(part)]
            line = node.start_mark.line + 1
        else:
            break
    return line


def _is(node: yaml.Node, key: str) -> bool:
    return isinstance(node, yaml.ScalarNode) and str(node.value).lower() == key.lower()
