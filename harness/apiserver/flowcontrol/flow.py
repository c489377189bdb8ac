"""One flow schema at work: the level that serves it, its series, the headers that name both."""

from __future__ import annotations

from harness.apiserver.flowcontrol.config import FlowSchema
from harness.apiserver.flowcontrol.flowmetrics import FlowMetrics
from harness.apiserver.flowcontrol.level import Level


class Flow:
    """Made anew with each configuration. `headers` go into every answer; uids are "" of what is no object."""

    __slots__ = ("headers", "level", "metrics", "schema")

    def __init__(self, schema: FlowSchema, level: Level, metrics: FlowMetrics) -> None:
        self.schema = schema
        self.level = level
        self.metrics = metrics
        self.headers = {
            "x-kubernetes-pf-flowschema-uid": schema.uid,
            "x-kubernetes-pf-prioritylevel-uid": level.config.uid,
        }
