"""``swarmlet scenario ...``: what a ClusterLoader2 config comes to, before anything runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from harness.wire.errors import ConfigError

app = typer.Typer(help="ClusterLoader2 configs, before they run.", no_args_is_help=True)

Scenario = Annotated[
    str, typer.Argument(help="a ClusterLoader2 config or suite, or the name of one of ours", metavar="FILE")
]
Nodes = Annotated[int, typer.Option(help="nodes of the cluster that it is for")]
Overrides = Annotated[list[str] | None, typer.Option(help="ClusterLoader2 override file; may be repeated")]


class _Test(NamedTuple):
    """A config and its overrides; `name` is that of a suite's test, "" where there is no suite."""

    name: str
    config: Path
    overrides: list[str]


@app.command("render")
def render(scenario: Scenario, nodes: Nodes = 100, overrides: Overrides = None) -> None:
    """Print the resolved config: modules included, placeholders replaced, defaults filled in.

    Environment variables that begin with CL2_ count, as in a run. A config that cannot be run is printed too, and then
    the reason given.
    """
    from harness.clusterloader import load_config
    from harness.clusterloader.resolved import resolved_text
    from harness.clusterloader.validation import validate

    for test in _tests(scenario, overrides or []):
        if test.name:
            typer.echo(f"---\n# {test.name}")
        config = load_config(test.config, nodes, test.overrides, os.environ, check=False)
        typer.echo(resolved_text(config), nl=False)
        validate(config)


@app.command("plan")
def plan(scenario: Scenario, nodes: Nodes = 100, overrides: Overrides = None) -> None:
    """Print the steps, objects and operations, the expected time, and what is not supported; of a kperf profile its
    specs and requests."""
    from harness.clusterloader import load_config
    from harness.clusterloader.plan import plan_lines
    from harness.kperf import describe, is_profile, load_profile

    path = _file(scenario)
    if is_profile(path):
        for line in describe(load_profile(path), str(path)):
            typer.echo(line)
        return
    for test in _tests(scenario, overrides or []):
        if test.name:
            typer.echo(f"{test.name}:")
        for line in plan_lines(load_config(test.config, nodes, test.overrides, os.environ)):
            typer.echo(line)


def _tests(scenario: str, overrides: list[str]) -> Iterator[_Test]:
    """The config, or each of a suite. Raises ConfigError."""
    from harness.clusterloader import is_suite, load_suite
    from harness.kperf import is_profile

    path = _file(scenario)
    if is_profile(path):
        raise ConfigError(f"{path}: a kperf profile, which is no template; `swarmlet scenario plan` shows it")
    if not is_suite(path):
        yield _Test("", path, overrides)
        return
    for item in load_suite(path):
        yield _Test(item.identifier, item.config, [*overrides, *map(str, item.overrides)])


def _file(scenario: str) -> Path:
    """Raises ConfigError."""
    from harness.load.scenarios import find_scenario

    path = Path(find_scenario(scenario))
    if not path.name:
        raise ConfigError(f"scenario {scenario!r}: there is nothing to show of it")
    return path
