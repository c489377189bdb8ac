"""An experiment's file: what becomes of it, and what is said of each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.experiment.document import find_experiment, read_experiment
from harness.experiment.plan import sample_arguments
from harness.load.commandline import check
from harness.observe.environment import share
from harness.wire.errors import ConfigError
from tests.pool.binaries.standin import install

GOOD = """\
title: One or three
kubelets: 7
scenario: none
samples: 2
target: {cores: 0.5, feature_gates: {DetectCacheInconsistency: true}}
fleet: {qps: 10, kube_proxy: true}
faults: [stall-informer at=0s for=5s]
options:
  http: h2
  endpoint-policy: pinned
variables: {CL2_A: true, CL2_B: 2}
arms:
- name: one
- name: three
  target: {members: 3, feature_gates: {ListFromCacheSnapshot: false}}
  fleet: {qps: 20}
  faults: [slow median=50ms at=1s]
  options: {http: http/1.1, allow-exec: true}
  variables: {CL2_B: 3}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_arm_has_what_all_share_and_its_own_goes_first(tmp_path: Path) -> None:
    plan = read_experiment(write(tmp_path, GOOD))
    one, three = plan.arms
    assert one.arguments == (
        "--users=7",
        "--spawn-rate=50",
        "--run-time=900s",
        "--scenario=none",
        "--fleet=qps=10,kube_proxy=true",
        "--fault=stall-informer at=0s for=5s",
        "--cores=0.5",
        "--feature-gates=DetectCacheInconsistency=true",
        "--http=h2",
        "--endpoint-policy=pinned",
    )
    assert set(three.arguments) - set(one.arguments) == {
        "--members=3",
        "--feature-gates=DetectCacheInconsistency=true,ListFromCacheSnapshot=false",
        "--fleet=qps=20,kube_proxy=true",
        "--fault=slow median=50ms at=1s",
        "--http=http/1.1",
        "--allow-exec",
    }
    assert three.arguments.count("--fault=stall-informer at=0s for=5s") == 1
    assert (plan.environ, three.environ) == ({"CL2_A": "true", "CL2_B": "2"}, {"CL2_B": "3"})
    assert (plan.name, plan.title, plan.samples, plan.order) == ("x", "One or three", 2, "in-turn")
    assert (plan.cool_down_s, plan.retries) == (60.0, 1)


def test_a_run_understands_what_the_file_says(tmp_path: Path) -> None:
    plan = read_experiment(write(tmp_path, GOOD))
    options = check(sample_arguments(plan, plan.arms[1], 2, tmp_path / "r"))
    assert (options.pool.members, options.pool.cores, options.http) == (3, "0.5", "http/1.1")
    assert options.pool.feature_gates == {"DetectCacheInconsistency": True, "ListFromCacheSnapshot": False}
    assert (options.fleet["qps"], options.fleet["kube_proxy"]) == (20, True)
    assert (options.seed, options.arm, options.sample, options.allow_exec) == (3, "three", 2, True)
    assert len(options.faults) == 2


def test_what_arms_differ_in_is_declared_under_the_records_names(tmp_path: Path) -> None:
    plan = read_experiment(write(tmp_path, GOOD))
    assert set(plan.declared()) == {
        "allow_exec",
        "faults",
        "fleet.qps",
        "http",
        "pool.feature_gates.ListFromCacheSnapshot",
        "pool.members",
        "scenario.resolved",
    }


