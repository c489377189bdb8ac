"""Credential plugins: a kubeconfig's ``users[].user.exec``, run as client-go runs it.

Follows client-go v1.36 plugin/pkg/client/auth/exec/exec.go: KUBERNETES_EXEC_INFO tells the plugin what is wanted, an
ExecCredential on its standard output is the answer. Not the `kubernetes` package's runner: that one waits for a plugin
that hangs, and knows of no end of what it was given.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness.transport.credentials import Credentials
from harness.wire import rfc3339
from harness.wire.errors import ConfigError

WITHIN_S = 30.0
"""A plugin that needs longer is given up. client-go waits for ever; a cloud's plugin takes 1 to 3 s."""

REFRESH_BEFORE_S = 30.0
"""A credential is fetched anew so long before it expires, so that none is refused on its way. client-go waits until it
has expired or was refused."""

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_SHOWN = 200


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Status | None = None


@dataclass
class ExecPlugin:
    """One ``exec`` section, checked. `where` names it in errors; `folder` is the kubeconfig's, from which a command
    with a slash is looked up; `cluster` is what the plugin is told where it asks for it (provideClusterInfo)."""

    where: str
    folder: Path
    command: str
    arguments: Sequence[str] = ()
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_version: str = API_VERSIONS[0]
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)
    within_s: float = WITHIN_S
    _expires: float | None = field(default=None, init=False)

    def due(self, now: float) -> bool:
        return self._expires is not None and now >= self._expires - REFRESH_BEFORE_S

    def fetch(self) -> Credentials:
        """Run the plugin and wait for it. Raises ConfigError."""
        found = self._read(self._run())
        self._expires = found.expires
        return found

    def _run(self) -> bytes:
        command = self.command
        if os.sep in command and not os.path.isabs(command):
            command = str(self.folder / command)
        spec: dict[str, Any] = {"interactive": False}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        info = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}
        environ = {
            **os.environ,
            **self.environ,
            "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode(),
        }
        try:
            code, output, errors = self._call([command, *self.arguments], environ)
        except subprocess.TimeoutExpired:
            raise self._fail(f"{self.command} gave no answer within {self.within_s:g} s") from None
        except OSError as error:
            hint = f"; {_one_line(self.install_hint)}" if self.install_hint else ""
            raise self._fail(f"{self.command} cannot be run: {error.strerror or error}{hint}") from error
        if code != 0:
            said = _one_line(errors.decode("utf-8", "replace")) or "it said nothing"
            raise self._fail(f"{self.command} ended with code {code}: {said}")
        return output

    def _call(self, command: Sequence[str], environ: Mapping[str, str]) -> tuple[int, bytes, bytes]:
        """Exit code, output and errors; a plugin that is given up takes its own children along."""
        with subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                output, errors = process.communicate(timeout=self.within_s)
            except BaseException:  # it takes too long, or the run is over
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
        return process.returncode, output, errors

    def _read(self, output: bytes) -> Credentials:
        try:
            answer = msgspec.json.decode(output, type=_Answer)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._fail(f"{self.command} printed no ExecCredential: {_one_line(str(error))}") from error
        if answer.kind != "ExecCredential" or answer.api_version != self.api_version:
            printed = f"{answer.api_version} {answer.kind}"[:_SHOWN]
            raise self._fail(
                f"{self.command} printed a {printed}, wanted is a {self.api_version} ExecCredential"
            )
        status = answer.status or _Status()
        certificate, key = status.client_certificate_data, status.client_key_data
        if bool(certificate) != bool(key) or not (status.token or certificate):
            raise self._fail(f"{self.command} gave neither a token nor a client certificate with its key")
        return Credentials(
            status.token,
            certificate.encode() or None,
            key.encode() or None,
            self._end_of(status.expiration_timestamp),
        )

    def _end_of(self, stamp: str | None) -> float | None:
        if not stamp:
            return None
        try:
            return rfc3339.parse(stamp)
        except ValueError:
            raise self._fail(f"{self.command}: expirationTimestamp {stamp[:_SHOWN]!r} is no time") from None

    def _fail(self, problem: str) -> ConfigError:
        return ConfigError(f"{self.where}: exec failed: {problem}")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]
