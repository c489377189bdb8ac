"""Both header coders: the Rust one and `hpack`, each against the other."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.wire.http2 import Headers, hpack_coder
from harness.wire.http2.hpack_coder import Coder, HpackError, PythonCoder, RustCoder
from tests.wire.http2.http2_peer import REQUEST, RESPONSE, pair, settle

CODERS = [pytest.param(RustCoder, id="rust"), pytest.param(PythonCoder, id="python")]
names = st.sampled_from([b":path", b":status", b"date", b"audit-id", b"x-a", b"x-b", b"authorization"])
lists = st.lists(st.lists(st.tuples(names, st.binary(max_size=60)), max_size=8), max_size=6)


@pytest.mark.parametrize("encoder", CODERS)
@pytest.mark.parametrize("decoder", CODERS)
@settings(deadline=None, max_examples=40)
@given(blocks=lists, sizes=st.lists(st.sampled_from([0, 64, 200, 4096]), min_size=6, max_size=6))
def test_any_headers_survive_any_pair_of_coders(
    encoder: type[Coder], decoder: type[Coder], blocks, sizes
) -> None:
    writer, reader = encoder(), decoder()
    for headers, size in zip(blocks, sizes, strict=False):
        writer.set_encoder_table_size(size)
        assert reader.decode(writer.encode(headers)) == headers


@pytest.mark.parametrize("coder", CODERS)
@pytest.mark.parametrize(
    "block",
    [b"\x80", b"\xbf", b"\xff" * 20, b"\x40", b"\x00\x85", b"\x00\x81\xff\x00", b"\x3f\xe2\x1f", b"\x00\x01"],
    ids=lambda block: block.hex(),
)
def test_a_broken_block_raises_hpack_error(coder: type[Coder], block: bytes) -> None:
    with pytest.raises(HpackError):
        coder().decode(block)


@pytest.mark.parametrize("coder", CODERS)
@settings(deadline=None, max_examples=150)
@given(block=st.binary(max_size=40))
def test_nothing_but_hpack_error_escapes(coder: type[Coder], block: bytes) -> None:
    with contextlib.suppress(HpackError):
        coder().decode(block)


@pytest.mark.parametrize("coder", CODERS)
def test_paths_and_audit_ids_stay_out_of_the_dynamic_table(coder: type[Coder]) -> None:
    writer = coder()
    for number in range(100):
        writer.encode([(b":path", b"/p/%d" % number), (b"audit-id", b"%d" % number)])
    first = [(b":method", b"GET"), (b"authorization", b"Bearer abcdefgh")]
    writer.encode(first)
    assert len(writer.encode(first)) == 2  # one byte each


def test_without_jh2_the_python_coder_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hpack_coder, "_rust", None)
    assert isinstance(hpack_coder.new_coder(), PythonCoder)
    client, server = pair()
    client.request(REQUEST)
    settle(client, server)
    server.respond(1, RESPONSE, end_stream=True)
    assert settle(client, server)[0] == [Headers(1, RESPONSE, True)]
