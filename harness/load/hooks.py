"""Our listeners on Locust's events; a locustfile calls `install()` once."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import Any

from locust import events
from locust.runners import LocalRunner, MasterRunner, WorkerRunner

from harness.load import plan as plans
from harness.load.arguments import add_arguments, options_from
from harness.load.context import WorkerContext
from harness.load.session import Session
from harness.load.users import KubeletUser
from harness.wire.errors import SwarmletError

NOTE = "swarmlet-note"
REPORT = "swarmlet"


def install() -> None:
    """Register everything with Locust. A locustfile's import is the right moment: arguments are parsed after it."""
    hooks: Any = events  # Locust annotates its events' hooks, not their methods
    hooks.init_command_line_parser.add_listener(add_arguments)
    hooks.init.add_listener(_on_init)
    hooks.test_start.add_listener(_on_test_start)
    hooks.test_stop.add_listener(_on_test_stop)
    hooks.quitting.add_listener(_on_quitting)


def _on_init(environment: Any, runner: Any, **_: Any) -> None:
    environment.swarmlet_context = None
    environment.swarmlet_session = None
    environment.reset_stats = False
    if isinstance(runner, WorkerRunner):
        environment.events.report_to_master.add_listener(partial(_on_report_to_master, environment))
        return
    helpers = sum(user.fixed_count for user in environment.user_classes if not issubclass(user, KubeletUser))
    session: Session | None = None
    try:
        session = Session(environment, options_from(environment.parsed_options), helpers)
        environment.swarmlet_session = session
        session.start()
    except SwarmletError as error:
        if session is not None:
            session.fail_to_start(error)
        print(f"swarmlet: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    if isinstance(runner, MasterRunner):
        runner.register_message(NOTE, _on_note)
        environment.events.worker_report.add_listener(partial(_on_worker_report, environment))


def _on_test_start(environment: Any, **_: Any) -> None:
    runner = environment.runner
    if isinstance(runner, MasterRunner):
        return
    plan = plans.decode(getattr(environment.parsed_options, plans.OPTION))

    def tell(kind: str, fields: dict[str, Any]) -> None:
        if isinstance(runner, LocalRunner):
            environment.swarmlet_session.tell(kind, fields)
        else:
            runner.send_message(NOTE, {"t": time.time(), "kind": kind, "fields": fields})

    index = max(0, runner.worker_index)
    environment.swarmlet_context = WorkerContext(plan, index, environment.events.request.fire, tell)
    if isinstance(runner, WorkerRunner):
        tell("worker-started", {"index": index, "pid": os.getpid()})


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
        environment.swarmlet_session.take(data[REPORT])


def _on_note(environment: Any, msg: Any, **_: Any) -> None:
    environment.swarmlet_session.tell(msg.data["kind"], msg.data["fields"], msg.data["t"])


def _on_quitting(environment: Any, **_: Any) -> None:
    session: Session | None = environment.swarmlet_session
    if session is not None:
        environment.process_exit_code = session.finish()
