"""File descriptors: a fleet needs about one for each kubelet, in the worker and again in the member that serves it."""

from __future__ import annotations

import contextlib
import resource

from harness.transport.options import HttpMode
from harness.wire.errors import ConfigError

PER_KUBELET = 1  # one HTTP/2 connection
PER_KUBELET_HTTP1 = (
    40  # every open watch holds a connection: 9 at rest, one more for each secret and configmap in use
)
SPARE = 150  # libraries, Locust's own sockets, the helpers' connections, logs, second connections


def files_needed(kubelets: int, http: HttpMode) -> int:
    """Descriptors of a process that holds the client or the server side of so many kubelets."""
    return kubelets * (PER_KUBELET_HTTP1 if http == "http/1.1" else PER_KUBELET) + SPARE


def require_files(kubelets: int, http: HttpMode, flag: str = "-u") -> None:
    """Raises ConfigError where no process on this machine may open what `kubelets` need; `flag` is how their number was
    given."""
    needed, limit = files_needed(kubelets, http), hard_limit()
    if limit is not None and needed > limit:
        spare = limit - SPARE
        holds = max(0, spare // (PER_KUBELET_HTTP1 if http == "http/1.1" else PER_KUBELET))
        raise ConfigError(
            f"{flag} {kubelets}: needs {needed} open files in one process, this machine allows {limit} "
            f"(ulimit -Hn), enough for {holds} kubelets; raise it, or spread the fleet over more workers and members"
        )


def hard_limit() -> int | None:
    """What the soft limit can be raised to; None for no limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if hard == resource.RLIM_INFINITY else hard


def raise_limit() -> None:
    """Raise this process's soft limit as far as it goes; Locust itself stops at 10,000 (locust/main.py)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # macOS refuses "no limit"; what there is must do
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
