"""One Prometheus, asked over HTTP: a connection for each question, blocking its own greenlet alone."""

from __future__ import annotations

import http.client
import ssl
import time

import msgspec

from harness.load.prometheus.access import Access
from harness.wire.errors import ConfigError
from harness.wire.promql import QueryFailed, parse_error, parse_path, query_path, read_vector
from harness.wire.request import Failure, Response, TransportError

ANSWER_WITHIN_S = 60.0
CHECKED_WITHIN_S = 10.0
MOST_BYTES = 64 << 20
_BUILD_INFO = "/api/v1/status/buildinfo"
_PROBE = "vector(1)"


class _Version(msgspec.Struct, frozen=True):
    version: str = ""


class _BuildInfo(msgspec.Struct, frozen=True):
    data: _Version = _Version()


class PrometheusApi:
    """`name` is how messages call it: its URL."""

    def __init__(self, name: str, access: Access) -> None:
        self.name = name
        self._access = access

    def query(self, expression: str, at_s: float) -> Response:
        """The HTTP answer, whatever its status. Raises TransportError."""
        return self._get(query_path(expression, at_s), ANSWER_WITHIN_S)

    def parse_error(self, expression: str) -> str:
        """What is wrong with an expression; "" where nothing is, or where this server does not tell."""
        try:
            return parse_error(self._get(parse_path(expression), CHECKED_WITHIN_S).body)
        except TransportError:
            return ""

    def check(self) -> str:
        """That it answers queries; its version, "" where it does not tell (Thanos and the like). Raises ConfigError."""
        try:
            answer = self._get(query_path(_PROBE, time.time()), CHECKED_WITHIN_S)
            read_vector(answer.status, answer.body)
            told = self._get(_BUILD_INFO, CHECKED_WITHIN_S)
        except TransportError as error:
            raise ConfigError(f"Prometheus at {self.name}: {words(error)}") from error
        except QueryFailed as error:
            raise ConfigError(f"Prometheus at {self.name}: {error}") from error
        try:
            return msgspec.json.decode(told.body, type=_BuildInfo).data.version
        except msgspec.MsgspecError:
            return ""

    def _get(self, path: str, within_s: float) -> Response:
        access = self._access
        connection: http.client.HTTPConnection
        if access.tls is None:
            connection = http.client.HTTPConnection(access.host, access.port, timeout=within_s)
        else:
            connection = _Https(access, access.tls, within_s)
        try:
            connection.putrequest("GET", access.prefix + path)
            for header in access.headers():
                connection.putheader(*header)
            connection.endheaders()
            answer = connection.getresponse()
            body = answer.read(MOST_BYTES + 1)
            if len(body) > MOST_BYTES:
                raise TransportError(
                    Failure.PROTOCOL, f"an answer of more than {MOST_BYTES >> 20} MiB", self.name
                )
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Response(answer.status, headers, body, self.name)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise TransportError(_kind(error), _said(error), self.name) from error
        finally:
            connection.close()


class _Https(http.client.HTTPSConnection):
    """With a name of its own for the certificate."""

    def __init__(self, access: Access, context: ssl.SSLContext, within_s: float) -> None:
        super().__init__(access.host, access.port, timeout=within_s, context=context)
        self._tls = context
        self._name = access.server_name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


def _kind(error: Exception) -> Failure:
    if isinstance(error, TimeoutError):
        return Failure.TIMEOUT
    if isinstance(error, ssl.SSLError):
        return Failure.TLS
    if isinstance(error, (http.client.HTTPException, ValueError)):
        return Failure.PROTOCOL
    return Failure.RESET if isinstance(error, ConnectionResetError) else Failure.REFUSED


def words(error: TransportError) -> str:
    """Why there is no answer."""
    kind = error.failure.value
    return kind if error.detail.lower() == kind else f"{kind}: {error.detail}"


def _said(error: Exception) -> str:
    text = str((isinstance(error, OSError) and error.strerror) or error)
    return " ".join(text.split()) or type(error).__name__
