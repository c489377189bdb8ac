"""One request to one member, for commands: a connection each, blocking."""

from __future__ import annotations

import http.client
import ssl

TIMEOUT_S = 60.0


def call(
    host: str,
    port: int,
    context: ssl.SSLContext | None,
    token: str,
    method: str,
    path: str,
    body: bytes = b"",
    content_type: str = "application/json",
) -> tuple[int, bytes]:
    """(status, body). `context` None is cleartext. Raises OSError, for what is no HTTP answer too."""
    connection = (
        http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
        if context is None
        else http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
    )
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if body:
        headers["Content-Type"] = content_type
    try:
        connection.request(method, path, body=body or None, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except http.client.HTTPException as error:
        raise OSError(f"no HTTP answer: {repr(error)[:100]}") from error
    finally:
        connection.close()
