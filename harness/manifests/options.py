"""What manifests are asked for, and what of it is refused."""

from __future__ import annotations

import re

import msgspec

from harness.wire.errors import ConfigError

IN_CLUSTER = "in-cluster"
NONE = "none"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_IMAGE = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9._/:@]*")
_VARIABLE = re.compile(r"(CL2_[A-Z0-9_]+)=(.*)", re.DOTALL)
LONGEST_NAME = 40
"""So that what is put behind it (a Deployment's pods have 17 characters more) stays a label."""


class Secret(msgspec.Struct, frozen=True):
    """A kubeconfig in a Secret that is there; `key` names it among the Secret's data."""

    name: str
    key: str


class Asked(msgspec.Struct, frozen=True):
    """`secret` None: the cluster that the pods run in is driven. `storage`: size of a claim to make for the record,
    or "none"; `claim`: one that is there. `extra`: options of Locust's and ours, as a command line has them. `subject`
    "" prints what the pods' cluster needs; else what the driven one does for that user. `metrics_port` is that of the
    run's own /metrics, 0 for none."""

    name: str
    namespace: str
    image: str
    nodes: int
    watches: int
    workers: int
    rate: float
    timeout: str
    i_know: str = ""
    context: str = ""
    identity: str = "impersonate"
    secret: Secret | None = None
    storage: str = "2Gi"
    claim: str = ""
    web: bool = False
    operator: bool = False
    variables: tuple[tuple[str, str], ...] = ()
    extra: tuple[str, ...] = ()
    subject: str = ""
    metrics_port: int = 0

    @property
    def kubeconfig(self) -> str:
        """As --kubeconfig has it, in the master's pod."""
        return IN_CLUSTER if self.secret is None else f"/etc/swarmlet/kubeconfig/{self.secret.key}"

    @property
    def account(self) -> str:
        """The ServiceAccount that the pods have; Locust's operator knows no other than the namespace's own."""
        return "default" if self.operator else self.name

    def validate(self) -> None:
        """Raises ConfigError for the first thing that cannot be."""
        _check(_LABEL, "--name", self.name, "lower-case letters, digits and -, as a DNS label")
        if len(self.name) > LONGEST_NAME:
            raise ConfigError(f"--name {self.name}: longer than {LONGEST_NAME} characters")
        _check(_LABEL, "--namespace", self.namespace, "lower-case letters, digits and -, as a DNS label")
        _check(_IMAGE, "--image", self.image, "a name as REGISTRY/NAME:TAG")
        if self.secret is not None:
            _check(_SUBDOMAIN, "--kubeconfig-secret", self.secret.name, "NAME or NAME/KEY of a Secret")
            _check(_KEY, "--kubeconfig-secret", self.secret.key, "NAME or NAME/KEY of a Secret")
        if self.claim:
            _check(_SUBDOMAIN, "--record-claim", self.claim, "the name of a PersistentVolumeClaim")
        self._check_target()
        if self.operator:
            self._check_operator()

    def _check_target(self) -> None:
        if self.secret is None and self.i_know != IN_CLUSTER:
            raise ConfigError(
                "without --kubeconfig-secret the cluster that the pods run in is put under load, and it has nodes of "
                f"its own: if that is meant, --i-know {IN_CLUSTER}"
            )
        if self.secret is None and self.context:
            raise ConfigError(f"--context {self.context}: is of a kubeconfig; give --kubeconfig-secret too")
        if self.subject and self.secret is None:
            raise ConfigError(
                f"--subject {self.subject}: is for another cluster's manifests; give --kubeconfig-secret too"
            )

    def _check_operator(self) -> None:
        """What LocustTest of locust.io/v1 has no field for."""
        unable = (
            (self.secret is not None, "--kubeconfig-secret", "mounts no Secret"),
            (bool(self.claim), "--record-claim", "mounts no claim"),
            (self.web, "--web", "starts a run as it makes the pods"),
        )
        for given, flag, why in unable:
            if given:
                raise ConfigError(f"{flag} with --operator: Locust's operator {why}; leave --operator out")


def secret_of(text: str) -> Secret | None:
    """NAME or NAME/KEY; "" is none."""
    name, _, key = text.partition("/")
    return Secret(name, key or "config") if text else None


def variables_of(texts: list[str]) -> tuple[tuple[str, str], ...]:
    """CL2_NAME=VALUE each. Raises ConfigError."""
    found = []
    for text in texts:
        match = _VARIABLE.fullmatch(text)
        if match is None:
            raise ConfigError(f"--variable {text}: not CL2_NAME=VALUE")
        found.append((match[1], match[2]))
    return tuple(found)


def _check(pattern: re.Pattern[str], flag: str, value: str, allowed: str) -> None:
    if pattern.fullmatch(value) is None:
        raise ConfigError(f"{flag} {value!r}: allowed is {allowed}")
