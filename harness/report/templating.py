"""Jinja, for our own templates and for a user's.

A user's template gets ``report``, which is report.json (`harness.report.data.Report`, as dicts and lists), the filter
``number(unit)`` for figures and ``md`` for text in Markdown. It runs in Jinja's sandbox: it cannot reach anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harness.report import numbers
from harness.wire.errors import ConfigError

T = TypeVar("T")
_ENDINGS = (".j2", ".jinja", ".jinja2")
_MARKDOWN = str.maketrans(
    {
        **{mark: f"\\{mark}" for mark in "\\|`*_[]~#"},
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        "\n": " ",
        "\r": " ",
    }
)


def markdown_text(value: object) -> str:
    """Text that Markdown shows as it is, in a table too."""
    return str(value).translate(_MARKDOWN)


def code(value: object) -> str:
    """Text as a code span of Markdown, in a table too."""
    text = " ".join(str(value).replace("`", "'").split())
    return "`" + text.replace("|", "\\|") + "`" if text else ""


def own_environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.report"),
        autoescape=jinja2.select_autoescape(["html.j2"]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(md=markdown_text, code=code)
    return environment


def output_name(template: Path) -> str:
    """What a user's template writes: its name without Jinja's ending. Raises ConfigError for a name of ours."""
    name = template.stem if template.suffix in _ENDINGS else template.name
    if template.suffix not in _ENDINGS or name in ("report.html", "report.md", "report.json"):
        raise ConfigError(
            f"--template {template}: it writes a file of its name without .j2, so it must end in .j2 and not be"
            " called report.html.j2, report.md.j2 or report.json.j2"
        )
    return name


def load_template(path: Path) -> jinja2.Template:
    """A user's template, ready. Raises ConfigError with its file and line."""
    output_name(path)
    environment = ImmutableSandboxedEnvironment(
        loader=jinja2.FileSystemLoader(path.parent),
        autoescape=jinja2.select_autoescape([f"{kind}{end}" for kind in ("html", "xml") for end in _ENDINGS]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(md=markdown_text, number=numbers.number)
    if not path.is_file():
        raise ConfigError(f"--template {path}: there is no such file")
    return _told(path, lambda: environment.get_template(path.name))


def fill_template(path: Path, report: dict[str, Any]) -> str:
    """Raises ConfigError with the template's file and line."""
    template = load_template(path)
    return _told(path, lambda: template.render(report=report))


def _told(path: Path, work: Callable[[], T]) -> T:
    try:
        return work()
    except jinja2.TemplateSyntaxError as error:
        raise ConfigError(f"--template {path}:{error.lineno}: {error.message}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"--template {path}: not UTF-8: {error.reason}") from None
    except Exception as error:  # whatever an expression of the template may raise
        line = _line(error.__traceback__, path)
        told = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(f"--template {path}{line}: {told}") from None


def _line(traceback: TracebackType | None, path: Path) -> str:
    """Of the last frame in the template, to which Jinja maps the lines of its code."""
    line = ""
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == str(path):
            line = f":{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return line
