"""Jobs and cron jobs (kk/pkg/apis/batch/v1/defaults.go, validation.go, kk/pkg/registry/batch/*/strategy.go)."""

from __future__ import annotations

from harness.apiserver.apierrors import FieldError, invalid_value, not_supported, required
from harness.apiserver.strategies.apps import WorkloadStrategy
from harness.apiserver.strategies.base import Context, Object, drop_empty, section
from harness.apiserver.strategies.podspec import validate_spec
from harness.apiserver.strategies.podtemplates import (
    count_errors,
    default_template,
    immutable,
    template_labels,
)

_MAX_INT32 = (1 << 31) - 1
_UID_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")


def default_job_spec(spec: Object) -> None:
    default_template(spec)
    drop_empty(spec["template"]["metadata"], "labels")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else _MAX_INT32
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    failure = spec.get("podFailurePolicy")
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed" if failure is None else "Failed")
    spec.setdefault("manualSelector", False)
    for rule in (failure or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern.setdefault("status", "True")


class JobStrategy(WorkloadStrategy):
    orphans = True

    def default(self, new: Object) -> None:
        spec = section(new, "spec")
        default_job_spec(spec)
        labels = spec["template"]["metadata"].get("labels")
        if labels and not new["metadata"].get("labels"):
            # One and the same, as in Go: what is added to one is added to both.
            new["metadata"]["labels"] = labels
        self.default_status(new)

    def fill_create(self, new: Object, namespace: str, context: Context) -> None:
        made = new["metadata"].get("uid")  # of an attempt under another generated name, or what a client sent
        super().fill_create(new, namespace, context)
        if not new["spec"]["manualSelector"]:
            _select(new, made)
            if not new["metadata"].get("labels"):  # as upstream's defaults do when the stored job is read
                new["metadata"]["labels"] = dict(template_labels(new["spec"]))

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        if spec.get("selector") is None:
            return [required("spec.selector")]
        errors = count_errors(spec, "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit")
        errors += count_errors(spec, "ttlSecondsAfterFinished")
        if spec["completionMode"] not in ("NonIndexed", "Indexed"):
            allowed = ("Indexed", "NonIndexed")
            errors.append(not_supported("spec.completionMode", spec["completionMode"], allowed))
        elif spec["completionMode"] == "Indexed" and spec.get("completions") is None:
            errors.append(required("spec.completions", "when completion mode is Indexed"))
        wanted = spec["selector"].get("matchLabels") or {}
        labels = template_labels(spec)
        if any(labels.get(key) != value for key, value in wanted.items()):
            detail = "`selector` does not match template `labels`"
            errors.append(invalid_value("spec.template.metadata.labels", labels, detail))
        return errors + _template_errors(spec["template"], "spec.template.spec")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        fixed = ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"]
        if old["spec"]["completionMode"] != "Indexed":
            fixed.append("completions")
        # A job that is suspended and has not started may still be told where its pods are to run.
        if not old["spec"]["suspend"] or old.get("status", {}).get("startTime"):
            fixed.append("template")
        return immutable(new, old, *fixed)


def _select(job: Object, made: str | None) -> None:
    """generateSelector (strategy.go): the job's uid selects its pods; `made` is a uid that this chose before."""
    meta, spec = job["metadata"], job["spec"]
    labels = section(spec["template"]["metadata"], "labels")
    selected = section(section(spec, "selector"), "matchLabels")
    again = made is not None and labels.get(_UID_LABELS[0]) == made
    for key, value in (
        *((key, meta["uid"]) for key in _UID_LABELS),
        *((key, meta["name"]) for key in _NAME_LABELS),
    ):
        if again or key not in labels:
            labels[key] = value
    if again or _UID_LABELS[0] not in selected:
        selected[_UID_LABELS[0]] = meta["uid"]


def _template_errors(template: Object, path: str) -> list[FieldError]:
    spec = template["spec"]
    errors = validate_spec(spec, path)
    if spec["restartPolicy"] == "Always":
        errors.append(required(f"{path}.restartPolicy", 'valid values: "OnFailure", "Never"'))
    return errors


class CronJobStrategy(WorkloadStrategy):
    def default(self, new: Object) -> None:
        spec = section(new, "spec")
        template = section(spec, "jobTemplate")
        section(template, "metadata")
        default_template(section(template, "spec"))  # a job's own defaults come when it is created
        spec.setdefault("schedule", "")
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        self.default_status(new)

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        errors = []
        if not spec["schedule"]:
            errors.append(required("spec.schedule"))
        elif not _is_schedule(spec["schedule"]):
            count = len(spec["schedule"].split())
            detail = f"expected exactly 5 fields, found {count}: [{spec['schedule']}]"
            errors.append(invalid_value("spec.schedule", spec["schedule"], detail))
        allowed = ("Allow", "Forbid", "Replace")
        if spec["concurrencyPolicy"] not in allowed:
            errors.append(not_supported("spec.concurrencyPolicy", spec["concurrencyPolicy"], allowed))
        errors += count_errors(spec, "startingDeadlineSeconds", "successfulJobsHistoryLimit")
        errors += count_errors(spec, "failedJobsHistoryLimit")
        template = spec["jobTemplate"]["spec"]["template"]
        return errors + _template_errors(template, "spec.jobTemplate.spec.template.spec")


def _is_schedule(text: str) -> bool:
    """Five fields, or one of the shorthands; what stands in the fields is the controller's to judge."""
    return text.startswith("@") or len(text.split()) == 5
