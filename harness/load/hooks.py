"""Our listeners on Locust's events; a locustfile calls `install()` once."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from functools import cache, partial
from types import FrameType
from typing import Any

import gevent
from locust import argument_parser, events, runners
from locust.runners import STATE_RUNNING, STATE_SPAWNING, LocalRunner, MasterRunner, WorkerRunner

from harness.load import plan as plans
from harness.load.arguments import add_arguments, options_from
from harness.load.context import WorkerContext
from harness.load.desk import LOCAL
from harness.load.executors import MESSAGE
from harness.load.informerrun import fit
from harness.load.lifeline import Lifeline, end_with_command
from harness.load.openfiles import raise_limit
from harness.load.provisionerrun import fit_provisioners
from harness.load.provisionervirtual import run_virtual
from harness.load.session import CREDENTIALS, Session
from harness.load.users import KubeletUser
from harness.load.virtualarguments import check_virtual
from harness.load.workers.failures import ORDERED, carry_out, nodes_of
from harness.load.workers.nodes import NODES_NAMED, LostWorker
from harness.load.workers.placement import StayingDispatcher, Workers, dismiss
from harness.observe.record import REPORTED_EVERY_S
from harness.transport.credentials import Credentials
from harness.wire.errors import SwarmletError

NOTE = "swarmlet-note"
REPORT = "swarmlet"

JOINED_LOOK_S = 0.01
WORKER_SILENT_S = 10
"""Beats, one a second, that Locust's master waits for a worker's before it gives up on it. Locust's own 3 are too few
for a worker that spawns hundreds of TLS connections on a shared core: it came back, but its users had been handed to
others meanwhile, and the fleet was not the one that was asked for."""

_lifeline = Lifeline()
_installed: list[bool] = []


def install() -> None:
    """Register everything with Locust, once, however many of our locustfiles one imports. A locustfile's import is the
    right moment: arguments are parsed after it, and ``--processes`` forks after that."""
    if _installed:
        return
    _installed.append(True)
    _lifeline.tie()
    end_with_command()
    runners.HEARTBEAT_LIVENESS = WORKER_SILENT_S
    runners.WORKER_REPORT_INTERVAL = REPORTED_EVERY_S
    _spare_workers_parsers()
    hooks: Any = events  # Locust annotates its events' hooks, not their methods
    hooks.init_command_line_parser.add_listener(add_arguments)
    hooks.init.add_listener(_on_init)
    hooks.test_start.add_listener(_on_test_start)
    hooks.test_stopping.add_listener(_on_test_stopping)
    hooks.test_stop.add_listener(_on_test_stop)
    hooks.quitting.add_listener(_on_quitting)


def _spare_workers_parsers() -> None:
    """Locust's workers make a parser of Locust's own options for each single option of every spawn message
    (locust/runners.py, WorkerRunner.handle_message): with ours too, seconds of CPU each time, in which a worker says
    nothing and counts as lost. The answer is always the same."""
    argument_parser.default_args_dict = cache(argument_parser.default_args_dict)


def _on_init(environment: Any, runner: Any, **_: Any) -> None:
    _lifeline.untie()
    environment.swarmlet_context = None
    environment.swarmlet_session = None
    environment.reset_stats = False
    environment.events.spawning_complete.add_listener(partial(_on_spawning_complete, environment))
    if isinstance(runner, WorkerRunner):
        environment.events.report_to_master.add_listener(partial(_on_report_to_master, environment))
        runner.register_message(CREDENTIALS, _on_credentials)
        runner.register_message(MESSAGE, _on_told)
        runner.register_message(NODES_NAMED, _on_named)
        runner.register_message(ORDERED, _on_ordered)
        signal.signal(signal.SIGINT, _as_sigterm)
        return
    if isinstance(runner, MasterRunner):
        runner.clients = Workers(runner.clients)
    _start_session(environment)
    if isinstance(runner, MasterRunner):
        environment.dispatcher_class = partial(StayingDispatcher, dismiss=partial(dismiss, runner))
        # Users of a lost worker are started elsewhere at once, and not when it has been gone for a minute.
        replaces = environment.swarmlet_session.options.lost_worker is not LostWorker.END
        environment.parsed_options.enable_rebalancing = replaces
        runner.register_message(NOTE, _on_note)
        runner.register_message(MESSAGE, _on_message)
        environment.events.worker_report.add_listener(partial(_on_worker_report, environment))


def _start_session(environment: Any) -> None:
    session: Session | None = None
    try:
        check_virtual(environment.parsed_options)
        options = fit(environment, options_from(environment.parsed_options))
        options = fit_provisioners(environment, options)
        if options.provisioners is not None and options.provisioners.virtual:
            sys.exit(run_virtual(options))
        users = environment.user_classes
        helpers = sum(user.fixed_count for user in users if not issubclass(user, KubeletUser))
        session = Session(environment, options, helpers)
        environment.swarmlet_session = session
        atexit.register(
            session.finish
        )  # Locust leaves without its quitting event where it never began to run
        _heed_signals(session, environment.parsed_options.headless)
        session.start()
    except SwarmletError as error:
        if session is not None:
            session.fail_to_start(error)
        print(f"swarmlet: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def _heed_signals(session: Session, headless: bool) -> None:
    """SIGINT and SIGTERM end a run as its scenario's end does, in order; a second one does not wait.

    Locust itself takes SIGTERM only once a headless shape has ended (locust/main.py), and raises KeyboardInterrupt in
    whichever greenlet happens to run, a spawning one included.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        first = session.interrupt(signal.Signals(number).name)
        if not session.started:
            raise SystemExit(1)
        if not (first and headless):
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def _as_sigterm(_number: int, _frame: FrameType | None) -> None:
    """A worker takes Ctrl-C as SIGTERM, which Locust answers in a greenlet of its own."""
    os.kill(os.getpid(), signal.SIGTERM)


