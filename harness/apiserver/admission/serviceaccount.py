"""ServiceAccount admission: every pod has an account that exists, and its token as a projected volume
(plugin/pkg/admission/serviceaccount/admission.go)."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

from harness.apiserver.admission.attributes import Attributes, Object
from harness.apiserver.apierrors import forbidden
from harness.apiserver.clock import Clock, Promise, sleep
from harness.apiserver.resources import Resource
from harness.apiserver.store.core import GetResult
from harness.apiserver.strategies.base import suffix

TOKEN_VOLUME_PREFIX = "kube-api-access-"  # noqa: S105  # a volume's name
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  # a folder
TOKEN_EXPIRATION_S = 60 * 60 + 7
_DEFAULT_ATTEMPTS = 10
_MIRROR = "kubernetes.io/config.mirror"


class _Account(msgspec.Struct):
    automountServiceAccountToken: bool | None = None  # noqa: N815  # the API's name
    imagePullSecrets: list[Object] | None = None  # noqa: N815


_account_of = msgspec.json.Decoder(_Account).decode


class ServiceAccounts:
    """`cached(namespace, name)` gives an account's bytes from the informer; `read(key)` asks the store."""

    def __init__(
        self,
        resource: Resource,
        cached: Callable[[str, str], bytes | None],
        read: Callable[[str], Promise[GetResult]],
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._clock = clock
        self._resource = resource
        self._cached = cached
        self._read = read
        self._rng = rng

    async def admit(self, attributes: Attributes) -> None:
        pod = attributes.new
        assert pod is not None
        spec = pod["spec"]
        if _MIRROR in (pod["metadata"].get("annotations") or {}):
            return  # mirror pods have neither account nor secrets
        name = spec.get("serviceAccountName") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = await self._account(attributes, name)
        mounts = spec.get("automountServiceAccountToken")
        if mounts is None:
            mounts = account.automountServiceAccountToken
        if mounts is not False:
            self._mount_token(spec)
        if account.imagePullSecrets and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = account.imagePullSecrets

    async def _account(self, attributes: Attributes, name: str) -> _Account:
        """From the informer, else by asking: more than once for ``default``, which a controller makes (:330)."""
        namespace = attributes.namespace
        body = self._cached(namespace, name)
        if body is not None:
            return _account_of(body)
        interval_s = self._rng.uniform(0.1, 0.2)
        for attempt in range(_DEFAULT_ATTEMPTS if name == "default" else 1):
            if attempt:
                await sleep(self._clock, interval_s)
            found = await self._read(self._resource.key(namespace, name))
            if found.kv is not None:
                return _account_of(found.kv.value)
        text = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise forbidden(attributes.resource, attributes.shown_name, text)

    def _mount_token(self, spec: Object) -> None:
        name = ""
        for volume in spec.get("volumes") or ():
            if volume.get("name", "").startswith(TOKEN_VOLUME_PREFIX):
                name = volume["name"]
        needed = False
        volume_name = name or TOKEN_VOLUME_PREFIX + suffix(self._rng)
        for key in ("initContainers", "containers"):
            for container in spec.get(key) or ():
                mounts = container.get("volumeMounts") or []
                if any(mount.get("mountPath") == TOKEN_PATH for mount in mounts):
                    continue
                mounts.append({"name": volume_name, "readOnly": True, "mountPath": TOKEN_PATH})
                container["volumeMounts"] = mounts
                needed = True
        if needed and not name:
            spec["volumes"] = [*(spec.get("volumes") or ()), _token_volume(volume_name)]


def _token_volume(name: str) -> Object:
    """TokenVolumeSource (admission.go:526) with the defaults of a projected volume."""
    namespace_field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": TOKEN_EXPIRATION_S, "path": "token"}},
                {
                    "configMap": {
                        "name": "kube-root-ca.crt",
                        "items": [{"key": "ca.crt", "path": "ca.crt"}],
                    }
                },
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace_field}]}},
            ],
            "defaultMode": 0o644,
        },
    }
