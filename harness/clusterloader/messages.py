"""What the parts of a test say to each other: the leader, the executors beside it, the run's master.

A message travels inside an action `Tell` and comes as an event `Told`; whoever runs the machines carries it. `number`
is the asker's own and comes back in every reply. Times are seconds of the clock of the machine that they are for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from harness.client.machine import Tell, Told
from harness.clusterloader.tasks import Future, Tasks

MASTER = "master"
"""The name of the run's master, who knows the workers, owns the pool and runs commands. A worker's is
``worker-<index>``."""


class Message(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    number: int


# ---- executors -----------------------------------------------------------------------------------------------------
class Recruit(Message, frozen=True):
    """To the master: which workers can be executors beside the sender? At most `most` are wanted."""

    most: int


class Recruits(Message, frozen=True):
    """`you` is the asker's own name."""

    you: str
    members: tuple[str, ...]


class Ping(Message, frozen=True):
    """To an executor: what time is it there? The first one has it read the test."""


class Pong(Message, frozen=True):
    at_s: float


class Order(Message, frozen=True):
    """To an executor: do share `share` of `of` of a phase (the `phase`-th of the `step`-th step, from 0), from
    `start_s` on.

    `replicas` are the namespaces with the number of replicas that there are; `seed` draws the schedule, which is the
    same for every share; `digest` is that of the phase (`shares.digest`).
    """

    step: int
    phase: int
    digest: str
    replicas: tuple[tuple[str, int], ...]
    seed: int
    start_s: float
    share: int
    of: int
    executors: int
    """Of the whole test, among whom clients' rate limits are divided; a phase may have less use for them."""


class Dismiss(Message, frozen=True):
    """To an executor: give up what you do."""


class Report(Message, frozen=True):
    """From an executor, once a second and at the end: operations that have ended so far, out of those in its share.

    With `ended` come the failures (text and kind, and how many more there were of each kind), and what was sent and
    tried again; `error` says why the order could not be carried out.
    """

    done: int
    total: int
    ended: bool = False
    error: str = ""
    failures: tuple[tuple[str, str], ...] = ()
    more: dict[str, int] = {}
    operations: dict[str, int] = {}
    retries: dict[str, int] = {}


# ---- what the master does ------------------------------------------------------------------------------------------
class Execute(Message, frozen=True):
    """To the master: run a command of the config's, at most so long."""

    command: tuple[str, ...]
    timeout_s: float


class Executed(Message, frozen=True):
    """`error` is "" where it ended with exit code 0 in time; `log` is the file with what it wrote."""

    error: str
    log: str


class Restart(Message, frozen=True):
    """To the master: end an apiserver of the pool, start it again `down_s` later, wait until it is ready."""

    down_s: float
    ready_timeout_s: float


class Restarted(Message, frozen=True):
    """`unsupported`: why this target's apiservers cannot be restarted; `error`: what went wrong; both "" where
    `member` serves again, `seconds` after it was told to end."""

    member: str = ""
    seconds: float = 0.0
    error: str = ""
    unsupported: str = ""


class FailNodes(Message, frozen=True):
    """To the master: the machines of these nodes die, on whichever worker they are. There is no reply: every worker
    tells of each that it had."""

    names: tuple[str, ...]


class RebootNodes(Message, frozen=True):
    """To the master: they start again. One that never died goes on."""

    names: tuple[str, ...]


class Query(Message, frozen=True):
    """To the master: ask the run's Prometheus for the instant vector of `expression` at `at_s`, in seconds since
    1970."""

    expression: str
    at_s: float


class Queried(Message, frozen=True):
    """The HTTP answer, whatever its status; `error` says why there is none."""

    status: int = 0
    body: bytes = b""
    error: str = ""


AnyMessage: TypeAlias = (
    Recruit
    | Recruits
    | Ping
    | Pong
    | Order
    | Dismiss
    | Report
    | Execute
    | Executed
    | Restart
    | Restarted
    | FailNodes
    | RebootNodes
    | Query
    | Queried
)
_decode = msgspec.msgpack.Decoder(AnyMessage).decode
Listener = Callable[[AnyMessage], None]


def encode(message: AnyMessage) -> bytes:
    return msgspec.msgpack.encode(message)


def decode(body: bytes) -> AnyMessage:
    """Raises msgspec.MsgspecError for what is no message."""
    return _decode(body)


class Post:
    """The messages of one machine's tasks."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._count = 0
        self._open: dict[int, Listener] = {}

    def number(self) -> int:
        """For the next message that wants replies."""
        self._count += 1
        return self._count

    def tell(self, to: str, message: AnyMessage) -> None:
        self._tasks.emit(Tell(to, message))

    def listen(self, to: str, message: AnyMessage, listener: Listener) -> None:
        """Send, and give `listener` every reply until `close`."""
        self._open[message.number] = listener
        self.tell(to, message)

    def ask(self, to: str, message: AnyMessage) -> Future[AnyMessage]:
        """Send; done with the first reply."""
        reply: Future[AnyMessage] = Future()

        def heard(answer: AnyMessage) -> None:
            self.close(message.number)
            reply.set(answer)

        self.listen(to, message, heard)
        return reply

    def close(self, number: int) -> None:
        """Listen no longer; what comes late is dropped."""
        self._open.pop(number, None)

    def handle(self, event: Told) -> None:
        message: AnyMessage = event.message
        listener = self._open.get(message.number)
        if listener is not None:
            listener(message)
