"""gzip: large answers to clients that ask, and nothing else."""

import gzip
from typing import Any

import pytest
from fakemember import Server

from harness.apiserver.handlers.call import Answer
from harness.apiserver.handlers.compression import THRESHOLD_BYTES, compress, is_wanted

PATH = "/api/v1/namespaces/ns/configmaps"


@pytest.mark.parametrize(
    ("size", "accepted", "wanted"),
    [
        (THRESHOLD_BYTES, "gzip", False),
        (THRESHOLD_BYTES + 1, "gzip", True),
        (THRESHOLD_BYTES + 1, "deflate, gzip", True),
        (THRESHOLD_BYTES + 1, " gzip ", True),
        (THRESHOLD_BYTES + 1, "gzip;q=1.0", False),
        (THRESHOLD_BYTES + 1, "deflate", False),
        (THRESHOLD_BYTES + 1, "", False),
    ],
)
def test_who_gets_gzip(size: int, accepted: str, wanted: bool) -> None:
    assert is_wanted(Answer(b"x" * size), {"accept-encoding": accepted} if accepted else {}) is wanted


def test_a_compressed_answer_says_so_and_keeps_its_headers() -> None:
    answer = Answer(b"x" * 200_000, headers={"warning": "w"})
    compress(answer)
    assert gzip.decompress(answer.body) == b"x" * 200_000
    assert answer.headers == {"warning": "w", "content-encoding": "gzip", "vary": "Accept-Encoding"}


@pytest.fixture
def filled(server: Server) -> Server:
    server.ask("POST", PATH, {"metadata": {"name": "large"}, "data": {"k": "v" * THRESHOLD_BYTES}})
    return server


@pytest.mark.parametrize(
    "path", [PATH, PATH + "/large", PATH + "?limit=1", PATH + "/large?resourceVersion=0"]
)
def test_gets_and_lists_are_compressed(filled: Server, path: str) -> None:
    plain = filled.ask("GET", path)
    packed = filled.ask("GET", path, headers={"accept-encoding": "gzip"})
    assert packed.status == 200
    assert packed.answer_headers["content-encoding"] == "gzip"
    assert packed.answer_headers["vary"] == "Accept-Encoding"
    assert gzip.decompress(packed.data) == plain.data
    assert "content-encoding" not in plain.answer_headers
    assert "vary" not in plain.answer_headers


def test_watches_are_not(filled: Server) -> None:
    watch = filled.send("GET", PATH + "?watch=1&resourceVersion=0", headers={"accept-encoding": "gzip"})
    filled.settle()
    assert "content-encoding" not in watch.answer_headers
    assert watch.events[0]["object"]["metadata"]["name"] == "large"
    watch.leave()


def test_compressing_takes_modelled_time() -> None:
    def duration(accept: dict[str, str]) -> float:
        server = Server(cores=1.0, costs={"gzip_kib_us": 10_000.0})
        try:
            body: Any = {"metadata": {"name": "large"}, "data": {"k": "v" * THRESHOLD_BYTES}}
            server.ask("POST", "/api/v1/namespaces/default/configmaps", body)
            began = server.clock.now()
            server.ask("GET", "/api/v1/namespaces/default/configmaps/large", headers=accept)
            return server.clock.now() - began
        finally:
            server.close()

    assert duration({"accept-encoding": "gzip"}) - duration({}) > 1.0
