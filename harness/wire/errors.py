"""The base of every error that swarmlet raises on purpose, sorted by what its reader can do about it."""

from __future__ import annotations


class SwarmletError(Exception):
    """One clear line: what, where, what is allowed. `exit_code` is what a command ends with."""

    exit_code = 1


class ConfigError(SwarmletError):
    """Something that the user gave is wrong: a file, a key, a value, a port, a target."""

    exit_code = 2


class RunInvalid(SwarmletError):
    """The run ended, but what it measured must not be used."""

    exit_code = 4
