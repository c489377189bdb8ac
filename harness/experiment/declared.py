"""What arms differ in by intention, under the names that a run's record has for it.

A record keeps the options of its run as they were understood (`RunOptions`); so the arms' command lines are read by the
parser that the runs use, and what differs then is what the guard will find and must not report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from harness.compare.guard import FOLLOWS, OF_THE_SAMPLE, flat
from harness.load.commandline import check


def declared_settings(arms: Sequence[tuple[Sequence[str], Mapping[str, str]]]) -> tuple[str, ...]:
    """`arms` are the arguments and the variables of each. Raises ConfigError for arguments that a run would refuse."""
    settings = [dict(flat("", msgspec.to_builtins(check(arguments), enc_hook=str))) for arguments, _ in arms]
    names = sorted({name for each in settings for name in each})
    found = [
        name for name in names if name not in OF_THE_SAMPLE and len({each.get(name) for each in settings}) > 1
    ]
    if any(environ != arms[0][1] for _, environ in arms):
        found.append("scenario.resolved")
    for name in found:  # it grows while it is walked
        found += [other for other in FOLLOWS.get(name, ()) if other not in found]
    return tuple(found)
