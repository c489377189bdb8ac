"""What an experiment is: arms, samples, and in which order these are run."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from harness.experiment.declared import declared_settings
from harness.wire.errors import ConfigError

Order = Literal["in-turn", "shuffled"]


class ArmPlan(msgspec.Struct, frozen=True):
    """One control plane, or one kind of client: its name in the report, and what its runs' locust command and
    environment get beside what all arms share."""

    name: str
    arguments: tuple[str, ...] = ()
    environ: dict[str, str] = {}


class ExperimentPlan(msgspec.Struct, frozen=True):
    """`samples` of each arm; sample k of every arm has the seed `seed` + k, so that arms meet the same draws.

    `arguments` go to every run's locust command, `environ` (CL2_* variables) to its environment; `locustfiles` are
    names of ours, or paths. Before each sample the host has `cool_down_s` seconds to become idle. A sample that failed
    is run again at the end, at most `retries` times.
    """

    name: str
    title: str
    arms: tuple[ArmPlan, ...]
    samples: int = 3
    seed: int = 1
    order: Order = "in-turn"
    cool_down_s: float = 0.0
    retries: int = 1
    arguments: tuple[str, ...] = ()
    environ: dict[str, str] = {}
    locustfiles: tuple[str, ...] = ("kubelets",)

    def validate(self) -> None:
        """Raises ConfigError."""
        if not self.arms:
            raise ConfigError(f"experiment {self.name}: it has no arms")
        for arm in self.arms:
            if not slug(arm.name):
                raise ConfigError(
                    f"experiment {self.name}: an arm's name needs a letter or a digit: {arm.name!r}"
                )
        names = [arm.name for arm in self.arms]
        if len({slug(name) for name in names}) < len(names):
            raise ConfigError(
                f"experiment {self.name}: two arms have the same name once it names a folder, of {', '.join(names)}"
            )
        for key, value, least in (("samples", self.samples, 1), ("retries", self.retries, 0)):
            if value < least:
                raise ConfigError(f"experiment {self.name}: {key}: {value} is less than {least}")
        if not 0 <= self.cool_down_s < float("inf"):
            raise ConfigError(
                f"experiment {self.name}: cool_down: {self.cool_down_s:g} is no number of seconds"
            )

    def named(self, arms: Sequence[str]) -> tuple[str, ...]:
        """Names of arms in the plan's order: all where `arms` is empty. Raises ConfigError for one that it lacks."""
        known = [arm.name for arm in self.arms]
        for name in arms:
            if name not in known:
                raise ConfigError(f"experiment {self.name}: no arm {name!r}; there are {', '.join(known)}")
        return tuple(name for name in known if not arms or name in arms)

    def waits_s(self, arm: ArmPlan) -> float:
        """How long at most a sample of `arm` waits for an idle host. Over virtual time it does not matter what else is
        at work."""
        virtual = "--virtual" in (*self.arguments, *arm.arguments)
        return 0.0 if virtual else self.cool_down_s

    def declared(self) -> tuple[str, ...]:
        """The settings in which the arms differ, as `harness.compare.guard` names them. Raises ConfigError for
        arguments that a run would refuse."""
        arms = [(sample_arguments(self, arm, 1, Path("record")), arm.environ) for arm in self.arms]
        return declared_settings(arms)

    def turns(self) -> Iterator[tuple[ArmPlan, int]]:
        """(arm, sample from 1) in the order of running: every arm once, then every arm again, so that a machine that
        grows slower or faster meanwhile does so for all arms alike. Shuffled, each round has an order of its own, drawn
        by the seed: then no arm is always the one after another."""
        for sample in range(1, self.samples + 1):
            arms = list(self.arms)
            if self.order == "shuffled":
                random.Random(f"{self.seed}/order/{sample}").shuffle(arms)
            for arm in arms:
                yield arm, sample


def sample_arguments(plan: ExperimentPlan, arm: ArmPlan, sample: int, record: Path) -> list[str]:
    """What one sample's locust command gets."""
    own = [
        "--seed",
        str(plan.seed + sample),
        "--arm",
        arm.name,
        "--sample",
        str(sample),
        "--record",
        str(record),
    ]
    return [*plan.arguments, *arm.arguments, *own]


def against_itself(plan: ExperimentPlan, name: str = "") -> ExperimentPlan:
    """The plan with one of its arms, the first where `name` is "", twice: whatever is then called different is chance.
    Raises ConfigError for a name that no arm has."""
    first = plan.named([name] if name else [])[0]
    arm = next(arm for arm in plan.arms if arm.name == first)
    again = msgspec.structs.replace(arm, name=f"{arm.name} again")
    title = f"{plan.title}: {arm.name} against itself"
    return msgspec.structs.replace(plan, arms=(arm, again), title=title)


def slug(name: str) -> str:
    """A name as part of a folder's name."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
