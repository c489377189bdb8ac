"""The operations of a phase: which replicas it creates, updates or deletes, in which order.

Mirrors clusterloader2/pkg/test/simple_test_executor.go: ExecutePhase.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from harness.clusterloader.schema import ObjectSpec


class Operation(Enum):
    """The value is the word of upstream's error messages."""

    CREATE = "creation"
    PATCH = "updating"
    DELETE = "deletion"


class Bundle(NamedTuple):
    """One operation of a phase: all objects of one replica of a bundle, in the order given."""

    operation: Operation
    namespace: str
    replica: int
    objects: tuple[ObjectSpec, ...]


class Replicas(NamedTuple):
    """How many replicas of a bundle one namespace has."""

    namespace: str
    there: int


def bundles_of(
    replicas: Iterable[Replicas], wanted: int, objects: tuple[ObjectSpec, ...]
) -> Iterator[Bundle]:
    """Every operation of a phase, namespace by namespace: tail deleted with each bundle reversed; equal: every replica
    patched; more wanted: the missing ones created."""
    for namespace, current in replicas:
        for index in range(wanted, current):
            yield Bundle(Operation.DELETE, namespace, index, objects[::-1])
        if current == wanted:
            for index in range(wanted):
                yield Bundle(Operation.PATCH, namespace, index, objects)
        for index in range(current, wanted):
            yield Bundle(Operation.CREATE, namespace, index, objects)
