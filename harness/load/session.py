"""One run, seen from Locust's master: what it starts, what it keeps, when it is over, how it ends.

Workers tell the session what happened (`tell`), the shape asks it whether to go on (`over`), and `finish` closes the
record, ends every process and gives the exit code. In a run without workers the same object serves in the
one process.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import gevent
import msgspec

from harness.apiserver.faults.spec import FaultSpec
from harness.load.arguments import RunOptions
from harness.load.cluster.foreignfaults import ForeignFaults
from harness.load.cluster.prepare import prepare
from harness.load.cluster.refresh import Refresher
from harness.load.clusterarguments import read_identity
from harness.load.desk import RESTART_EVENTS, Desk
from harness.load.faults import RunFaults, check_steps, inject
from harness.load.informerrun import InformerRun
from harness.load.live.show import Show
from harness.load.live.view import View
from harness.load.outcome import Outcome
from harness.load.plan import OPTION, Identity, Plan, Target, encode
from harness.load.prometheus.running import RunPrometheus
from harness.load.provisionerusers import CLAIMS_ENDED
from harness.load.scraping import Scraping, etcd_sources
from harness.load.tally import Tally
from harness.load.target import of_pool
from harness.load.verdict import host_kept_up
from harness.load.work import CLAIMS, SCENARIO, Work, is_recorded
from harness.load.workers.failures import FailedNodes
from harness.load.workers.nodes import NODES_WANTED
from harness.load.workers.oversight import Oversight
from harness.observe.environment import host, versions
from harness.observe.record import Manifest, RunRecord, Status
from harness.pool.balancer.telling import KIND as BALANCED
from harness.pool.disturbances import BeginFault
from harness.pool.process import Process
from harness.transport.credentials import Credentials, Rotation
from harness.wire.errors import ConfigError

logger = logging.getLogger("swarmlet")

POOL_READY_WITHIN_S = 90.0
FLUSH_EVERY_S = 10.0
LOOK_EVERY_S = 0.5
SHAPE_ENDS_WITHIN_S = 3.0
REFRESH_EVERY_S = 1.0
CREDENTIALS = "swarmlet-credentials"
"""Locust's message from master to workers that carries fresh ones."""

REPLACED_EVENTS = ("component-ended", "component-restarted", "process-restarted")
"""Of what the pool starts again itself: kube-scheduler, kube-controller-manager (with another one, or for a second, a
run goes on without), a store that keeps what it has."""

FAULT_EVENTS = ("fault-started", "fault-ended", "fault-failed")


