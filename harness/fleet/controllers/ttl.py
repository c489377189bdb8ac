"""Finished Jobs go some time after their end. kk/pkg/controller/ttlafterfinished."""

from __future__ import annotations

from harness.client.store import Change
from harness.fleet.controllers.api import JOBS, ApiError, Steps, call
from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.jobcounts import finished
from harness.fleet.controllers.views import Object, WholeView, whole
from harness.wire import rfc3339


class TtlAfterFinished(Controller):
    name = "ttl-after-finished-controller"

    def subscribe(self) -> None:
        self.jobs = self.watch(JOBS, self.job_changed)

    def job_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        if change is not Change.DELETED and new.deleted is None and b'"ttlSecondsAfterFinished"' in new.raw:
            self.queue.add(new.key)

    def sync(self, key: str) -> Steps[None]:
        view: WholeView | None = self.jobs.get(key)
        if view is None or not self._due(key, whole(view)):
            return
        try:  # what the informer has may be old
            response = yield from call(self.get(JOBS, view.namespace, view.name))
        except ApiError as error:
            if error.not_found:
                return
            raise
        fresh = whole(response.body)
        if self._due(key, fresh):
            yield from call(
                self.delete(
                    JOBS, view.namespace, view.name, uid=fresh["metadata"]["uid"], propagation="Foreground"
                )
            )

    def _due(self, key: str, job: Object) -> bool:
        """Whether its time is over; if it will be, the key comes back then."""
        ttl_s = job["spec"].get("ttlSecondsAfterFinished")
        if ttl_s is None or not finished(job) or "deletionTimestamp" in job["metadata"]:
            return False
        ends = [
            rfc3339.parse(each["lastTransitionTime"])
            for each in job["status"]["conditions"]
            if each["type"] in ("Complete", "Failed") and each["status"] == "True"
        ]
        left_s = ends[0] + ttl_s - self.hub.wall_s()
        if left_s > 0:
            self.add_after(key, left_s)
        return bool(left_s <= 0)
