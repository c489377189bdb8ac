"""Defaults and validation of a pod's spec, shared by pods and by the templates of workloads.

Mirrors kk/pkg/apis/core/v1/defaults.go and the part of kk/pkg/apis/core/validation/validation.go that load tests and
kubectl meet: containers, volumes and their mounts.
"""

from __future__ import annotations

from harness.apiserver.apierrors import (
    FieldError,
    duplicate,
    invalid_value,
    not_found_value,
    not_supported,
    required,
)
from harness.apiserver.strategies.base import Object, drop_empty
from harness.apiserver.strategies.names import dns_label, faults_of

_FILE_MODE = 0o644
_MODED = ("secret", "configMap", "downwardAPI", "projected")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_RESTART = ("Always", "OnFailure", "Never")
_TOKEN_EXPIRATION_S = 3600


def default_spec(spec: Object) -> None:
    """What a server adds to a pod's spec before admission, to a template's too."""
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(key) or ():
            _default_container(container)
    drop_empty(spec, "volumes", "initContainers", "ephemeralContainers", "nodeSelector", "imagePullSecrets")
    drop_empty(spec, "nodeName", "hostNetwork", "hostPID", "hostIPC", "hostname", "subdomain", "tolerations")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    spec.setdefault("schedulerName", "default-scheduler")


def _default_container(container: Object) -> None:
    if container.get("resources") is None:
        container["resources"] = {}
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(container.get("image", ""))
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for key in _PROBES:
        if container.get(key) is not None:
            _default_probe(container[key])
    drop_empty(container, "command", "args", "ports", "env", "envFrom", "volumeMounts")


def default_pod(spec: Object) -> None:
    """What only pods get, not templates (SetDefaults_Pod)."""
    for key in ("initContainers", "containers"):
        for container in spec.get(key) or ():
            limits = container["resources"].get("limits")
            if limits:  # what is limited but not requested is requested
                requests = container["resources"].setdefault("requests", {})
                for name, amount in limits.items():
                    requests.setdefault(name, amount)
            if spec.get("hostNetwork"):
                for port in container.get("ports") or ():
                    if not port.get("hostPort"):
                        port["hostPort"] = port.get("containerPort", 0)
    spec.setdefault("enableServiceLinks", True)


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _default_probe(probe: Object) -> None:
    get = probe.get("httpGet")
    if get is not None:
        get.setdefault("path", "/")
        get.setdefault("scheme", "HTTP")
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)


def _default_volume(volume: Object) -> None:
    for key in _MODED:
        source = volume.get(key)
        if source is None:
            continue
        source.setdefault("defaultMode", _FILE_MODE)
        for part in source.get("sources") or ():
            token = part.get("serviceAccountToken")
            if token is not None:
                token.setdefault("expirationSeconds", _TOKEN_EXPIRATION_S)
            _default_references((part.get("downwardAPI") or {}).get("items"))
        if key == "downwardAPI":
            _default_references(source.get("items"))
        return
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    elif len(volume) == 1:  # a name and no source
        volume["emptyDir"] = {}


def _default_references(items: list[Object] | None) -> None:
    for item in items or ():
        if item.get("fieldRef") is not None:
            item["fieldRef"].setdefault("apiVersion", "v1")


def qos_class(spec: Object) -> str:
    """BestEffort without cpu and memory figures, Guaranteed where every container's limits are its requests."""
    containers = [*(spec.get("initContainers") or ()), *spec.get("containers", ())]
    figures, guaranteed = False, True
    for container in containers:
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            if _positive(requests.get(name)) or _positive(limits.get(name)):
                figures = True
            if not _positive(limits.get(name)) or requests.get(name, limits.get(name)) != limits.get(name):
                guaranteed = False
    if not figures:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _positive(amount: object) -> bool:
    return amount is not None and str(amount) not in ("", "0")


def validate_spec(spec: Object, path: str = "spec") -> list[FieldError]:
    errors: list[FieldError] = []
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        errors += _name_errors(volume.get("name", ""), f"{path}.volumes[{index}].name", volumes)
    containers = spec.get("containers")
    if not containers:
        errors.append(required(f"{path}.containers"))
    seen: set[str] = set()
    for key in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            errors += _container_errors(container, f"{path}.{key}[{index}]", seen, volumes)
    if spec["restartPolicy"] not in _RESTART:
        errors.append(not_supported(f"{path}.restartPolicy", spec["restartPolicy"], _RESTART))
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        detail = "must be greater than or equal to 0"
        errors.append(invalid_value(f"{path}.terminationGracePeriodSeconds", grace, detail))
    return errors


def _name_errors(name: str, path: str, seen: set[str]) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = [invalid_value(path, name, text) for text in faults_of(dns_label, name)]
    if name in seen:
        errors.append(duplicate(path, name))
    seen.add(name)
    return errors


def _container_errors(container: Object, path: str, seen: set[str], volumes: set[str]) -> list[FieldError]:
    errors = _name_errors(container.get("name", ""), f"{path}.name", seen)
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    mounted: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        at = f"{path}.volumeMounts[{index}]"
        if not mount.get("name"):
            errors.append(required(f"{at}.name"))
        elif mount["name"] not in volumes:
            errors.append(not_found_value(f"{at}.name", mount["name"]))
        where = mount.get("mountPath", "")
        if not where:
            errors.append(required(f"{at}.mountPath"))
        elif where in mounted:
            errors.append(invalid_value(f"{at}.mountPath", where, "must be unique"))
        mounted.add(where)
    return errors
