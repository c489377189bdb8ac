"""``--virtual``: provisioners, claims, controllers and members in this process, over virtual time.

The machines are those of a run with sockets, over an emulated pool with the same options; but one process has them all,
and of the controllers only those that claims and volumes concern. The same seed gives the same record. Options that
mean nothing here have been refused before (`virtualarguments`).
"""

from __future__ import annotations

import sys
from random import Random

import msgspec

from harness.apiserver.auth.nodeauthorizer import NodeAuthorizerOptions
from harness.apiserver.featuregates import FeatureGates
from harness.apiserver.store.etcd import EtcdOptions
from harness.client.rest import Rest
from harness.fleet.controllers.informers import CLIENT as INFORMERS
from harness.fleet.controllers.manager import ControllerManager, ManagerOptions, manager_limiters
from harness.fleet.provisioners.options import ProvisionerOptions
from harness.fleet.provisioners.provisioner import Provisioner, provisioner_limiters
from harness.fleet.provisioners.scenario import ACCOUNT, ACCOUNT_GROUPS, ClaimsOptions, ClaimsScenario
from harness.load.arguments import RunOptions
from harness.load.labels import labels_of
from harness.load.provisionerplan import Provisioners
from harness.load.virtualrecord import VirtualRecord
from harness.observe.environment import host, versions
from harness.observe.record import Manifest, RunRecord, Status
from harness.virtual.pool import VirtualPool
from harness.virtual.world import Identity, World, account
from harness.wire.errors import ConfigError

CONTROLLERS = ("persistent-volume-binder", "pvc-protection-controller", "pv-protection-controller")
_MANAGER = Identity("system:kube-controller-manager")
_SLACK_S = 600.0  # the scenario gives up by itself before


def run_virtual(options: RunOptions) -> int:
    """Run, write the record, say how it went; the exit code. Raises ConfigError."""
    plan = options.provisioners
    assert plan is not None
    pool = _pool(options)
    try:
        record = RunRecord(options.record, _manifest(options, pool))
    except OSError as error:
        raise ConfigError(f"--record {options.record}: cannot be written: {error.strerror}") from error
    heard = VirtualRecord(record, options.scrape_interval_s)
    world = World(pool, seed=options.seed, observer=heard)
    heard.watch(world)
    heard.event("target-ready", {"members": [member.options.name for member in pool.members]})
    claims = _populate(world, options, plan)
    most_s = options.run_time_s or claims.most_s + _SLACK_S
    ended = world.run_until(lambda: "claims" in heard.ended, most_s)
    world.close()
    heard.close()
    failures = list(heard.ended["claims"].failures) if ended else [f"ended by -t after {most_s:g} s"]
    record.finish(Status.FAILED if failures else Status.COMPLETED, t=world.clock.wall())
    for text in failures:
        print(f"swarmlet: {text}", file=sys.stderr)
    print(f"swarmlet: {world.now:.1f} s of virtual time; the record is {options.record}")
    return 1 if failures else 0


def _populate(world: World, options: RunOptions, plan: Provisioners) -> ClaimsOptions:
    """Start all machines."""

    def rng(name: str) -> Random:
        return Random(f"{options.seed}/0/{name}")

    named = options.controllers.names
    names = tuple(name for name in CONTROLLERS if named is None or name in named)
    if names:
        limits = options.controllers
        chosen = ManagerOptions(names, limits.qps, limits.burst, (plan.driver,))
        manager = ControllerManager(chosen, rng("controller-manager"), world.epoch_s)
        world.add(Rest(manager, manager_limiters(chosen)), "controllers", _controller)
    settings = ProvisionerOptions(**plan.options)
    for index in range(plan.replicas):
        name = f"provisioner-{index}"
        provisioner = Provisioner(name, settings, rng(name), world.epoch_s)
        identity = Identity(ACCOUNT, ACCOUNT_GROUPS)
        world.add(Rest(provisioner, provisioner_limiters(settings)), "provisioner", identity)
    claims = ClaimsOptions(**plan.claims, labels=tuple(labels_of(options.run).items()))
    world.add(ClaimsScenario(claims, rng("claims")), "claims")
    return claims


def _controller(client: str) -> Identity:
    return _MANAGER if client == INFORMERS else account(client)


def _pool(options: RunOptions) -> VirtualPool:
    pool = options.pool
    return VirtualPool(
        pool.members,
        seed=options.seed,
        cores=pool.modelled_cores(),
        costs=pool.costs,
        server_concurrency=pool.seats(),
        priority_and_fairness=pool.priority_and_fairness,
        event_ttl_s=pool.event_ttl_s,
        feature_gates=FeatureGates.parse(pool.feature_gates),
        protobuf_answers=pool.protobuf_answers,
        etcd=EtcdOptions.parse(pool.etcd),
        of_member={
            name: {"node_authorizer": NodeAuthorizerOptions.parse(pool.node_authorizer, name)}
            for name in pool.names
        },
    )


def _manifest(options: RunOptions, pool: VirtualPool) -> Manifest:
    return Manifest(
        name=options.record.name,
        started=pool.clock.wall(),
        arm=options.arm,
        sample=options.sample,
        seed=options.seed,
        arguments={"argv": sys.argv[1:], "options": msgspec.to_builtins(options, enc_hook=str)},
        versions=versions(),
        host=host(),
        target={
            "backend": "virtual",
            "members": [{"name": member.options.name} for member in pool.members],
            "cores": options.pool.modelled_cores(),
        },
    )