ARM = "arms:\n- name: one\n"
TOP = f"title: t\n{ARM}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an experiment has keys; title and arms are needed"),
        ("- a\n", "an experiment has keys; title and arms are needed"),
        ("title: [\n", r"x.yaml:\d+: is not YAML"),
        ("title: t\n", "the document: object missing required field `arms`"),
        (ARM, "the document: object missing required field `title`"),
        ("title: ' '\n" + ARM, "x.yaml:1: title: ' ': a report needs one"),
        ("title: t\narms: []\n", "x.yaml:2: arms: '\\[\\]': at least one is needed"),
        (TOP + "- name: '-'\n", "x.yaml:2: arms: an arm's name needs a letter or a digit: '-'"),
        (TOP + "- name: One\n", "x.yaml:2: arms: two arms have the same name once it names a folder"),
        (TOP + "sample: 3\n", "x.yaml:4: sample: no such key; did you mean samples?"),
        (TOP + "colour: red\n", "x.yaml:4: colour: no such key"),
        (TOP + "samples: 0\n", "x.yaml:4: samples: 0: 1 or more are needed"),
        (TOP + "samples: many\n", "x.yaml:4: samples: expected `int`, got `str` \\('many'\\)"),
        (TOP + "retries: -1\n", "x.yaml:4: retries: -1: 0 or more are needed"),
        (TOP + "cool_down: -2\n", "x.yaml:4: cool_down: -2: 0 or more seconds are needed"),
        (TOP + "order: random\n", "x.yaml:4: order: invalid enum value 'random'"),
        (TOP + "locustfile: nosuch\n", "x.yaml:4: locustfile: 'nosuch': no such file, nor one of ours"),
        (TOP + "locustfile: []\n", "x.yaml:4: locustfile: \\[\\]: at least one is needed"),
        (TOP + "scenario: nosuch\n", "x.yaml:4: scenario: arm one: scenario 'nosuch': no such file"),
        (TOP + "kubelets: 0\n", "x.yaml:4: kubelets: arm one: -u 0: a fleet has at least 1 kubelet"),
        (TOP + "spawn_rate: 0\n", "x.yaml:4: spawn_rate: arm one: argument -r/--spawn-rate: must be > 0"),
        (TOP + "run_time: soon\n", "x.yaml:4: run_time: arm one: .*"),
        (TOP + "variables: {PODS: 3}\n", "x.yaml:4: variables.PODS: a scenario's variables begin with CL2_"),
        (TOP + "faults: [nosuch at=1s]\n", "x.yaml:\\d: .*nosuch"),
        (TOP + "fleet: {qsp: 10}\n", "x.yaml:4: fleet: arm one: --fleet .*qsp"),
        (TOP + "target: {member: 3}\n", "x.yaml:4: target.member: no such key; did you mean members?"),
        (
            TOP + "  target: {members: 0}\n",
            "x.yaml:4: arms\\[0\\].target.members: arm one: members: 0 is not within",
        ),
        (TOP + "  target: {cores: x}\n", "x.yaml:4: arms\\[0\\].target.cores: arm one: cores: 'x'"),
        (
            TOP + "  target: {feature_gates: {Nosuch: true}}\n",
            "x.yaml:4: arms\\[0\\].target.feature_gates: arm one: .*Nosuch",
        ),
        (
            TOP + "options: {nosuch: 1}\n",
            "x.yaml:4: options.nosuch: there is no such option; see swarmlet options",
        ),
        (
            TOP + "options: {event_ttl: 1}\n",
            "x.yaml:4: options.event_ttl: there is no such option; did you mean event-ttl?",
        ),
        (TOP + "options: {members: 1}\n", "x.yaml:4: options.members: is said as target.members"),
        (
            TOP + "  options: {users: 1}\n",
            "x.yaml:4: arms\\[0\\].options.users: is said as arms\\[0\\].kubelets",
        ),
        (
            TOP + "options: {seed: 1}\n",
            "x.yaml:4: options.seed: not in an experiment: the experiment's own seed",
        ),
        (
            TOP + "options: {record: r}\n",
            "x.yaml:4: options.record: not in an experiment: the experiment gives it",
        ),
        (
            TOP + "options: {headless: true}\n",
            "x.yaml:4: options.headless: not in an experiment: run sees to it",
        ),
        (TOP + "options: {allow-exec: 1}\n", "x.yaml:4: options.allow-exec: 1: true or false is needed"),
        (TOP + "options: {http: }\n", "x.yaml:4: options.http: has no value"),
        (TOP + "options: {http: [h2]}\n", "x.yaml:4: options.http: one value is needed, not a list"),
        (TOP + "options: {http: {a: 1}}\n", "x.yaml:4: options.http: one value is needed, not keys"),
        (
            TOP + "options: {cost: {a: [1]}}\n",
            "x.yaml:4: options.cost.a: \\[1\\]: a text or a number is needed",
        ),
        (
            TOP + "options: {http: h3}\n",
            "x.yaml:4: options.http: arm one: argument --http: invalid choice: 'h3'",
        ),
        (
            TOP + "options: {scrape-interval: 0.1}\n",
            "x.yaml:4: options.scrape-interval: arm one: --scrape-interval 0.1: at least 0.5 s",
        ),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=said) as caught:
        read_experiment(path)
    assert str(caught.value).startswith(f"{path}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "said"), [(b"title: \xff\n", "is not UTF-8 text"), (None, "cannot be read: No such file")]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, data: bytes | None, said: str) -> None:
    path = tmp_path / "x.yaml"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ConfigError, match=said):
        read_experiment(path)


