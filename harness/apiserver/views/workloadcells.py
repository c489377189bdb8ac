"""Tables of workloads and of what steers them (kk/pkg/printers/internalversion/printers.go)."""

from __future__ import annotations

from harness.apiserver.strategies.labelselectors import selector_text
from harness.apiserver.views.ages import human, since
from harness.apiserver.views.printer import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cells,
    Object,
    Printer,
    age,
    column,
    labels_text,
    named,
)
from harness.wire.rfc3339 import parse

_UNKNOWN = "<unknown>"
_MAX_METRICS = 2
_CONTAINERS = column("Containers", priority=1, text="Names of each container in the template.")
_IMAGES = column("Images", priority=1, text="Images referenced by each container in the template.")
_SELECTOR = column("Selector", priority=1, text="Selects the pods that belong to it.")


def _status(obj: Object, key: str) -> int:
    number: int = (obj.get("status") or {}).get(key, 0)
    return number


def selector_cell(selector: Object | None) -> str:
    """FormatLabelSelector (am/apis/meta/v1/helpers.go)."""
    return selector_text(selector) or NONE


def _layout(template: Object | None) -> Cells:
    """Names and images of a template's containers."""
    containers = ((template or {}).get("spec") or {}).get("containers") or []
    names = [item.get("name", "") for item in containers]
    return [",".join(names), ",".join(item.get("image", "") for item in containers)]


