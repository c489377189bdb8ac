"""Automanaged namespaces: made before the first step, deleted after the last.

Mirrors clusterloader2/pkg/framework/framework.go and pkg/test/simple_test_executor.go: prepareTestNamespaces. Added
here: after a namespace is made, its `default` service account is waited for, since a server refuses bare pods before
the service-account controller has made it (upstream is slower than the controller and does not look).
"""

from __future__ import annotations

import re

import msgspec

from harness.client.requests import NAMESPACES, SERVICEACCOUNTS
from harness.clusterloader.objects import items_of
from harness.clusterloader.runtime import Runtime
from harness.clusterloader.schema import NamespaceConfig

STALE = re.compile(r"test-[a-z0-9]+-[0-9]+\Z")
_POLL_S = 0.2
_SERVICE_ACCOUNT_TIMEOUT_S = 60.0


class Namespaces:
    """`prefix` names them; `poll_s` is how often a deletion is looked after (upstream: 5 s)."""

    def __init__(self, runtime: Runtime, config: NamespaceConfig, prefix: str, poll_s: float) -> None:
        self._runtime = runtime
        self._config = config
        self._prefix = prefix
        self._poll_s = poll_s
        self._mine: list[str] = []

    async def prepare(self) -> str:
        """Make them; "" or why the test cannot begin."""
        api = self._runtime.api
        reply = await api.list(NAMESPACES)
        if not reply.ok:
            return f"automanaged namespaces listing failed: {reply.failure}"
        existing = {item.metadata.name for item in items_of(reply)}
        ours = re.compile(re.escape(self._prefix) + r"-[1-9][0-9]*\Z")
        found = sorted(name for name in existing if ours.match(name))
        if found and not self._config.enable_existing_namespaces:
            return f"pre-existing automanaged namespaces found: {', '.join(found[:5])}"
        if self._config.delete_stale_namespaces:
            await self._delete([name for name in sorted(existing - set(found)) if STALE.match(name)], "stale")
        for index in range(1, self._config.number + 1):
            name = f"{self._prefix}-{index}"
            if name not in existing:
                body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                reply = await api.create(NAMESPACES, "", msgspec.json.encode(body))
                if not reply.ok:
                    return f"automanaged namespaces creation failed: {name}: {reply.failure}"
            self._mine.append(name)
        await self._wait_for_service_accounts()
        return ""

    async def delete(self) -> list[str]:
        """Delete those of this test and wait until they are gone; what did not work."""
        if not self._config.delete_automanaged_namespaces:
            return []
        return await self._delete(self._mine, "automanaged")

    async def _delete(self, names: list[str], what: str) -> list[str]:
        if not names:
            return []
        start = self._runtime.now
        tasks = [self._runtime.tasks.spawn(self._delete_one(name)) for name in names]
        failures = [failure for task in tasks if (failure := await task)]
        seconds = self._runtime.now - start
        self._runtime.note(
            "namespaces-deleted", what=what, count=len(names), seconds=seconds, failures=failures
        )
        return failures

    async def _delete_one(self, name: str) -> str:
        api, tasks = self._runtime.api, self._runtime.tasks
        deadline = tasks.now + self._config.delete_namespace_timeout
        reply = await api.delete(NAMESPACES, "", name)
        if not reply.ok:
            return f"namespace {name} deletion error: {reply.failure}"
        while True:
            reply = await api.get(NAMESPACES, "", name)
            if reply.reason == "NotFound":
                return ""
            if tasks.now >= deadline:
                timeout_s = self._config.delete_namespace_timeout
                return f"namespace {name} is still there {timeout_s:g}s after its deletion"
            await tasks.until(tasks.now + self._poll_s)

    async def _wait_for_service_accounts(self) -> None:
        waits = [self._runtime.tasks.spawn(self._wait_for_service_account(name)) for name in self._mine]
        missing = [name for task in waits if (name := await task)]
        if missing:
            text = (
                f"no service account `default` in {', '.join(missing[:5])}: the server may refuse bare pods"
            )
            self._runtime.note("warning", message=text)

    async def _wait_for_service_account(self, namespace: str) -> str:
        """ "" when it is there, the namespace's name where it is not in time."""
        tasks = self._runtime.tasks
        deadline = tasks.now + _SERVICE_ACCOUNT_TIMEOUT_S
        while True:
            reply = await self._runtime.api.get(SERVICEACCOUNTS, namespace, "default")
            if reply.ok:
                return ""
            if tasks.now >= deadline:
                return namespace
            await tasks.until(tasks.now + _POLL_S)