def test_files_that_an_option_names_count_from_where_the_experiment_is(tmp_path: Path) -> None:
    (tmp_path / "mix.yaml").write_bytes((share("locustfiles") / "lists.yaml").read_bytes())
    text = (
        TOP
        + "locustfile: informers\nscenario: none\noptions: {lists: mix.yaml, informers: [{count: 2}, count=3]}\n"
    )
    (arm,) = read_experiment(write(tmp_path, text)).arms
    assert arm.arguments[-3:] == (
        f"--lists={tmp_path / 'mix.yaml'}",
        "--informers=count=2",
        "--informers=count=3",
    )
    assert not any(word.startswith("--users") for word in arm.arguments)


def test_a_list_is_joined_where_an_option_takes_commas_and_false_leaves_a_switch_out(tmp_path: Path) -> None:
    text = TOP + "target: {endpoints: ['a:1', 'b:2'], host: 'https://a'}\noptions: {claims-delete: false}\n"
    (arm,) = read_experiment(write(tmp_path, text + "scenario: none\n")).arms
    assert "--endpoints=a:1,b:2" in arm.arguments
    assert not any("claims-delete" in word for word in arm.arguments)


def test_a_pace_is_for_all_arms_or_one_and_what_cannot_be_slowed_down_is_told_where_it_stands(
    tmp_path: Path,
) -> None:
    plan = read_experiment(
        write(tmp_path, "title: t\nscenario: none\npace: 4\narms: [{name: a}, {name: b, pace: 2.5}]\n")
    )
    paces = [check(sample_arguments(plan, arm, 1, tmp_path)).pace.factor for arm in plan.arms]
    assert paces == [4.0, 2.5]
    assert plan.declared() == ("pace.factor",)
    with pytest.raises(
        ConfigError, match=r"x.yaml:3: pace: arm a: --pace 4: the clock of a cluster that is there"
    ):
        read_experiment(tmp_path / "x.yaml", target={"backend": "existing"})


def test_a_locustfile_of_ones_own_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    plan = read_experiment(write(tmp_path, TOP + "locustfile: [kubelets, mine.py]\n"))
    assert plan.locustfiles == ("kubelets", str(tmp_path / "mine.py"))


@pytest.mark.parametrize(
    ("name", "arms", "declared"),
    [
        ("ha", 2, {"pool.members"}),
        (
            "snapshots",
            4,
            {"informers.crowds", "pool.feature_gates", "pool.feature_gates.ListFromCacheSnapshot"},
        ),
        ("provisioners", 2, {"provisioners.preset", "provisioners.options.election"}),
        ("late-storage", 2, {"provisioners.preset", "provisioners.options.election"}),
        ("balancing", 5, {"cluster.policy", "pool.goaway_chance"}),
    ],
)
def test_our_own_experiments_can_be_run(name: str, arms: int, declared: set[str]) -> None:
    plan = read_experiment(find_experiment(name))
    assert len(plan.arms) == arms
    assert plan.samples == 5
    assert declared <= set(plan.declared())


