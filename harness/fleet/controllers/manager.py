"""One machine that runs a controller manager's controllers over shared informers.

Theory of operation: an event belongs to an informer, which updates its store and tells its subscribers, who put keys
into queues; or to a controller, whose sync goes on with an answer. Then every controller that has something to do gives
keys to its free workers. Nothing waits anywhere else, and time is what the shell says. Requests carry the controller's
name as their client: the shell may send each over a connection of its own, and `manager_limiters` gives each the bucket
that client-go would.

Keys: (("informer", resource), part) of informers, (controller, "work", worker, place), (controller, "record"),
(controller, "queue"), (controller, "tick").
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import cast

from harness.client.limiter import TokenBucket
from harness.client.machine import Action, Event
from harness.fleet.controllers.controller import Controller, Hub
from harness.fleet.controllers.informers import CLIENT
from harness.fleet.controllers.registry import CONTROLLERS
from harness.wire.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ManagerOptions:
    """Defaults are kube-controller-manager's."""

    controllers: tuple[str, ...] = tuple(CONTROLLERS)
    """Which run, by the name of their service account."""
    qps: float = 20.0
    """Requests a second of each controller's client; kube-api-qps."""
    burst: int = 30
    """Tokens of its bucket; kube-api-burst."""
    provisioned_elsewhere: tuple[str, ...] = ()
    """Drivers that have a provisioner of their own: their volumes are neither made nor deleted here."""
    labels: tuple[tuple[str, str], ...] = ()
    """On volumes, which belong to nothing that is removed after a run."""


def manager_limiters(options: ManagerOptions) -> dict[str, TokenBucket | None]:
    """What `harness.client.rest.Rest` needs around a `ControllerManager`: a bucket for each client."""
    limiters: dict[str, TokenBucket | None] = {CLIENT: TokenBucket(options.qps, options.burst)}
    for name in options.controllers:
        factor = CONTROLLERS[name].qps_factor
        limiters[name] = TokenBucket(options.qps * factor, int(options.burst * factor))
    return limiters


class ControllerManager:
    """A machine. Raises ConfigError for a name that no controller has."""

    __slots__ = ("_controllers", "_hub")

    def __init__(self, options: ManagerOptions, rng: Random, epoch_s: float) -> None:
        self._hub = Hub(rng, epoch_s)
        self._hub.provisioned_elsewhere = frozenset(options.provisioned_elsewhere)
        self._hub.labels = dict(options.labels)
        self._controllers: dict[str, Controller] = {}
        for name in options.controllers:
            self._controllers[name] = _class_of(name)(self._hub)

    def __repr__(self) -> str:
        return f"ControllerManager({', '.join(map(repr, self._controllers.values()))})"

    def controller(self, name: str) -> Controller:
        return self._controllers[name]

    def start(self, now: float) -> list[Action]:
        self._hub.now = now
        for informer in self._hub.informers.values():
            informer.start(now, self._hub.out)
        for controller in self._controllers.values():
            controller.start()
        return self._taken()

    def handle(self, event: Event, now: float) -> list[Action]:
        self._hub.now = now
        part = event.key[0]
        if type(part) is tuple:
            informer = self._hub.informers[cast(tuple[str, str], part)]
            informer.handle(event, now, self._hub.out)
        else:
            self._controllers[str(part)].handle(event)
        for controller in self._controllers.values():
            if controller.queue.touched:
                controller.pump()
        return self._taken()

    def stop(self, now: float) -> list[Action]:
        self._hub.now = now
        for informer in self._hub.informers.values():
            informer.stop(now, self._hub.out)
        for controller in self._controllers.values():
            controller.stop()
        return self._taken()

    def _taken(self) -> list[Action]:
        out, self._hub.out = self._hub.out, []
        return out


def _class_of(name: str) -> type[Controller]:
    found = CONTROLLERS.get(name)
    if found is None:
        raise ConfigError(f"no controller is called {name!r}; there are {', '.join(CONTROLLERS)}")
    return found
