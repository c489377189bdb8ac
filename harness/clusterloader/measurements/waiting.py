"""Waiting until the objects of an informer are as wanted, which is what most waits of ClusterLoader2 are.

Upstream looks at its store now and then (5 s to 30 s); here every change is looked at, so that a wait ends when it is
over.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.client.requests import ResourceRef
from harness.client.store import Changed, Decode
from harness.clusterloader.measurements.base import Call, Selector
from harness.clusterloader.runtime import Progress
from harness.clusterloader.tasks import Signal


async def wait_for(
    call: Call,
    ref: ResourceRef,
    decode: Decode,
    selector: Selector,
    timeout_s: float,
    *,
    apply: Callable[[Changed], None],
    count: Callable[[], tuple[int, int]],
    done: Callable[[], bool],
    text: Callable[[], str],
) -> bool:
    """Until `done` holds of everything that `apply` was given, at most `timeout_s`; whether it did.

    `count` is how many there are of how many, for the screen; `text` says it in full, for the run's record.
    """
    runtime = call.runtime
    start, changed = runtime.now, Signal()
    deadline = start + timeout_s
    progress = Progress(runtime, call.step, call.identifier)

    def look(change: Changed) -> None:
        apply(change)
        progress.report(*count())
        if done():
            changed.notify()

    namespace, labels, fields = selector
    informer = runtime.watch(ref, decode, look, namespace=namespace, labels=labels, fields=fields)
    passed = await runtime.tasks.either(informer.synced, deadline) and done()
    while not passed and runtime.now < deadline:
        await runtime.tasks.either(changed.changed, deadline)
        passed = informer.synced.done and done()
    informer.stop()
    runtime.note(
        "barrier",
        step=call.step,
        identifier=call.identifier,
        start_s=start,
        seconds=runtime.now - start,
        passed=passed,
        objects=text(),
    )
    return passed
