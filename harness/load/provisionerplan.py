"""The part of a plan that provisioners and their claims are made by."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.fleet.provisioners.options import ProvisionerOptions


class Provisioners(msgspec.Struct, frozen=True):
    """`options` are fields of ProvisionerOptions, `claims` of ClaimsOptions. `virtual`: over virtual time, in one
    process without sockets."""

    preset: str = "modern"
    replicas: int = 1
    options: dict[str, Any] = {}
    claims: dict[str, Any] = {}
    virtual: bool = False

    @property
    def driver(self) -> str:
        return str(self.options.get("driver", ProvisionerOptions().driver))