class Session:
    """`started` is True once users are being spawned, `over` when the run must end, and the shape sets `ending` when it
    ends it. `helpers` is how many users there are beside the kubelets."""

    def __init__(self, environment: Any, options: RunOptions, helpers: int) -> None:
        self.work = Work(environment, options, self.tell)
        self.options = options = self.work.options
        check_steps(options.faults, self.work.steps)
        self.helpers = helpers
        self.started = False
        self.over = False
        self.ending = False
        self._environment = environment
        self._interrupted_by = ""
        self._pool: Process | None = None
        name = {"name": options.record.name, "arm": options.arm, "sample": str(options.sample)}
        self.view = View({**name, "scenario": options.scenario}, options.target_text)
        self._show: Show | None = None
        self._scraping = Scraping(
            options.record,
            options.scrape_interval_s,
            lambda process, code: self._process_exited(process.name, code),
            self.view.scraped,
            options.pace,
        )
        self._follower: Any = None
        self._now = options.pace.seconds(time.monotonic)
        self._began = self._now()
        self._flushed = time.monotonic()
        self._loading = False
        self._faults = RunFaults(options.faults, self._inject, options.pace)
        self._foreign_faults: ForeignFaults | None = None
        self._finished = False
        self._refresher: Refresher | None = None
        self._refreshing: Any = None
        self._told_refused = False
        self._ending_as: Status | None = None
        manifest = Manifest(
            name=options.record.name,
            started=options.pace.stamps(time.time)(),
            arm=options.arm,
            sample=options.sample,
            seed=options.seed,
            nodes=options.kubelets,
            pace=options.pace,
            arguments={"argv": sys.argv[1:], "options": msgspec.to_builtins(options, enc_hook=str)},
            versions=versions(),
            host=host(),
            scenario=self.work.described,
        )
        try:
            self.record = RunRecord(options.record, manifest)
        except OSError as error:
            raise ConfigError(f"--record {options.record}: cannot be written: {error.strerror}") from error
        for text in self.work.ignored:
            self.record.mark(f"ignored: {text}")
        self._outcome = Outcome(self.record)
        self._tally = Tally(self.record)
        self._failed_nodes = FailedNodes()
        logs, allow = options.record / "logs", options.allow_exec
        self._oversight = Oversight(
            environment, options, self.record, lambda name: name in self.desk.crew, self._fail
        )
        self.desk = Desk(environment, self.tell, logs, options.seed, allow_exec=allow)
        self._prometheus = RunPrometheus(
            options.prometheus,
            options.record,
            options.scrape_interval_s,
            lambda process, code: self._process_exited(process.name, code),
        )
        self.desk.query = self._prometheus.ask

    # ---- start -----------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Start pool and scraper, tell the workers the plan. Raises SwarmletError; `finish` is due even then."""
        self._prometheus.choose(self.work.config)
        address, wall = self.options.metrics_bind_address, self.record.wall
        self._show = Show(self._environment, self.view, address, wall)
        target = self._start_target()
        plan = Plan(
            seed=self.options.seed,
            kubelets=self.options.kubelets,
            target=target,
            scenario=self.options.scenario,
            overrides=self.options.overrides,
            files=self.work.files.seen,
            environ={key: value for key, value in os.environ.items() if key.startswith("CL2_")},
            http=self.options.http,
            policy=self.options.cluster.policy,
            streams=self.options.cluster.streams,
            identity=self._identity(),
            run=self.options.run,
            fleet=self.options.fleet,
            scheduler=self.options.scheduler,
            controllers=self.options.controllers,
            provisioners=self.options.provisioners,
            executors=self.options.executors,
            informers=self.options.informers if self.work.informers is not None else None,
            prometheus=self._prometheus.at_hand,
            pace=self.options.pace,
        )
        self._tell_plan(plan)
        self._target = target
        self._start_scraper(target)
        self._start_prometheus()
        if self.options.existing:
            self._foreign_faults = ForeignFaults(target, self._fault_told)
        names = [member.name for member in target.members]
        self.view.members.expect(names)
        self.record.event("target-ready", {"members": names})
        self._follower = gevent.spawn(self._follow)
        if self._refresher is not None:
            self._refreshing = gevent.spawn(self._refresh)

    def _identity(self) -> Identity:
        """Of the nodes. A pool of real apiservers without a controller manager signs nothing: its authority does."""
        identity = read_identity(self.options.cluster)
        target = self.record.manifest.target
        signs = target.get("signs")
        if identity.kind != "certificate" or identity.ca_key or not signs or target["has_controllers"]:
            return identity
        cert, key = (Path(signs[name]).read_text("ascii") for name in ("cert", "key"))
        return Identity("certificate", ca_cert=cert, ca_key=key)

    def _tell_plan(self, plan: Plan) -> None:
        """Workers get it with Locust's next spawn message, those that join later too."""
        self._plan = plan
        setattr(self._environment.parsed_options, OPTION, encode(plan))

    def _keep_fresh(self, rotation: Rotation | None, target: Target) -> None:
        if rotation is None:
            return
        first = Credentials(target.token, target.cert.encode() or None, target.key.encode() or None)
        self._refresher = Refresher(rotation, first, self._share, lambda why: self.record.mark(why))

    def _refresh(self) -> None:
        while self._refresher is not None:
            gevent.sleep(REFRESH_EVERY_S)
            self._refresher.look()

    def _share(self, credentials: Credentials) -> None:
        """Fresh credentials, for the workers there are, for those to come, and for the scraper."""
        cert, key = (credentials.certificate or b"").decode(), (credentials.key or b"").decode()
        target = msgspec.structs.replace(self._target, token=credentials.token, cert=cert, key=key)
        self._target = target
        self.record.event("credentials-renewed")
        self._tell_plan(msgspec.structs.replace(self._plan, target=target))
        self._scraping.refresh(target)
        if self._foreign_faults is not None:
            self._foreign_faults.refresh(target)
        self._prometheus.use_token(credentials.token)
        runner = self._environment.runner
        if hasattr(runner, "clients"):
            runner.send_message(CREDENTIALS, {"token": credentials.token, "cert": cert, "key": key})
        elif self._environment.swarmlet_context is not None:
            self._environment.swarmlet_context.refresh(credentials)

    def _refused(self) -> None:
        """A worker's requests on the run's own account were answered by 401."""
        if self._refresher is not None:
            gevent.spawn(self._refresher.refused)
        elif not self._told_refused:
            self._told_refused = True
            self.record.mark("the server refuses our credentials (401)", invalid=True)

    def begin(self) -> None:
        """Locust begins to spawn; the time of -t counts from here."""
        self.started = True
        self._began = self._now()

    def spawned(self) -> None:
        """All users are there: a worker that joins from now on gets only such as take the place of others."""
        if self._oversight.distributed and not self._plan.settled:
            self._tell_plan(msgspec.structs.replace(self._plan, settled=True))
        if not self.work.ends_by_itself and self.work.informers is None:
            self._load_began()  # the fleet is all there is

    def _load_began(self) -> None:
        if not self._loading:
            self._loading = True
            self._faults.load_began()

    def _start_target(self) -> Target:
        options = self.options
        if options.existing:
            existing = prepare(options, self.work.config, informers=self.work.informers is not None)
            target = existing.target
            self._keep_fresh(existing.rotation, target)
            self.record.manifest.target = {
                "backend": "existing",
                "members": [msgspec.to_builtins(member) for member in target.members],
                "has_scheduler": target.has_scheduler,
                "has_controllers": target.has_controllers,
                "context": target.context,
                "members_found": existing.members_found,
            }
        else:
            logs = str(options.record.resolve() / "logs")
            pool = msgspec.structs.replace(options.pool, logs=logs, pace=options.pace)
            self._pool = Process(
                "pool",
                "harness.pool.supervisor",
                pool,
                options.record / "logs" / "pool.log",
                on_exit=lambda process, code: self._process_exited(process.name, code),
                on_message=self._pool_says,
            )
            ready = self._pool.wait_ready(POOL_READY_WITHIN_S)
            self.desk.use_pool(self._pool, tuple(m["name"] for m in ready["members"]))
            self.record.manifest.target = ready
            for note in ready.get("notes", ()):
                self.record.mark(note)
            target = of_pool(ready)
        self.record.save()
        return target

    def _start_scraper(self, target: Target) -> None:
        processes = {"locust": os.getpid()}
        if self._pool is not None:
            ready = self.record.manifest.target
            processes.update({m["name"]: m["pid"] for m in ready["members"]})
            processes.update({**ready["processes"], "pool": self._pool.pid})
        self._scraping.start(target, processes, etcd_sources(self.record.manifest.target))

    def _start_prometheus(self) -> None:
        """The one that is started, if one is; which it is stands in the record."""
        self._prometheus.start(self._scraping.sources)
        if found := self._prometheus.describe():
            self.record.manifest.prometheus = found
            self.record.event("prometheus", found)
            self.record.save()
        if self._prometheus.pid:
            self._scraping.watch("prometheus", self._prometheus.pid)

    # ---- while it runs ---------------------------------------------------------------------------------------------
    def tell(self, kind: str, fields: dict[str, Any], t: float | None = None) -> None:
        """Something happened on a worker, or here; `t` is when, in seconds since 1970."""
        if self._finished:
            return
        if is_recorded(kind):
            self.record.event(kind, fields, t=t)
        self.view.steps.happened(kind, fields, self.record.wall() if t is None else t)
        self.work.take(kind, fields)
        self._failed_nodes.take(kind, fields)
        if kind == "informers-started" and not self.options.scenario:
            self._began = self._now()  # -t is the time of the load, not of making what it finds
        elif kind == "worker-started":
            self._scraping.watch(f"worker-{fields['index']}", int(fields["pid"]))
        elif kind == "user-failed":
            self._fail(f"a {fields['user']} failed: {fields['error']}")
        elif kind == "executor-lost":
            self.record.mark(fields["message"], invalid=True)
        elif kind == "credentials-refused":
            self._refused()
        elif kind == NODES_WANTED and not self._interrupted_by and not self.over:
            self._oversight.name_nodes(int(fields["index"]), int(fields["count"]))
        elif kind == "measurement":
            self.record.manifest.results.setdefault("measurements", []).append(fields)
        elif kind == "skipped":
            self.record.mark(f"{fields['reason']}: {fields['what']}")
        elif kind == "skipped-measurement":
            self.record.mark(f"not measured: {fields['method']} ({fields['reason']})")
        elif kind == "scenario-ended":
            self._scenario_ended(fields["failures"], fields["violations"])
        elif kind == CLAIMS_ENDED:
            self._claims_ended(fields["failures"])
        elif kind == "phase-started":
            self._load_began()
        elif kind == "step-started":
            self._faults.step_began(str(fields["name"]))

    def take(self, report: dict[str, Any], worker: int = 0) -> None:
        """What a worker counted since its last report (`WorkerContext.report`)."""
        if self._finished or not self._oversight.take(report, worker):
            return
        self._tally.take(report)
        self.view.counted(report)

    def interrupt(self, by: str) -> bool:
        """A signal came (called by its handler, so nothing is written here); False for one that is not the first."""
        first = not self._interrupted_by
        self._interrupted_by = self._interrupted_by or by
        return first

    def look(self) -> None:
        """Called twice a second while the run goes on: signals, workers, the cap, what is due to be written."""
        now = self._now()
        if self.work.informers is not None:
            self._look_at(self.work.informers, now)
        if self._interrupted_by and not self.over and self._ending_as is None:
            self._interrupted()
        self._look_at_workers()
        if self._capped(now) and not self.over and self._ending_as is None:
            self._end(Status.CAPPED if self.work.ends_by_itself else Status.COMPLETED)
            if self.work.ends_by_itself:
                cap = self.options.run_time_s
                self.record.mark(f"ended by -t after {cap:g} s, before its scenario was complete")
        if time.monotonic() - self._flushed >= FLUSH_EVERY_S:
            self._flushed = time.monotonic()
            self._take_own()
            self._tally.flush()

    def _capped(self, now: float) -> bool:
        cap = self.options.run_time_s
        return cap is not None and now - self._began >= cap

    def _follow(self) -> None:
        """Look until the run is over, and end it where the shape does not: Locust's master holds it up until all users
        are spawned (locust/runners.py, MasterRunner.start), or all workers have come."""
        while not self.over:
            gevent.sleep(LOOK_EVERY_S)
            try:
                self.look()
            except OSError as error:
                self._outcome.fail_unmarked([str(error)], "the record cannot be written")
                self._end(Status.FAILED)
        if not self.started:
            raise SystemExit(self.exit_code)  # gevent raises it where Locust waits
        gevent.sleep(SHAPE_ENDS_WITHIN_S)
        if not self.ending:
            self._environment.runner.quit()

    def _take_own(self) -> None:
        """Without workers, the one process's own counts."""
        context = self._environment.swarmlet_context
        if context is not None:
            self.take(context.report())

    def _look_at_workers(self) -> None:
        if not self.over:
            self._oversight.look()

    def _process_exited(self, name: str, code: int, *, restarts: bool = False) -> None:
        """`restarts`: the pool starts it again."""
        if self._finished or self.over:
            return
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        self.record.event("process-exited", {"process": name, "code": code})
        self.desk.away.add(name)
        text = f"{name} ended unasked ({how})"
        without = ""
        if restarts:
            without = "until it is started again"
        elif name.startswith("member-") and self.options.pool.members > 1:
            without = "with the other members"
        elif name == "scraper":
            without = "without its series"
        elif name == "prometheus":
            without = "without its answers"
        if not without:
            self._fail(text)
            return
        logger.error("%s; the run goes on %s", text, without)
        self._outcome.fail(text, invalid=name != "prometheus")  # no figure of others is worse for it

    def _pool_says(self, message: dict[str, Any]) -> None:
        kind = str(message.pop("kind", ""))
        if kind == "process-exited":
            restarts = bool(message.get("restarts"))
            self._process_exited(str(message["process"]), int(message["code"]), restarts=restarts)
        elif kind in REPLACED_EVENTS:
            self.tell(kind, message)
            if "pid" in message:
                self._scraping.watch(str(message["process"]), int(message["pid"]))
        elif kind == "process-failed":
            self.tell(kind, message)
            self._fail(f"{message['process']} could not be started again: {message['message']}")
        elif kind in RESTART_EVENTS:
            self.tell(kind, message)
            self.desk.restarted(kind, message)
            if "pid" in message:
                self._scraping.watch(str(message["member"]), int(message["pid"]))
        elif kind == BALANCED:
            self.tell(kind, message)
        elif kind in FAULT_EVENTS:
            self._fault_told({"kind": kind, **message})

    def _fault_told(self, event: dict[str, Any], age_s: float = 0.0) -> None:
        """By the pool, or by a member that somebody else started."""
        kind = str(event["kind"])
        about = {key: value for key, value in event.items() if key != "kind"}
        self.tell(kind, about, self.record.wall() - age_s)
        self.desk.disturbed(kind, event)
        if kind == "fault-failed":
            self._fault_failed(str(event["fault"]), str(event["member"]), str(event["error"]))

    def _inject(self, spec: FaultSpec) -> None:
        if spec.of_pool:
            assert self._pool is not None, "another target has no faults"
            self._pool.send(BeginFault(spec.text))
            return
        for member, why_not in inject(self._target, spec).items():
            self.tell("fault-failed", {"fault": spec.text, "member": member, "error": why_not})
            self._fault_failed(spec.text, member, why_not)

    def _fault_failed(self, fault: str, member: str, why: str) -> None:
        self.record.mark(f"fault {fault} on {member} failed: {why}", invalid=True)

    # ---- end -------------------------------------------------------------------------------------------------------
    def _end(self, status: Status, *, patient: bool = False) -> None:
        """Now; where informers are to be compared a last time, when that is done. `patient`: they sync before that."""
        informers = self.work.informers
        if informers is not None and status in (Status.COMPLETED, Status.CAPPED) and not informers.ended:
            self._ending_as = status
            informers.close(self._now(), patient=patient)
            return
        self._outcome.status = status
        self.over = True

    def _look_at(self, informers: InformerRun, now: float) -> None:
        if self._ending_as is not None and (self._interrupted_by or self._capped(now)):
            informers.close(now)
        informers.look(now)
        if self._ending_as is not None and informers.ended and not self.over:
            self._end(self._ending_as)

    def _fail(self, text: str) -> None:
        logger.error("%s; ending the run", text)
        self._outcome.fail(text)
        self._end(Status.FAILED)

    def _interrupted(self) -> None:
        """Ended from outside, by a signal or by Locust. A fleet at rest without -t has no other end than that."""
        by = self._interrupted_by or "Locust"
        if self.started and not self.work.ends_by_itself and self.options.run_time_s is None:
            logger.info("ended by %s", by)
            self._end(Status.COMPLETED)
            return
        text = f"interrupted by {by}{'' if self.started else ' before it began'}"
        logger.warning("%s; closing the record %s", text, self.options.record)
        self._outcome.fail(text)
        self._end(Status.INTERRUPTED)

    def _scenario_ended(self, failures: list[str], violations: list[str]) -> None:
        self._outcome.fail_unmarked(failures, "scenario")
        self._outcome.miss(violations)
        results = self.record.manifest.results
        results["scenario"] = "Failure" if failures else "Success"
        results["failures"], results["violations"] = failures, violations
        self._part_ended(SCENARIO, failed=bool(failures))

    def _claims_ended(self, failures: list[str]) -> None:
        self._outcome.fail_unmarked(failures, "claims")
        self._part_ended(CLAIMS, failed=bool(failures))

    def _part_ended(self, part: str, *, failed: bool) -> None:
        """One of what the run does until it is over: the last one ends the run, or the first one that fails."""
        last = self.work.all_ended_with(part)
        if failed:
            self._end(Status.FAILED)
        elif last:
            self._end(Status.COMPLETED, patient=True)

    @property
    def exit_code(self) -> int:
        return self._outcome.exit_code

    def finish(self) -> int:
        """Close everything, in order: faults, requests, the last scrape, the pool, the record. The exit code."""
        if self._finished:
            return self.exit_code
        if not self.over:
            self._look_at_workers()  # when the last one is lost, Locust ends by itself
        if not self.over:
            self._interrupted()
        if not self.over and self._ending_as is not None:  # nobody is left who could compare informers
            self._outcome.status, self.over = self._ending_as, True
        greenlets = (self._follower, self._refreshing)
        gevent.killall([greenlet for greenlet in greenlets if greenlet])
        if self._foreign_faults is not None:
            self._foreign_faults.stop()
        waiting = self._faults.stop()
        for spec in waiting if self.started else ():
            self.record.mark(f"fault {spec.text} was not begun: the run ended before", invalid=True)
        self._take_own()
        self._tally.flush(last=True)
        in_order = self._outcome.status in (Status.COMPLETED, Status.CAPPED)
        self._oversight.close(in_order=in_order)
        self._failed_nodes.keep(self.record)
        self._prometheus.end()
        self._scraping.end()
        if self._scraping.running:
            late = host_kept_up(self.options.record, self.record.manifest.results.pop("loop", {}))
            self.record.manifest.results["host"] = dataclasses.asdict(late)
            for excuse in late.excuses:
                self.record.mark(f"invalid: host could not keep up ({excuse})", invalid=True)
        if self.started:
            self.work.keep(self.record, self._outcome)
        self._finished = True
        self.desk.stop()
        if self._pool is not None:
            self._pool.stop()
        elif self.started:
            logger.info(
                "what it made stays; to remove it: swarmlet cleanup --run %s, with the same --kubeconfig",
                self.options.run,
            )
        if self._show is not None:
            self._show.end()
        self.record.finish(self._outcome.status)
        return self.exit_code

    def fail_to_start(self, error: Exception) -> None:
        """Close the record of a run that could not begin."""
        self._outcome.fail(str(error))
        self._end(Status.FAILED)
        self.finish()
