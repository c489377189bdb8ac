"""The image: built from what is here, for a user who is not root. Building it needs a registry, so it is only read."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINES = (ROOT / "Containerfile").read_text().replace("\\\n", " ").splitlines()


def instructions(name: str) -> list[str]:
    return [line.removeprefix(name).strip() for line in LINES if line.startswith(f"{name} ")]


def test_everything_that_is_copied_is_here_and_is_not_ignored() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [word for line in instructions("COPY") if "--from" not in line for word in line.split()[:-1]]
    assert copied
    for path in copied:
        assert (ROOT / path).exists(), path
        assert path in kept


def test_what_the_wheel_takes_along_is_copied() -> None:
    """`force-include` fails where a folder is missing."""
    text = (ROOT / "pyproject.toml").read_text()
    (table,) = re.findall(r"force-include = \{(.*)\}", text)
    folders = re.findall(r'"([^"]+)" = ', table)
    copied = " ".join(instructions("COPY"))
    assert folders
    assert all(folder in copied for folder in folders)


def test_the_user_is_a_number_and_not_root() -> None:
    """A name could not be checked by runAsNonRoot."""
    assert instructions("USER") == ["10001:10001"]


def test_locust_is_what_starts_as_in_locusts_own_images() -> None:
    assert instructions("ENTRYPOINT") == ['["locust"]']


def test_it_is_built_with_the_python_that_the_lock_is_for() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    found = re.search(r"pip-compile with Python (\d\.\d+)", lock)
    assert found is not None
    assert all(f"python:{found[1]}-" in line for line in instructions("FROM"))
    assert any("--require-hashes -r requirements.lock" in line for line in instructions("RUN"))
