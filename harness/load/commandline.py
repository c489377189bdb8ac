"""What ``swarmlet run`` hands on to Locust: every option that our locustfiles and Locust itself take, read before
anything is started by the parser that Locust will read it with."""

from __future__ import annotations

import argparse
import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import typer
import typer.core

from harness.load.arguments import RunOptions, add_arguments, options_from
from harness.wire.errors import ConfigError

_SKIP_PATCH = "LOCUST_SKIP_MONKEY_PATCH"
NOT_HERE = {
    "--scenario": "it is the command's argument",
    **dict.fromkeys(
        ("-f", "--locustfile", "--headless", "--only-summary", "--config-users"), "run sees to it"
    ),
    **dict.fromkeys(("-l", "--list", "--skip-log-setup", "--profile"), "Locust alone has it"),
    **dict.fromkeys(
        ("--worker", "--slave", "--master-host", "--master-port"), "a worker is started by locust"
    ),
    **dict.fromkeys(("--autostart", "--autoquit", "--web-host", "--web-port", "-P"), "a run has no web page"),
}
"""Options of Locust's that do not go together with a run that we start, and why."""


class PassingCommand(typer.core.TyperCommand):
    """A command that takes Locust's options beside its own: what it is given of these is in its context's `obj`, as
    a command line has them."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        own = {
            name: not getattr(parameter, "is_flag", False)
            for parameter in self.get_params(ctx)
            for name in parameter.opts
        }
        kept, ctx.obj = split(args, own, ctx.info_name or "run")
        return super().parse_args(ctx, kept)


def split(
    arguments: Sequence[str], own: Mapping[str, bool], command: str = "run"
) -> tuple[list[str], list[str]]:
    """What is the command's own, its positional arguments too, and what is to be handed on. `own` says of each of its
    options whether a value follows. Raises ConfigError for one that neither knows."""
    kept: list[str] = []
    passed: list[str] = []
    takes = _values_taken()
    words = iter(arguments)
    for word in words:
        flag = word.partition("=")[0]
        if not word.startswith("-") or word == "-":
            kept.append(word)
        elif flag in own:
            kept += [word, *_values(words, own[flag] and "=" not in word)]
        elif flag in takes and flag not in NOT_HERE:
            passed += [word, *_values(words, takes[flag] and "=" not in word)]
        else:
            raise ConfigError(f"{command} {flag}: {_why_not(flag, [*own, *takes])}")
    return kept, passed


def _values(words: Iterator[str], wanted: bool) -> list[str]:
    return [word for word in [next(words, None)] if word is not None] if wanted else []


def _why_not(flag: str, known: list[str]) -> str:
    if flag in NOT_HERE:
        return f"not with swarmlet run: {NOT_HERE[flag]}"
    near = difflib.get_close_matches(flag, [name for name in known if name not in NOT_HERE], n=1)
    return "there is no such option" + (f"; did you mean {near[0]}?" if near else "; see swarmlet options")


def check(arguments: Sequence[str]) -> RunOptions:
    """The options of the run that Locust would start with these arguments. Raises ConfigError."""
    parser = _parser()
    parser.error = _refuse  # type: ignore[method-assign, assignment]  # argparse prints and exits
    return options_from(parser.parse_args(list(arguments)))


def _refuse(message: str) -> None:
    raise ConfigError(f"run: {message}")


@cache
def known_options() -> dict[str, argparse.Action]:
    """Each option by its flags, short ones too."""
    return {name: action for action in _parser()._actions for name in action.option_strings}


@cache
def _values_taken() -> dict[str, bool]:
    """Each option, and whether a value follows it."""
    return {name: action.nargs != 0 for name, action in known_options().items()}


def _parser() -> argparse.ArgumentParser:
    """Locust's, with our group; Locust is imported here, and leaves this process's sockets as they are."""
    before = os.environ.get(_SKIP_PATCH)
    os.environ[_SKIP_PATCH] = "1"
    try:
        from locust.argument_parser import get_parser
    finally:
        if before is None:
            del os.environ[_SKIP_PATCH]
        else:
            os.environ[_SKIP_PATCH] = before
    parser: argparse.ArgumentParser = get_parser()
    if "--scenario" not in parser._option_string_actions:  # else a locustfile of ours was imported here
        add_arguments(parser)
    return parser
