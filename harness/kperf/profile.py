"""The shape of a load profile (kperf/api/types/load_traffic.go) and of a runner group (runner_group.go)."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

CONTENT_TYPES = ("json", "protobuf")
PATCH_TYPES = ("json", "merge", "strategic-merge")


class Resource(msgspec.Struct, frozen=True):
    """Which kind of object. The core group is "" or ``core``."""

    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""


class Get(Resource, frozen=True):
    name: str = ""


class List(Resource, frozen=True, rename="camel"):
    limit: int = 0
    selector: str = ""
    field_selector: str = ""


class WatchList(Resource, frozen=True, rename="camel"):
    selector: str = ""
    field_selector: str = ""


class Put(Resource, frozen=True, rename="camel"):
    """Overwrites a config map ``<name>-<0 to keySpaceSize>`` by `payload_size` random characters."""

    name: str = ""
    key_space_size: int = 0
    payload_size: int = 0


class Patch(Resource, frozen=True, rename="camel"):
    """Patches an object ``<name>-<0 to keySpaceSize>``."""

    name: str = ""
    key_space_size: int = 0
    patch_type: str = ""
    body: str = ""


class GetPodLog(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str = ""
    name: str = ""
    container: str = ""
    tail_lines: int | None = None
    limit_bytes: int | None = None


class PostDel(Resource, frozen=True, rename="camel"):
    """Creates objects, and deletes one of its own instead in `delete_ratio` of the cases."""

    delete_ratio: float = 0.0
    payload_size: int = 0


Kind: TypeAlias = Get | List | WatchList | Put | Patch | GetPodLog | PostDel


class WeightedRequest(msgspec.Struct, frozen=True, rename="camel"):
    """One kind of request, and its share among those of its spec."""

    shares: int = 0
    stale_list: List | None = None
    quorum_list: List | None = None
    watch_list: WatchList | None = None
    stale_get: Get | None = None
    quorum_get: Get | None = None
    put: Put | None = None
    patch: Patch | None = None
    get_pod_log: GetPodLog | None = None
    post_del: PostDel | None = None

    def kinds(self) -> dict[str, Kind]:
        """What is given, by its key."""
        fields = msgspec.structs.fields(self)
        given = {field.encode_name: getattr(self, field.name) for field in fields if field.name != "shares"}
        return {key: kind for key, kind in given.items() if kind is not None}


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    """One stretch of load. `rate` 0 is no limit; `duration` is in seconds; 0 of it or of `total` is none."""

    rate: float = 0.0
    total: int = 0
    duration: int = 0
    conns: int = 0
    client: int = 0
    content_type: str = ""
    disable_http2: bool = msgspec.field(default=False, name="disableHTTP2")
    max_retries: int = 0
    requests: list[WeightedRequest] = []


class ProfileFile(msgspec.Struct, frozen=True):
    """A profile as written; `spec` is how kperf up to v0.3.4 had its only one."""

    version: int = 0
    description: str = ""
    specs: list[Spec] = []
    spec: Spec | None = None


class RunnerGroupFile(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a runner group as written: `count` runners, each with the whole profile."""

    count: int = 0
    load_profile: ProfileFile | None = None
    node_affinity: dict[str, Any] | None = None
    service_account: str | None = None
    owner_reference: str | None = None


class LoadProfile(msgspec.Struct, frozen=True):
    """A checked profile, defaults filled in, for `runners` runners. `ignored` is what the file asks for and nobody here
    does, or what means nothing, a line each."""

    specs: tuple[Spec, ...]
    description: str = ""
    runners: int = 1
    ignored: tuple[str, ...] = ()

    @property
    def conns(self) -> int:
        """Connections of one runner: as many as its largest spec uses."""
        return max(spec.conns for spec in self.specs)

    @property
    def http1(self) -> bool:
        """Whether connections speak HTTP/1.1: as in kperf (cmd/kperf/commands/runner/runner.go:131) the first spec's
        word holds for all of them."""
        return self.specs[0].disable_http2
