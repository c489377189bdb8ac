"""From what a file says to the command line that says the same."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.load.commandline import NOT_HERE, known_options

_OF_THE_EXPERIMENT = {
    "--seed": "the experiment's own seed is meant for it",
    **dict.fromkeys(("--arm", "--sample", "--record"), "the experiment gives it to each run"),
    **dict.fromkeys(("--config", "--help", "--version"), "it does not belong to a run"),
}


class Mistake(Exception):
    """What is wrong at a key of the file."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key


class Given(NamedTuple):
    """An option by its flag, its values as words, and the key of the file that says so. `items` are the parts of a
    value such as ``qps=10,burst=20``, which are replaced one by one."""

    flag: str
    words: tuple[str, ...]
    key: str
    items: Mapping[str, str] | None = None


def given_by(options: Mapping[str, Any], key: str, folder: Path) -> list[Given]:
    """`options` by their names without dashes; paths count from `folder`, where the file is. Raises Mistake."""
    return [_given(f"--{name}", value, key, folder) for name, value in options.items()]


def _given(flag: str, value: Any, key: str, folder: Path) -> Given:
    action = known_options().get(flag)
    why = _OF_THE_EXPERIMENT.get(flag) or (flag != "--scenario" and NOT_HERE.get(flag))
    if why:
        raise Mistake(key, f"not in an experiment: {why}")
    if action is None:
        names = [name.removeprefix("--") for name in known_options() if name.startswith("--")]
        near = difflib.get_close_matches(flag.removeprefix("--").replace("_", "-"), names, n=1)
        hint = f"did you mean {near[0]}?" if near else "see swarmlet options"
        raise Mistake(key, f"there is no such option; {hint}")
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise Mistake(key, f"{value!r}: true or false is needed")
        return Given(flag, ("",) if value else (), key)
    if isinstance(value, Mapping):
        items = {str(name): _word(f"{key}.{name}", item) for name, item in value.items()}
        return Given(flag, _words(action, items, key), key, items)
    if isinstance(value, list):
        words = tuple(_item(f"{key}[{index}]", item) for index, item in enumerate(value))
        if not isinstance(action, argparse._AppendAction):
            if "," not in str(action.metavar):
                raise Mistake(key, "one value is needed, not a list")
            words = (",".join(words),)
        return Given(flag, words, key)
    word = _word(key, value)
    if action.metavar == "FILE" and (folder / word).is_file():
        word = str((folder / word).resolve())
    return Given(flag, (word,), key)


def _words(action: argparse.Action, items: Mapping[str, str], key: str) -> tuple[str, ...]:
    """Of a mapping: one word of all items, or a word for each, as the option takes them."""
    told = str(action.metavar)
    pairs = [f"{name}={item}" for name, item in items.items()]
    if "=" not in told and action.dest != "pool_feature_gates":
        raise Mistake(key, f"one value is needed, not keys ({told})")
    return (",".join(pairs),) if told.endswith(",...") else tuple(pairs)


def _item(key: str, value: Any) -> str:
    """An entry of a list: a word, or ``a: 1`` and ``b: 2`` as ``a=1,b=2``."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={_word(f'{key}.{name}', item)}" for name, item in value.items())
    return _word(key, value)


def _word(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise Mistake(key, f"{value!r:.60}: a text or a number is needed")
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def command_words(given: Sequence[Given]) -> list[str]:
    """The arguments, later ones first where an option is said twice: faults add up, items are replaced one by one."""
    merged: dict[str, Given] = {}
    for option in given:
        before = merged.get(option.flag)
        if before is not None and option.flag == "--fault":
            option = option._replace(words=before.words + option.words)
        elif before is not None and option.items is not None and before.items is not None:
            items = {**before.items, **option.items}
            words = _words(known_options()[option.flag], items, option.key)
            option = option._replace(words=words, items=items)
        merged[option.flag] = option
    return [
        f"{flag}={word}"
        if known_options()[flag].nargs != 0
        else flag  # with =: a value may begin with a dash
        for flag, option in merged.items()
        for word in option.words
    ]


def place_of(message: str, given: Sequence[Given]) -> str:
    """The key that a message about a command line is about, "" where it does not say. Messages name an option by its
    flag, or a pool's setting by its name."""
    by_flag = {name: option.key for option in given for name in known_options()[option.flag].option_strings}
    named = re.findall(r"(?<![\w-])--?[a-z][\w-]*", message)
    named += [f"--{word.replace('_', '-')}" for word in re.findall(r"^[a-z][\w-]*", message)]
    return next((by_flag[name] for name in named if name in by_flag), "")
