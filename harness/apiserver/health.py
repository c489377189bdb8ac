"""/healthz, /livez and /readyz (as/server/healthz/healthz.go): named checks, ``[+]name ok`` lines when asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

# What a default kube-apiserver v1.36 reports; those that the emulator has no part for always pass.
_ALWAYS = (
    "ping",
    "log",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
)

Check = Callable[[], str | None]
"""None while all is well, else the reason (only logged upstream, where clients read "reason withheld")."""


class Health:
    """`answer(path, query)` gives (status, body) of a health path, None for any other."""

    def __init__(self, checks: Mapping[str, Check], ready_only: Mapping[str, Check]) -> None:
        self._live: dict[str, Check] = {"ping": _pass, "log": _pass, **checks}
        self._live |= dict.fromkeys(_ALWAYS[2:], _pass)
        self._ready = {**self._live, **ready_only}

    def answer(self, path: str, query: Mapping[str, str]) -> tuple[int, bytes] | None:
        root, _, name = path.strip("/").partition("/")
        if root not in ("healthz", "livez", "readyz"):
            return None
        checks = self._ready if root == "readyz" else self._live
        if name:
            return self._one(checks, name)
        excluded = query.get("exclude", "")
        lines, failed = [], []
        for check, passes in checks.items():
            if check == excluded:
                lines.append(f"[+]{check} excluded: ok")
            elif passes() is None:
                lines.append(f"[+]{check} ok")
            else:
                lines.append(f"[-]{check} failed: reason withheld")
                failed.append(check)
        if failed:
            return 500, ("\n".join(lines) + f"\n{root} check failed\n").encode()
        if "verbose" in query:
            return 200, ("\n".join(lines) + f"\n{root} check passed\n").encode()
        return 200, b"ok"

    @staticmethod
    def _one(checks: Mapping[str, Check], name: str) -> tuple[int, bytes]:
        passes = checks.get(name)
        if passes is None:
            return 404, b"404 page not found\n"
        return (200, b"ok") if passes() is None else (500, b"internal server error: reason withheld\n")


def _pass() -> None:
    return None
