"""A socket that waits to be read is reported once more at most, whatever else the process has to do first."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import gevent
import pytest

from harness.transport.channel import Channel
from harness.transport.dialing import Dialled, PlainSocket
from harness.transport.endpoints import Endpoint

from .conftest import wait_until


class Dispatcher:
    """Does nothing until it is told to."""

    def __init__(self) -> None:
        self.work: list = []

    def push(self, work) -> None:
        self.work.append(work)

    def turn(self) -> None:
        work, self.work = self.work, []
        for each in work:
            each()


class Owner:
    def __init__(self) -> None:
        self.data = b""
        self.ended = False

    def received(self, data: bytes) -> None:
        self.data += data

    def writable(self) -> None: ...

    def lost(self, error) -> None:
        self.ended = True


@pytest.fixture
def setting() -> Iterator[tuple[Channel, Dispatcher, Owner, socket.socket]]:
    ours, peer = socket.socketpair()
    sock = PlainSocket(fileno=ours.detach())
    sock.setblocking(False)
    dispatcher, owner = Dispatcher(), Owner()
    channel = Channel(Dialled(Endpoint("127.0.0.1", 1, "m"), sock, None, ""), dispatcher, owner)
    dispatcher.turn()  # a channel looks once by itself
    yield channel, dispatcher, owner, peer
    channel.close()
    peer.close()


def reports(channel: Channel) -> list[int]:
    """Gets an item each time the loop reports the socket from now on."""
    seen: list[int] = []
    reader = channel._reader
    reader.stop()
    reader.start(lambda: (seen.append(1), channel._readable()))
    return seen


def test_a_socket_that_nobody_gets_round_to_is_reported_twice(setting) -> None:
    channel, dispatcher, _, peer = setting
    seen = reports(channel)
    peer.send(b"one")
    wait_until(lambda: len(seen) >= 2)
    for _ in range(20):
        gevent.sleep(0)
    gevent.sleep(0.01)
    assert len(seen) == 2
    assert len(dispatcher.work) == 1


def test_it_is_watched_again_once_it_was_read(setting) -> None:
    _, dispatcher, owner, peer = setting
    peer.send(b"one")
    wait_until(lambda: dispatcher.work)
    dispatcher.turn()
    assert owner.data == b"one"
    peer.send(b"two")
    wait_until(lambda: dispatcher.work)
    dispatcher.turn()
    assert owner.data == b"onetwo"


def test_one_that_is_closed_while_it_waits_stays_closed(setting) -> None:
    channel, dispatcher, owner, peer = setting
    peer.send(b"one")
    wait_until(lambda: dispatcher.work)
    channel.close()
    dispatcher.turn()
    assert owner.data == b""
    assert not owner.ended
