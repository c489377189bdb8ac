"""A pod as the kubelet needs it: decoded once, reduced to what it acts on, shared where pods are alike.

A kubelet process would keep the whole object. A fleet keeps thousands of kubelets in one process, so the informer
store holds `Pod`s of a few hundred bytes; what the spec says (`Plan`) is one object for all replicas of a workload.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import inf
from sys import intern
from typing import TypeAlias

import msgspec

from harness.fleet.claimnotes import ephemeral_claim
from harness.wire.objectviews import view_decoder

RUN_SECONDS = "swarmlet.io/run-seconds"
EXIT_CODE = "swarmlet.io/exit-code"
"""Annotations by which a pod says how long its containers run, and how they end, where its command does not."""

_SLEEP = re.compile(r"(?:^|[\s;&|(])sleep\s+(\d+(?:\.\d+)?)([smhd]?)(?:[\s;&|)]|$)")
_TIMEOUT = re.compile(r"--timeout=(\d+(?:\.\d+)?)([smh])(?:\s|$)")
_EXIT = re.compile(r"(?:^|[\s;&|(])exit\s+(\d{1,3})(?:[\s;&|)]|$)")
_FOREVER = re.compile(r"pause|sleep\s+inf|tail\s+-f")
_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}

Ref: TypeAlias = tuple[str, str, str]
"""A secret or configmap: (resource, namespace, name), the resource in the plural."""


class Source(msgspec.Struct, frozen=True, gc=False):
    """One thing that a volume is made of: an object (`ref`), or a service-account token (`ref` None)."""

    ref: Ref | None
    optional: bool = False
    audience: str = ""
    expiration_s: int = 0


class Container(msgspec.Struct, frozen=True, gc=False):
    """`run_s` is how long it runs before it ends with `exit_code`: infinity for a server, -1 for a program that ends
    but says not when. `sidecar`: an init container that goes on running (restartPolicy Always)."""

    name: str
    image: str
    run_s: float = inf
    exit_code: int = 0
    sidecar: bool = False


class Plan(msgspec.Struct, frozen=True, gc=False):
    """What a pod's spec asks of a kubelet.

    `volumes`: for each volume that needs the API server, its sources in order. `env`: the objects that the environment
    of containers reads when they are created. `refs`: every object the pod refers to, pull secrets included, each once.
    `init` are the init containers, sidecars among them, in order.
    """

    service_account: str
    containers: tuple[Container, ...]
    volumes: tuple[tuple[Source, ...], ...]
    env: tuple[Source, ...]
    refs: tuple[Ref, ...]
    host_network: bool
    grace_s: int
    init: tuple[Container, ...] = ()
    restart: str = "Always"

    @property
    def staged(self) -> bool:
        """Whether its containers do not all start at once and then run for ever."""
        return bool(self.init) or any(container.run_s != inf for container in self.containers)


class Pod(msgspec.Struct, frozen=True, gc=False):
    """One pod. `grace_s` is the deletion's once `deleted`; `volume_names` goes with `plan.volumes`; `claims` are the
    (volume, claim) of volumes that are persistent."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int
    deleted: bool
    grace_s: int
    phase: str
    volume_names: tuple[str, ...]
    plan: Plan
    claims: tuple[tuple[str, str], ...] = ()

    @property
    def metadata(self) -> Pod:
        """Where an informer store looks for name, namespace, uid and resource_version: here, to save an object."""
        return self


# ---- what is read of the JSON ----------------------------------------------------------------------------------------
class _Notes(msgspec.Struct, frozen=True, gc=False, rename={"run_s": RUN_SECONDS, "exit_code": EXIT_CODE}):
    """The annotations that are ours."""

    run_s: str = ""
    exit_code: str = ""


class _Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    uid: str
    resource_version: str = ""
    namespace: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    annotations: _Notes | None = None