def _on_test_start(environment: Any, **_: Any) -> None:
    while not hasattr(environment, "swarmlet_session"):
        # A worker that joins a run is told to begin while its runner is still being made; init comes after that.
        gevent.sleep(JOINED_LOOK_S)
    runner = environment.runner
    if environment.swarmlet_session is not None:
        environment.swarmlet_session.begin()
    if isinstance(runner, MasterRunner):
        return
    raise_limit()
    plan = plans.decode(getattr(environment.parsed_options, plans.OPTION))
    wall = plan.pace.stamps(time.time)

    def tell(kind: str, fields: dict[str, Any]) -> None:
        if isinstance(runner, LocalRunner):
            environment.swarmlet_session.tell(kind, fields)
        else:
            runner.send_message(NOTE, {"t": wall(), "kind": kind, "fields": fields})

    def send(to: str, body: bytes) -> None:
        if isinstance(runner, LocalRunner):
            environment.swarmlet_session.desk.take(LOCAL, to, body)
        else:
            runner.send_message(MESSAGE, {"to": to, "body": body})

    index = max(0, runner.worker_index)
    environment.swarmlet_context = WorkerContext(plan, index, environment.events.request.fire, tell, send)
    environment.swarmlet_context.heap.begin()
    if isinstance(runner, WorkerRunner):
        tell("worker-started", {"index": index, "pid": os.getpid()})


def _on_spawning_complete(environment: Any, **_: Any) -> None:
    context: WorkerContext | None = environment.swarmlet_context
    if context is not None:
        context.heap.spawned()
        context.lag.start()
        context.nodes.settled = isinstance(environment.runner, WorkerRunner)
    if environment.swarmlet_session is not None:
        environment.swarmlet_session.spawned()


def _on_test_stopping(environment: Any, **_: Any) -> None:
    context: WorkerContext | None = environment.swarmlet_context
    if context is not None:
        context.lag.stop()
        context.heap.stop()


def _on_test_stop(environment: Any, **_: Any) -> None:
    context: WorkerContext | None = environment.swarmlet_context
    if context is not None:
        context.close()


def _on_report_to_master(environment: Any, client_id: str, data: dict[str, Any], **_: Any) -> None:
    context: WorkerContext | None = environment.swarmlet_context
    if context is not None:
        data[REPORT] = context.report()


def _on_worker_report(environment: Any, client_id: str, data: dict[str, Any], **_: Any) -> None:
    if REPORT in data:
        environment.swarmlet_session.take(data[REPORT], environment.runner.get_worker_index(client_id))


def _on_note(environment: Any, msg: Any, **_: Any) -> None:
    environment.swarmlet_session.tell(msg.data["kind"], msg.data["fields"], msg.data["t"])


def _on_message(environment: Any, msg: Any, **_: Any) -> None:
    """A worker says something to another, or to the master."""
    desk = environment.swarmlet_session.desk
    desk.take(desk.name_of(msg.node_id), msg.data["to"], msg.data["body"])


def _on_told(environment: Any, msg: Any, **_: Any) -> None:
    context: WorkerContext | None = environment.swarmlet_context
    if context is not None:
        context.executors.told(msg.data["by"], msg.data["body"])


def _on_named(environment: Any, msg: Any, **_: Any) -> None:
    context: WorkerContext | None = environment.swarmlet_context
    if context is not None:
        context.nodes.hand_over(msg.data["names"], msg.data["made"], msg.data["empty"])


def _on_ordered(environment: Any, msg: Any, **_: Any) -> None:
    context: WorkerContext | None = environment.swarmlet_context
    if context is not None:
        carry_out(msg.data["body"], nodes_of(environment.runner), context.tell)


def _on_credentials(environment: Any, msg: Any, **_: Any) -> None:
    context: WorkerContext | None = environment.swarmlet_context
    if context is not None:
        cert, key = msg.data["cert"].encode() or None, msg.data["key"].encode() or None
        context.refresh(Credentials(msg.data["token"], cert, key))


def _on_quitting(environment: Any, **_: Any) -> None:
    """The exit code: the session's, or of a worker whether it was still at work. Locust's own would be 1 for every
    run in which any request was answered by 404, which a kubelet's first ones are."""
    session: Session | None = environment.swarmlet_session
    if session is not None:
        environment.process_exit_code = session.finish()
    elif isinstance(environment.runner, WorkerRunner):
        at_work = environment.runner.state in (STATE_RUNNING, STATE_SPAWNING)
        environment.process_exit_code = 1 if at_work else 0
        if at_work:  # Locust sends no report of what came after the one before
            environment.runner.stop()
            environment.runner._send_stats()
