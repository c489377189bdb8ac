"""A user's template: what it gets, what it cannot reach, how its mistakes are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.report.templating import code, fill_template, load_template, markdown_text, output_name
from harness.wire.errors import ConfigError

REPORT: dict[str, Any] = {"title": "a <b> | c", "rows": [{"key": "barrier"}]}


def filled(folder: Path, text: str, name: str = "mine.txt.j2") -> str:
    (folder / name).write_text(text)
    return fill_template(folder / name, REPORT)


def test_it_gets_the_report_and_its_filters(tmp_path: Path) -> None:
    text = "{{ report.title | md }} {{ 1534.2 | number('ms') }} {{ report.rows[0].key }}"
    assert filled(tmp_path, text) == r"a &lt;b&gt; \| c 1.53 s barrier"


def test_html_is_escaped_and_text_is_not(tmp_path: Path) -> None:
    assert filled(tmp_path, "{{ report.title }}", "mine.html.j2") == "a &lt;b&gt; | c"
    assert filled(tmp_path, "{{ report.title }}", "mine.txt.j2") == "a <b> | c"


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("ok\n{% if %}", 2, "Expected an expression"),
        ("ok\n\n{{ report.nothing }}", 3, "has no attribute 'nothing'"),
        ("{{ nobody }}", 1, "'nobody' is undefined"),
        ("ok\n{{ 1 / 0 }}", 2, "division by zero"),
        ("{{ ''.__class__.__mro__ }}", 1, "unsafe"),
        ("{% set _ = report.update({'title': 1}) %}", 1, "unsafe"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_line(tmp_path: Path, text: str, line: int, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        filled(tmp_path, text)
    message = str(raised.value)
    assert message.startswith(f"--template {tmp_path / 'mine.txt.j2'}:{line}: ")
    assert told in message
    assert "\n" not in message


def test_mistakes_of_syntax_are_seen_before_there_is_a_report(tmp_path: Path) -> None:
    (tmp_path / "mine.txt.j2").write_text("{% for %}")
    with pytest.raises(ConfigError, match=r"mine\.txt\.j2:1: "):
        load_template(tmp_path / "mine.txt.j2")


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        load_template(tmp_path / "mine.txt.j2")
    (tmp_path / "mine.txt.j2").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_template(tmp_path / "mine.txt.j2")


@pytest.mark.parametrize("name", ["mine.html", "report.html.j2", "report.json.jinja"])
def test_it_may_not_write_over_our_files_or_itself(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"must end in \.j2"):
        output_name(tmp_path / name)


def test_text_in_markdown_is_only_text() -> None:
    assert markdown_text("a|b <i> *c*\n# d") == r"a\|b &lt;i&gt; \*c\* \# d"
    assert code("a`b|c\nd") == r"`a'b\|c d`"
    assert code("") == ""
