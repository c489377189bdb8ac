"""Values as YAML, for templates: whatever they hold, they are one scalar, or one value on one line."""

from __future__ import annotations

import textwrap

import yaml


def quoted(value: object) -> str:
    """In double quotes, on one line."""
    text = yaml.safe_dump(str(value), default_style='"', width=float("inf"))
    return text.strip()


def argument(value: object) -> str:
    """Of a container's args and env, in which Kubernetes replaces $(NAME) and makes one $ of two
    (kk/third_party/forked/golang/expansion)."""
    return quoted(str(value).replace("$", "$$"))


def flow(value: object) -> str:
    """Lists and mappings on one line."""
    return yaml.safe_dump(value, default_flow_style=True, width=float("inf"), sort_keys=False).strip()


def block(text: str, indent: int) -> str:
    """A text of many lines as one reads it, `indent` spaces in; in quotes where YAML would not give back the same."""
    if not _literal(text):
        return quoted(text)
    return ("|\n" if text.endswith("\n") else "|-\n") + textwrap.indent(text.removesuffix("\n"), " " * indent)


def _literal(text: str) -> bool:
    """Whether a literal block gives the same text again: it has lines, none of which begins the text with a blank, at
    most one newline ends it, and nothing in it that YAML does not print."""
    lines = text.removesuffix("\n").split("\n")
    return (
        bool(lines[0])
        and bool(lines[-1])
        and not lines[0].startswith((" ", "\t"))
        and all(line.replace("\t", " ").isprintable() for line in lines)
        and not any(line.isspace() for line in lines)
    )
