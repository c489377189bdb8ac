"""Continue tokens are those of a real apiserver."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire import continues
from harness.wire.continues import ContinueError


def _token(body: bytes) -> str:
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


def test_a_token_is_what_upstream_writes() -> None:
    token = continues.encode(42, "ns/name\0")
    assert token == _token(b'{"v":"meta.k8s.io/v1","rv":42,"start":"ns/name\\u0000"}')
    assert continues.decode(token) == (42, "ns/name\0")
    assert continues.decode(continues.encode(continues.CURRENT, "/ns/a")) == (-1, "ns/a")


@pytest.mark.parametrize(
    ("token", "message"),
    [
        # recorded of v1.36.2
        ("garbage", "continue key is not valid: invalid character '\\x81' looking for beginning of value"),
        ("****", "continue key is not valid: illegal base64 data at input byte 0"),
        ("", "continue key is not valid: unexpected end of JSON input"),
        (
            _token(b'{"v":"v2","rv":1,"start":"a"}'),
            "continue key is not valid: server does not recognize this encoded version v2",
        ),
        (
            _token(b'{"v":"meta.k8s.io/v1","start":"a"}'),
            "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (
            _token(b'{"v":"meta.k8s.io/v1","rv":1}'),
            "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)",
        ),
        (_token(b'{"v":"meta.k8s.io/v1","rv":1,"start":"../x"}'), "continue key is not valid: ../x"),
        (_token(b'{"v":"meta.k8s.io/v1","rv":1,"start":"//x"}'), "continue key is not valid: //x"),
    ],
)
def test_a_bad_token_says_why(token: str, message: str) -> None:
    with pytest.raises(ContinueError) as caught:
        continues.decode(token)
    assert str(caught.value) == f"invalid continue token: {message}"


@given(st.text(max_size=40))
def test_only_the_declared_error_escapes(token: str) -> None:
    try:
        continues.decode(token)
    except ContinueError as error:
        assert str(error)  # noqa: PT017
