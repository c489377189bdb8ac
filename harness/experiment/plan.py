"""What an experiment is: arms, samples, and what every run has in common."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from harness.wire.errors import ConfigError


class ArmPlan(msgspec.Struct, frozen=True):
    """One control plane, or one kind of client: its name in the report, how many members it has, faults as ``--fault``
    takes them, what else its runs' locust command gets."""

    name: str
    members: int
    faults: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


class ExperimentPlan(msgspec.Struct, frozen=True):
    """`samples` of each arm with `kubelets` nodes; sample k of every arm has the seed `seed` + k, so that arms meet the
    same draws. `arguments` go to every run's locust command, `environ` (CL2_* variables) to its environment. A
    `locustfile` without kubelets or scenario has `kubelets` 0 and `scenario` ""."""

    name: str
    title: str
    arms: tuple[ArmPlan, ...]
    samples: int = 3
    kubelets: int = 100
    spawn_rate: float = 50.0
    scenario: str = "density"
    seed: int = 1
    run_time_s: int = 900
    arguments: tuple[str, ...] = ()
    environ: dict[str, str] = {}
    locustfile: str = "kubelets"

    def validate(self) -> None:
        """Raises ConfigError."""
        if not self.arms:
            raise ConfigError(f"experiment {self.name}: it has no arms")
        names = [arm.name for arm in self.arms]
        if len({slug(name) for name in names}) < len(names):
            raise ConfigError(
                f"experiment {self.name}: two arms have the same name once it names a folder, of {', '.join(names)}"
            )
        if self.samples < 1:
            raise ConfigError(f"experiment {self.name}: samples: {self.samples} is less than 1")
        if self.kubelets < 1 and self.locustfile == "kubelets":
            raise ConfigError(f"experiment {self.name}: kubelets: {self.kubelets} is less than 1")

    @property
    def declared(self) -> tuple[str, ...]:
        """The settings in which the arms differ, as `harness.compare.guard` names them."""
        members, faults = {arm.members for arm in self.arms}, {arm.faults for arm in self.arms}
        return (*(["pool.members"] if len(members) > 1 else []), *(["faults"] if len(faults) > 1 else []))

    def in_turn(self) -> Iterator[tuple[ArmPlan, int]]:
        """(arm, sample from 1) in the order of running: every arm once, then every arm again, so that a machine that
        grows slower or faster meanwhile does so for all arms alike."""
        for sample in range(1, self.samples + 1):
            for arm in self.arms:
                yield arm, sample


def slug(name: str) -> str:
    """A name as part of a folder's name."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