@pytest.mark.parametrize(("name", "nodes", "minutes"), [("ha-500", 500, 15), ("ha-5k", 5000, 90)])
def test_ours_of_many_nodes_differ_in_their_masters_alone_and_have_an_end(
    name: str, nodes: int, minutes: int
) -> None:
    plan = read_experiment(find_experiment(name))
    runs = [check(sample_arguments(plan, arm, 1, Path("record"))) for arm in plan.arms]
    assert [run.pool.members for run in runs] == [1, 3]
    assert {run.kubelets for run in runs} == {nodes}
    assert plan.declared() == ("pool.members",)
    for run in runs:
        assert run.run_time_s is not None
        assert run.pace.real_s(run.run_time_s) < minutes * 60


def test_what_403s_come_from_is_asked_with_the_same_members_and_other_faults() -> None:
    plan = read_experiment(find_experiment("why-403s"))
    runs = [check(sample_arguments(plan, arm, 1, Path("record"))) for arm in plan.arms]
    assert [[spec.fault.kind for spec in run.faults] for run in runs] == [
        [],
        ["restart"],
        ["stall-informer"],
        ["restart", "stall-informer"],
    ]
    assert plan.declared() == ("faults",)
    assert {run.pool.members for run in runs} == {3}


def test_an_experiment_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(
        ConfigError,
        match=r"'nosuch': no such file, nor one of ours \(balancing, ha, .*provisioners, snapshots, why-403s\)",
    ):
        find_experiment("nosuch")


# ---- backends --------------------------------------------------------------------------------------------------------
@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = install(tmp_path / "assets", "kube-apiserver", "etcd")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    return folder


@pytest.mark.usefixtures("assets")
def test_a_backend_is_said_in_the_file_or_for_all_of_it_by_command(tmp_path: Path) -> None:
    arms = "- name: a\n  target: {backend: emulated}\n- name: b\n  target: {members: 3}\n"
    text = f"title: t\nscenario: none\narms:\n{arms}"
    plan = read_experiment(write(tmp_path, text), target={"backend": "binaries"})
    backends = [check(sample_arguments(plan, arm, 1, tmp_path)).pool.backend for arm in plan.arms]
    assert backends == ["binaries", "binaries"]
    assert set(plan.declared()) == {"pool.members"}
    asked = read_experiment(write(tmp_path, text.replace("emulated", "binaries")))
    assert "pool.backend" in asked.declared()


@pytest.mark.usefixtures("assets")
@pytest.mark.parametrize("name", ["ha", "snapshots", "provisioners", "balancing"])
def test_our_own_experiments_run_on_real_apiservers_too(name: str) -> None:
    plan = read_experiment(find_experiment(name), target={"backend": "binaries"})
    assert all("--backend=binaries" in arm.arguments for arm in plan.arms)


def test_what_an_arm_says_that_the_backend_has_not_is_told_where_it_stands(tmp_path: Path) -> None:
    text = "title: t\nscenario: none\narms:\n- name: a\n  target:\n    members: 3\n"
    with pytest.raises(ConfigError) as refused:
        read_experiment(write(tmp_path, text), target={"backend": "existing"})
    assert str(refused.value).startswith(
        f"{tmp_path}/x.yaml:6: arms[0].target.members: arm a: --members: no pool is started for a cluster that is there"
    )


@pytest.mark.usefixtures("assets")
def test_cores_of_real_apiservers_are_refused_where_they_stand(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"x.yaml:5: target.cores: arm one: --cores: only an emulated member"
    ):
        read_experiment(write(tmp_path, GOOD), target={"backend": "binaries"})