def _deployment(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    return [
        obj["metadata"]["name"],
        f"{_status(obj, 'readyReplicas')}/{spec.get('replicas', 0)}",
        _status(obj, "updatedReplicas"),
        _status(obj, "availableReplicas"),
        age(obj, now),
        *_layout(spec.get("template")),
        selector_text(spec.get("selector")),
    ]


def _replicas(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    selector = spec.get("selector")
    plain = obj["kind"] == "ReplicationController"
    return [
        obj["metadata"]["name"],
        spec.get("replicas", 0),
        _status(obj, "replicas"),
        _status(obj, "readyReplicas"),
        age(obj, now),
        *_layout(spec.get("template")),
        labels_text(selector) if plain else selector_cell(selector),
    ]


def _stateful_set(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    ready = f"{_status(obj, 'readyReplicas')}/{spec.get('replicas', 0)}"
    return [obj["metadata"]["name"], ready, age(obj, now), *_layout(spec.get("template"))]


def _daemon_set(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    numbers = (
        *("desiredNumberScheduled", "currentNumberScheduled", "numberReady"),
        *("updatedNumberScheduled", "numberAvailable"),
    )
    return [
        obj["metadata"]["name"],
        *(_status(obj, key) for key in numbers),
        labels_text((spec["template"].get("spec") or {}).get("nodeSelector")),
        age(obj, now),
        *_layout(spec["template"]),
        selector_cell(spec.get("selector")),
    ]


def _job(obj: Object, now: float) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    done, wanted = status.get("succeeded", 0), spec.get("completions")
    completions = f"{done}/{wanted}"
    if wanted is None:
        parallel = spec.get("parallelism") or 0
        completions = f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"
    started, ended, took = status.get("startTime"), status.get("completionTime"), ""
    if started:
        took = human((parse(ended) if ended else now) - parse(started))
    return [
        obj["metadata"]["name"],
        _job_status(obj),
        completions,
        took,
        age(obj, now),
        *_layout(spec.get("template")),
        selector_cell(spec.get("selector")),
    ]


def _job_status(job: Object) -> str:
    conditions = (job.get("status") or {}).get("conditions") or ()
    true = {item.get("type") for item in conditions if item.get("status") == "True"}
    for condition in ("Complete", "Failed"):
        if condition in true:
            return condition
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    for condition in ("Suspended", "FailureTarget"):
        if condition in true:
            return condition
    return "Running"


def _cron_job(obj: Object, now: float) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    last, suspend = status.get("lastScheduleTime"), spec.get("suspend")
    job = spec["jobTemplate"].get("spec") or {}
    return [
        obj["metadata"]["name"],
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        UNSET if suspend is None else str(bool(suspend)),
        len(status.get("active") or ()),
        since(last, now) if last else NONE,
        age(obj, now),
        *_layout(job.get("template")),
        selector_cell(job.get("selector")),
    ]


def _pod_template(obj: Object, now: float) -> Cells:
    template = obj["template"]
    labels = (template.get("metadata") or {}).get("labels")
    return [obj["metadata"]["name"], *_layout(template), labels_text(labels)]


def _budget(obj: Object, now: float) -> Cells:
    spec = obj.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        obj["metadata"]["name"],
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        _status(obj, "disruptionsAllowed"),
        age(obj, now),
    ]


def _autoscaler(obj: Object, now: float) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    target = spec["scaleTargetRef"]
    least = spec.get("minReplicas")
    return [
        obj["metadata"]["name"],
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec.get("metrics") or [], status.get("currentMetrics") or []),
        UNSET if least is None else str(least),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(obj, now),
    ]


def _metrics(specs: list[Object], statuses: list[Object]) -> str:
    """formatHPAMetrics."""
    if not specs:
        return NONE
    cells = [_metric(spec, statuses[at] if at < len(statuses) else {}) for at, spec in enumerate(specs)]
    more = len(cells) - _MAX_METRICS
    text = ", ".join(cells[:_MAX_METRICS])
    return f"{text} + {more} more..." if more > 0 else text


def _metric(spec: Object, status: Object) -> str:
    kind = spec.get("type", "")
    field = kind[:1].lower() + kind[1:]
    source = spec.get(field) or {}
    target, current = source.get("target") or {}, (status.get(field) or {}).get("current") or {}
    by_name = f"{source.get('name', '')}: " if kind in ("Resource", "ContainerResource") else ""
    if target.get("averageValue") is not None:
        average = "" if by_name or kind == "Pods" else " (avg)"
        return f"{by_name}{current.get('averageValue', _UNKNOWN)}/{target['averageValue']}{average}"
    if by_name:
        now, wanted = current.get("averageUtilization"), target.get("averageUtilization")
        shown = _UNKNOWN if now is None else f"{now}%"
        return f"{by_name}{shown}/{'<auto>' if wanted is None else f'{wanted}%'}"
    if kind in ("Object", "External"):
        return f"{current.get('value', _UNKNOWN)}/{target.get('value', '')}"
    return "<unknown type>"


def _revision(obj: Object, now: float) -> Cells:
    """The controller as ``deployment.apps/name``."""
    owners = [item for item in obj["metadata"].get("ownerReferences") or () if item.get("controller")]
    controller = NONE
    if owners:
        group = owners[0].get("apiVersion", "").rpartition("/")[0]
        kind = owners[0].get("kind", "").lower()
        controller = f"{kind}.{group}/{owners[0].get('name', '')}" if group else f"{kind}/{owners[0]['name']}"
    return [obj["metadata"]["name"], controller, obj.get("revision", 0), age(obj, now)]


def _quota(obj: Object, now: float) -> Cells:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        part = f"{name}: {used.get(name, '0')}/{hard[name]}"
        (limits if name.startswith("limits.") else requests).append(part)
    return [obj["metadata"]["name"], ", ".join(requests), ", ".join(limits), age(obj, now)]


def _priority_class(obj: Object, now: float) -> Cells:
    return [
        obj["metadata"]["name"],
        obj.get("value", 0),
        bool(obj.get("globalDefault")),
        age(obj, now),
        obj.get("preemptionPolicy", ""),
    ]


def _numbers(*names: str) -> list[Object]:
    return [column(name, "integer", text=f"{name} number of pods.") for name in names]


_WITH_REPLICAS = Printer(
    [NAME, *_numbers("Desired", "Current", "Ready"), AGE, _CONTAINERS, _IMAGES, _SELECTOR], _replicas
)
WORKLOADS: dict[str, Printer] = {
    "deployments.apps": Printer(
        [
            NAME,
            column("Ready", text="Number of the pod with ready state"),
            column("Up-to-date", text="Total number of pods that have the desired template spec."),
            column("Available", text="Total number of available pods."),
            AGE,
            _CONTAINERS,
            _IMAGES,
            _SELECTOR,
        ],
        _deployment,
    ),
    "replicasets.apps": _WITH_REPLICAS,
    "replicationcontrollers": _WITH_REPLICAS,
    "statefulsets.apps": Printer(
        [NAME, column("Ready", text="Number of the pod with ready state"), AGE, _CONTAINERS, _IMAGES],
        _stateful_set,
    ),
    "daemonsets.apps": Printer(
        [
            NAME,
            *_numbers("Desired", "Current", "Ready", "Up-to-date", "Available"),
            column("Node Selector", text="Labels that a node must have to run the pod."),
            AGE,
            _CONTAINERS,
            _IMAGES,
            _SELECTOR,
        ],
        _daemon_set,
    ),
    "controllerrevisions.apps": Printer(
        [
            NAME,
            column("Controller", text="Controller of the object"),
            column("Revision", text="The revision of the state that data represents."),
            AGE,
        ],
        _revision,
    ),
    "jobs.batch": Printer(
        [
            NAME,
            column("Status", text="Status of the job."),
            column("Completions", text="The number of pods which reached phase Succeeded."),
            column("Duration", text="Time required to complete the job."),
            AGE,
            _CONTAINERS,
            _IMAGES,
            _SELECTOR,
        ],
        _job,
    ),
    "cronjobs.batch": Printer(
        [
            NAME,
            column("Schedule", text="The schedule in Cron format."),
            column("Timezone", text="The time zone of the schedule."),
            column("Suspend", "boolean", text="Whether later executions are suspended."),
            column("Active", "integer", text="Jobs that are running."),
            column("Last Schedule", text="When a job was last scheduled."),
            AGE,
            _CONTAINERS,
            _IMAGES,
            _SELECTOR,
        ],
        _cron_job,
    ),
    "podtemplates": Printer(
        [
            NAME,
            column("Containers", text="Names of each container in the template."),
            column("Images", text="Images referenced by each container in the template."),
            column("Pod Labels", text="The labels for the pod template."),
        ],
        _pod_template,
    ),
    "poddisruptionbudgets.policy": Printer(
        [
            NAME,
            column("Min Available", text="The minimum number of pods that must be available."),
            column("Max Unavailable", text="The maximum number of pods that may be unavailable."),
            column(
                "Allowed Disruptions",
                "integer",
                text="Calculated number of pods that may be disrupted at this time.",
            ),
            AGE,
        ],
        _budget,
    ),
    "horizontalpodautoscalers.autoscaling": Printer(
        [
            NAME,
            column("Reference", text="What is scaled."),
            column("Targets", text="The figures that decide, as they are and as they should be."),
            column("MinPods", text="The lower limit of replicas."),
            column("MaxPods", text="The upper limit of replicas."),
            column("Replicas", text="The number of replicas as last seen."),
            AGE,
        ],
        _autoscaler,
    ),
    "resourcequotas": Printer(
        [
            NAME,
            column(
                "Request",
                text="Request represents a minimum amount of cpu/memory that a container may consume.",
            ),
            column(
                "Limit",
                text="Limits control the maximum amount of cpu/memory that a container may use independent of "
                "contention on the node.",
            ),
            AGE,
        ],
        _quota,
    ),
    "priorityclasses.scheduling.k8s.io": Printer(
        [
            NAME,
            column("Value", "integer", text="The priority that pods of this class get."),
            column("Global-Default", "boolean", text="Whether pods without a class get this one."),
            AGE,
            column("PreemptionPolicy", text="Whether pods of this class preempt others."),
        ],
        _priority_class,
    ),
    "scales.autoscaling": Printer(
        [
            column("Name", text=NAME["description"]),
            column("Desired", "integer", text="The number of replicas that there are to be."),
            column("Available", "integer", text="The number of replicas that there are."),
            AGE,
        ],
        named(lambda obj: (obj.get("spec") or {}).get("replicas", 0), lambda obj: _status(obj, "replicas")),
    ),
}
