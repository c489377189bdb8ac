"""Which balancer stands in front of a pool's members, and where its program is."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import msgspec

from harness.pool.binaries.finding import find_program
from harness.wire.errors import ConfigError

HAPROXY = "haproxy"
HOW_TO_GET_ONE = "apt-get install haproxy puts it on PATH; or --balancer-binary FILE, TEST_ASSET_HAPROXY"
POLICIES = ("random", "roundrobin", "leastconn", "source")
_POLICY = re.compile(r"random(\([1-9]\d?\))?|roundrobin|leastconn|source")
CHECKS = ("https", "tcp")


class BalancerOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`kind` "" is none. `policy` is HAProxy's own word, of which ``random`` draws two members and takes the less busy
    one, and ``random(1)`` draws one. `check` is how it finds out who can be reached: ``https`` asks /readyz, ``tcp``
    connects. `binary` "" is looked for."""

    kind: str = ""
    policy: str = "roundrobin"
    check: str = "https"
    binary: str = ""

    def validate(self) -> None:
        """Raises ConfigError, for a program that is not there too."""
        if not self.kind:
            for name in ("policy", "check", "binary"):
                if getattr(self, name) != getattr(_NONE, name):
                    raise ConfigError(f"balancer-{name}: there is no --balancer haproxy that it would be for")
            return
        if self.kind != HAPROXY:
            raise ConfigError(f"balancer: {self.kind!r} is not known; allowed is {HAPROXY}")
        if _POLICY.fullmatch(self.policy) is None:
            raise ConfigError(
                f"balancer-policy: {self.policy!r} is none of {', '.join(POLICIES)}, nor random(1) or another number"
            )
        if self.check not in CHECKS:
            raise ConfigError(f"balancer-check: {self.check!r} is none of {', '.join(CHECKS)}")
        find_haproxy(self.binary)


_NONE = BalancerOptions()


def find_haproxy(explicit: str = "", environ: Mapping[str, str] = os.environ) -> str:
    """The path of HAProxy. Raises ConfigError that says how to get it."""
    folders = (
        f"{environ.get('PATH', '')}:/usr/sbin"  # where Debian puts it, which is not on every user's PATH
    )
    return find_program(HAPROXY, explicit, {**environ, "PATH": folders}, how=HOW_TO_GET_ONE)
