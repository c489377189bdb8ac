"""Users stay where they are when workers come and go.

Locust's own dispatcher computes everybody's place anew, as if the run began (locust/dispatch.py, _prepare_rebalance): a
worker that joins makes it stop kubelets on all the others, and may move the one user that runs the scenario. Here only
users of a worker that has gone get another place, and one that joins gets those alone that have none yet. A worker that
was given up is gone for good: Locust would take it back at its next heartbeat, with all the kubelets that others run by
then.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from locust.dispatch import UsersDispatcher
from locust.rpc import Message
from locust.runners import WorkerNodes


class StayingDispatcher(UsersDispatcher):
    """Begins with the users that workers report: Locust makes another dispatcher when a worker has been gone for a
    minute. `dismiss` is told the id of each worker that has gone."""

    def __init__(
        self,
        worker_nodes: list[Any],
        user_classes: list[type[Any]],
        dismiss: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(worker_nodes, user_classes)
        self._dismiss = dismiss
        for worker in worker_nodes:
            for name, count in worker.user_classes_count.items():
                if name in self._users_on_workers[worker.id]:
                    self._users_on_workers[worker.id][name] = count
        self._settle()

    def remove_worker(self, worker_node: Any) -> None:
        self._dismiss(worker_node.id)
        super().remove_worker(worker_node)

    def _dispatcher(self) -> Iterator[dict[str, dict[str, int]]]:  # type: ignore[override]
        """Locust's own leaves itself in progress where a rebalance was all there was to do, and the next worker that
        goes is then replaced by nobody. One that was given up half-way does not come here: another is in progress."""
        yield from super()._dispatcher()
        self._dispatch_in_progress = False

    def _prepare_rebalance(self) -> None:
        """Called when `_worker_nodes` has changed."""
        before, names = self._users_on_workers, [user.__name__ for user in self._original_user_classes]
        there = {worker.id for worker in self._worker_nodes}
        self._users_on_workers = {
            worker: dict(before.get(worker) or dict.fromkeys(names, 0)) for worker in sorted(there)
        }
        homeless: Counter[str] = Counter()
        for worker, users in before.items():
            if worker not in there:
                homeless.update(users)
        loads = {worker: sum(users.values()) for worker, users in self._users_on_workers.items()}
        for name in sorted(homeless.elements()):
            least = min(loads, key=lambda worker: loads[worker])
            self._users_on_workers[least][name] += 1
            loads[least] += 1
        self._settle()
        self._rebalance = True

    def _settle(self) -> None:
        """The rest of the dispatcher's state, of where users are now."""
        by_id = {worker.id: worker for worker in self._worker_nodes}
        self._active_users = [
            (by_id[worker], name)
            for worker, users in self._users_on_workers.items()
            for name, count in users.items()
            for _ in range(count)
        ]
        self._current_user_count = self.get_current_user_count()
        self._try_dispatch_fixed = True
        self._user_generator = self._user_gen()
        least_first = sorted(
            self._worker_nodes, key=lambda worker: sum(self._users_on_workers[worker.id].values())
        )
        self._worker_node_generator = itertools.cycle(least_first)


class Workers(WorkerNodes):
    """A master's `clients`, which may change while somebody goes through all of them: Locust itself starts users in
    such a loop (locust/runners.py, heartbeat_worker), and workers come and go meanwhile."""

    def __init__(self, so_far: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__()
        self.update(so_far)

    @property
    def all(self) -> list[Any]:  # type: ignore[override]
        return list(self.values())


def dismiss(runner: Any, worker: str) -> None:
    """Tell a worker to quit that `runner`, Locust's master, has given up for its silence, should it ever speak again;
    one that left by itself is no longer known."""
    if runner.clients.pop(worker, None) is not None:
        runner.server.send_to_client(Message("quit", None, worker))  # type: ignore[no-untyped-call]
