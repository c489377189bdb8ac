"""A ServiceAccount `default` in each active namespace. kk/pkg/controller/serviceaccount."""

from __future__ import annotations

from random import Random

from harness.client.requests import SERVICEACCOUNTS
from harness.client.store import decode_object_view
from harness.fleet.controllers.ensurer import Ensurer

_BODY = b'{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"default"}}'


def serviceaccount_controller(rng: Random) -> Ensurer:
    """The machine; without it no pod can be created in a new namespace."""
    return Ensurer(SERVICEACCOUNTS, "default", _BODY, rng, decode=decode_object_view)
