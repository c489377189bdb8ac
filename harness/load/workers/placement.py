"""Users stay where they are when workers come and go.

Locust's own dispatcher computes everybody's place anew, as if the run began (locust/dispatch.py, _prepare_rebalance): a
worker that joins makes it stop kubelets on all the others, and may move the one user that runs the scenario. Here only
users of a worker that has gone get another place, and one that joins gets those alone that have none yet.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

from locust.dispatch import UsersDispatcher


class StayingDispatcher(UsersDispatcher):
    """Begins with the users that workers report: Locust makes another dispatcher when a worker has been gone for a
    minute."""

    def __init__(self, worker_nodes: list[Any], user_classes: list[type[Any]]) -> None:
        super().__init__(worker_nodes, user_classes)
        for worker in worker_nodes:
            for name, count in worker.user_classes_count.items():
                if name in self._users_on_workers[worker.id]:
                    self._users_on_workers[worker.id][name] = count
        self._settle()

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