class _Named(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A secretKeyRef, configMapKeyRef, secretRef, configMapRef, projected secret or configMap, or configMap volume."""

    name: str = ""
    optional: bool = False


class _SecretVolume(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    secret_name: str = ""
    optional: bool = False


class _TokenProjection(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    audience: str = ""
    expiration_seconds: int = 3600


class _Projection(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    secret: _Named | None = None
    config_map: _Named | None = None
    service_account_token: _TokenProjection | None = None


class _Projected(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    sources: tuple[_Projection, ...] = ()


class _ClaimVolume(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    claim_name: str = ""


class _Ephemeral(msgspec.Struct, frozen=True, gc=False):
    """A volume whose claim is made for the pod; its template is the controller's matter."""


class _Volume(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    persistent_volume_claim: _ClaimVolume | None = None
    ephemeral: _Ephemeral | None = None
    secret: _SecretVolume | None = None
    config_map: _Named | None = None
    projected: _Projected | None = None


class _ValueFrom(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    secret_key_ref: _Named | None = None
    config_map_key_ref: _Named | None = None


class _Env(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    value_from: _ValueFrom | None = None


class _EnvFrom(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    secret_ref: _Named | None = None
    config_map_ref: _Named | None = None


class _Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    image: str = ""
    env: tuple[_Env, ...] = ()
    env_from: tuple[_EnvFrom, ...] = ()
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    restart_policy: str = ""


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    volumes: tuple[_Volume, ...] = ()
    image_pull_secrets: tuple[_Named, ...] = ()
    service_account_name: str = ""
    host_network: bool = False
    termination_grace_period_seconds: int = 30
    restart_policy: str = "Always"


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = "Pending"


class _PodView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


_decode_view = view_decoder(_PodView)


def decode_pod(raw: bytes) -> Pod:
    """A `Pod` from an object in JSON or protobuf; raises msgspec.DecodeError on anything else."""
    view = _decode_view(raw)
    meta, spec = view.metadata, view.spec
    names, volumes = _volumes(spec, meta.namespace)
    env = tuple(_environment(spec, meta.namespace))
    pull = [("secrets", meta.namespace, secret.name) for secret in spec.image_pull_secrets]
    mounted = [source.ref for volume in volumes for source in volume if source.ref]
    plan = Plan(
        service_account=spec.service_account_name,
        containers=tuple([_container(each, view, ends=False) for each in spec.containers]),
        volumes=volumes,
        env=env,
        refs=tuple(dict.fromkeys([*pull, *(source.ref for source in env if source.ref), *mounted])),
        host_network=spec.host_network,
        grace_s=spec.termination_grace_period_seconds,
        init=tuple([_container(each, view, ends=True) for each in spec.init_containers]),
        restart=_RESTARTS.get(spec.restart_policy, spec.restart_policy),
    )
    grace = meta.deletion_grace_period_seconds
    return Pod(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        generation=meta.generation,
        deleted=meta.deletion_timestamp is not None,
        grace_s=spec.termination_grace_period_seconds if grace is None else grace,
        phase=_PHASES.get(view.status.phase, view.status.phase),
        volume_names=names,
        plan=_shared(plan),
        claims=_claims(spec, meta.name),
    )


_RESTARTS = {policy: policy for policy in ("Always", "OnFailure", "Never")}
_PHASES = {phase: phase for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown")}


@lru_cache(maxsize=8192)
def _shared(plan: Plan) -> Plan:
    """The first plan equal to this one: all replicas of a workload, on all kubelets, hold one object."""
    return plan


def _container(container: _Container, view: _PodView, *, ends: bool) -> Container:
    """`ends`: whether it is one that ends, an init container that is no sidecar."""
    sidecar = container.restart_policy == "Always"
    restarted = not ends and view.spec.restart_policy == "Always"
    notes = view.metadata.annotations or _NO_NOTES
    if restarted and not (container.command or container.args or notes.run_s):
        return Container(container.name, container.image)  # most, by far
    if sidecar:
        return Container(container.name, container.image, sidecar=True)
    run_s, code = _ending(container, restarted=restarted, ends=ends)
    if notes.run_s and not ends:
        run_s = _number(notes.run_s, run_s)
        code = int(_number(notes.exit_code, code))
    return Container(container.name, container.image, run_s, code)


def _ending(container: _Container, *, restarted: bool, ends: bool) -> tuple[float, int]:
    """How long its command says that it runs, and its exit code."""
    command = " ".join((*container.command, *container.args))
    image = container.image.rpartition("/")[2]
    if image.startswith("sleep"):  # perf-tests' image: its argument is a duration
        command = f"sleep {command}"
    timeout = _TIMEOUT.search(command)
    if timeout and image.startswith("request-benchmark"):  # perf-tests' too: it goes on until its time is up
        command = f"sleep {timeout[1]}{timeout[2]}"
    slept, exited = _SLEEP.search(command), _EXIT.search(command)
    code = int(exited[1]) if exited else 0
    if slept:
        return float(slept[1]) * _UNITS_S[slept[2]], code
    if exited:
        return 0.0, code
    server = restarted or (not ends and _FOREVER.search(f"{container.image} {command}") is not None)
    return (inf if server else -1.0), code


_NO_NOTES = _Notes()


def _number(text: str, otherwise: float) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return otherwise


def _claims(spec: _Spec, pod: str) -> tuple[tuple[str, str], ...]:
    found: tuple[tuple[str, str], ...] = ()
    for volume in spec.volumes:
        if volume.persistent_volume_claim is not None:
            found += ((volume.name, volume.persistent_volume_claim.claim_name),)
        elif volume.ephemeral is not None:
            found += ((volume.name, ephemeral_claim(pod, volume.name)),)
    return found


def _volumes(spec: _Spec, namespace: str) -> tuple[tuple[str, ...], tuple[tuple[Source, ...], ...]]:
    names, volumes = [], []
    for volume in spec.volumes:
        sources = _sources(volume, namespace)
        if sources:
            names.append(intern(volume.name))  # all replicas have the same, but for their token's
            volumes.append(sources)
    return tuple(names), tuple(volumes)


def _sources(volume: _Volume, namespace: str) -> tuple[Source, ...]:
    """Empty for a volume that is mounted without the API server (emptyDir, hostPath, downwardAPI)."""
    if volume.secret is not None:
        return (Source(("secrets", namespace, volume.secret.secret_name), volume.secret.optional),)
    if volume.config_map is not None:
        return (Source(("configmaps", namespace, volume.config_map.name), volume.config_map.optional),)
    if volume.projected is None:
        return ()
    found = []
    for part in volume.projected.sources:
        if part.service_account_token is not None:
            token = part.service_account_token
            found.append(Source(None, audience=token.audience, expiration_s=token.expiration_seconds))
        elif part.secret is not None:
            found.append(Source(("secrets", namespace, part.secret.name), part.secret.optional))
        elif part.config_map is not None:
            found.append(Source(("configmaps", namespace, part.config_map.name), part.config_map.optional))
    return tuple(found)


def _environment(spec: _Spec, namespace: str) -> list[Source]:
    found: list[Source] = []
    for container in (*spec.init_containers, *spec.containers):
        for whole in container.env_from:
            found += _named("secrets", whole.secret_ref, namespace)
            found += _named("configmaps", whole.config_map_ref, namespace)
        for variable in container.env:
            if variable.value_from is not None:
                found += _named("secrets", variable.value_from.secret_key_ref, namespace)
                found += _named("configmaps", variable.value_from.config_map_key_ref, namespace)
    return found


def _named(resource: str, named: _Named | None, namespace: str) -> list[Source]:
    return [] if named is None else [Source((resource, namespace, named.name), named.optional)]
