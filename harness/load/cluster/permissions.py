"""What a run needs to be allowed: the tables, from which the YAML is printed and the questions are asked.

The rights are those of the run's own credentials. Nodes that are impersonated act with a node's rights, so what a
kubelet does is not in here. A row is: verbs | API group ("" for core) | resources [| names [| namespace]], or verbs and
paths; its group of rows says what it is for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby

import msgspec
import yaml

from harness.clusterloader import Config
from harness.clusterloader.kinds import kind_of_object
from harness.clusterloader.measurements import METHODS
from harness.clusterloader.measurements.base import Params
from harness.fleet.controllers.registry import CONTROLLERS
from harness.fleet.informers.options import NAMESPACE
from harness.fleet.informers.writer import READERS
from harness.fleet.kubeproxy import USER as KUBE_PROXY
from harness.fleet.provisioners.scenario import ACCOUNT as PROVISIONER
from harness.fleet.provisioners.scenario import RIGHTS as PROVISIONER_RIGHTS
from harness.load.identity.signing import SIGNER
from harness.load.informerplan import InformerPlan

ROLE = "swarmlet-run"
PROVISIONERS, INFORMERS = "provisioners and their claims", "informers"

_ALWAYS = """
  get | /metrics /readyz /version
  list delete | | nodes
  get | coordination.k8s.io | leases | kube-scheduler kube-controller-manager | kube-system
  list | discovery.k8s.io | endpointslices | | default
"""
_IMPERSONATE = """
  impersonate | | users
  impersonate | | groups | system:nodes
"""
_REQUEST_CERTIFICATES = """
  create get delete | certificates.k8s.io | certificatesigningrequests
"""
_AUTO_APPROVED = """
  create | certificates.k8s.io | certificatesigningrequests/nodeclient
"""
_APPROVE = f"""
  update | certificates.k8s.io | certificatesigningrequests/approval
  approve | certificates.k8s.io | signers | {SIGNER}
"""
_ACCOUNT = """
  impersonate | | groups | system:serviceaccounts system:serviceaccounts:kube-system
  impersonate | | serviceaccounts | {} | kube-system
"""
_MAKING_ROOM = """
  create | | namespaces
  create | rbac.authorization.k8s.io | clusterroles clusterrolebindings
"""
_INFORMER_ACCOUNTS = f"""
  impersonate | | groups | system:serviceaccounts {READERS}
  impersonate | | serviceaccounts | | {NAMESPACE}
"""
_SCENARIO = """
  create get list delete | | namespaces
  get | | serviceaccounts
  list watch | | nodes
  list watch | | pods
"""
_READ = ("get", "list", "watch")
_SCENARIO_OBJECTS = ("create", "get", "list", "watch", "patch", "delete")
"""Of each kind that a scenario makes: phases create, patch (after a GET), and delete; measurements list and watch."""
_MEASURED = ("list", "watch")


class Rule(msgspec.Struct, frozen=True):
    """One right. `names` and `namespace` narrow it; `paths` are those of no resource, and then there is no resource.
    `instead`: other rights that serve as well."""

    purpose: str
    verbs: tuple[str, ...]
    group: str = ""
    resource: str = ""
    names: tuple[str, ...] = ()
    namespace: str = ""
    paths: tuple[str, ...] = ()
    instead: tuple[Rule, ...] = ()


class Question(msgspec.Struct, frozen=True):
    """May I `verb` it? The smallest thing that a SelfSubjectAccessReview answers."""

    rule: Rule
    verb: str
    name: str = ""

    @property
    def text(self) -> str:
        """``create pods``, ``impersonate groups "system:nodes"``, ``get /metrics``."""
        rule = self.rule
        if rule.paths:
            return f"{self.verb} {self.name}"
        resource = f"{rule.resource}.{rule.group}" if rule.group else rule.resource
        name = f" {self.name!r}" if self.name else ""
        return f"{self.verb} {resource}{name}" + (f" in namespace {rule.namespace}" if rule.namespace else "")


def needed(
    identity: str,
    *,
    own_authority: bool = False,
    tokens: Collection[str] = (),
    kube_proxy: bool = False,
    scheduler: bool = False,
    controllers: Collection[str] = (),
    provisioners: bool = False,
    informers: InformerPlan | None = None,
    config: Config | None = None,
) -> list[Rule]:
    """The rights of a run. `identity` is that of its nodes; `own_authority`: certificates are signed by a key of ours,
    not by the API; `tokens` are the users that have one of their own; `scheduler` and `controllers`, by name, are ours,
    as the cluster has none; `config` is the scenario's."""
    rules = list(_rows("any run", _ALWAYS))
    if identity == "impersonate":
        rules += _rows("--identity impersonate", _IMPERSONATE)
    elif identity == "certificate" and not own_authority:
        rules += _rows("--identity certificate", _REQUEST_CERTIFICATES)
        approve = tuple(_rows("--identity certificate", _APPROVE))
        rules += [
            msgspec.structs.replace(rule, instead=approve)
            for rule in _rows("--identity certificate", _AUTO_APPROVED)
        ]
    if not own_authority:  # else everybody has a certificate
        impersonated = _impersonated(
            kube_proxy=kube_proxy,
            scheduler=scheduler,
            controllers=controllers,
            provisioners=provisioners,
            informers=informers is not None,
        )
        for purpose, user, table in impersonated:
            anybody = identity == "impersonate"  # may be impersonated already
            if user and not anybody and user not in tokens:
                rules += _rows(purpose, f"impersonate | | users | {user}")
            rules += _rows(purpose, table)
    if provisioners:
        rules += _of_provisioners()
    if informers is not None:
        rules += _of_informers(informers)
    if config is not None:
        rules += _rows("any scenario", _SCENARIO)
        rules += _of_objects(config)
        rules += _of_measurements(config)
    return rules


def _impersonated(
    *, kube_proxy: bool, scheduler: bool, controllers: Collection[str], provisioners: bool, informers: bool
) -> Iterator[tuple[str, str, str]]:
    """Who else is impersonated where nothing else was given to show: what for, a user by name or "", and rows."""
    lacking = "a cluster without scheduler or controllers"
    if kube_proxy:
        yield "--fleet kube_proxy=true", KUBE_PROXY, ""
    if scheduler:
        yield lacking, "system:kube-scheduler", ""
    if any(name in CONTROLLERS for name in controllers):
        yield lacking, "system:kube-controller-manager", ""
    if controllers:
        yield lacking, "", _ACCOUNT.format(" ".join(controllers))
    if provisioners:
        yield PROVISIONERS, "", _ACCOUNT.format(PROVISIONER.rpartition(":")[2])
    if informers:
        yield INFORMERS, "", _INFORMER_ACCOUNTS


def _of_provisioners() -> Iterator[Rule]:
    """Of whoever makes the claims. Rights can be given to provisioners only by those who have them."""
    yield from _rows(PROVISIONERS, _MAKING_ROOM)
    for group, resources in PROVISIONER_RIGHTS:
        yield from _rows(PROVISIONERS, f"* | {group} | {' '.join(resources)}")


def _of_informers(plan: InformerPlan) -> Iterator[Rule]:
    """Of the writer, which gives informers the right to read what it may read, and of the auditor."""
    yield from _rows(INFORMERS, _MAKING_ROOM)
    for ref in dict.fromkeys(plan.resources):
        yield Rule(INFORMERS, _READ, ref.group, ref.resource)
    ref = plan.writer.ref
    yield Rule(INFORMERS, ("create", "update", "delete"), ref.group, ref.resource)


def _of_measurements(config: Config) -> Iterator[Rule]:
    """A rule for each resource that a measurement looks at."""
    refs = {
        ref
        for step in config.steps
        for spec in step.measurements
        if spec.method in METHODS
        for call in spec.calls()
        for ref in METHODS[spec.method].reads(Params(call.params))
    }
    for group, resource in sorted({(ref.group, ref.resource) for ref in refs}):
        yield Rule(f"measurements of scenario {config.name}", _MEASURED, group, resource)


def _of_objects(config: Config) -> Iterator[Rule]:
    """A rule for each kind that the scenario's object templates have."""
    paths = {
        item.object_template_path
        for step in config.steps
        for phase in step.phases
        for item in phase.object_bundle
    }
    kinds = {
        kind_of_object(thing).ref for path in sorted(paths) for thing in config.templates.raw_objects(path)
    }
    for ref in sorted(kinds, key=str):
        yield Rule(f"scenario {config.name}", _SCENARIO_OBJECTS, ref.group, ref.resource)


def _rows(purpose: str, table: str) -> Iterator[Rule]:
    for line in table.strip().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        verbs = tuple(cells[0].split())
        if len(cells) == 2:
            yield Rule(purpose, verbs, paths=tuple(cells[1].split()))
            continue
        group, resources, names, namespace = (*cells[1:], "", "")[:4]
        for resource in resources.split():
            yield Rule(purpose, verbs, group, resource, tuple(names.split()), namespace)


def questions(rules: Iterable[Rule]) -> list[Question]:
    """Each verb of each rule, for each name; none twice."""
    found = {
        (question.text, rule.namespace): question
        for rule in rules
        for verb in rule.verbs
        for name in (rule.paths or rule.names or ("",))
        for question in (Question(rule, verb, name),)
    }
    return list(found.values())


# ---- as YAML ---------------------------------------------------------------------------------------------------------
def manifest(rules: Iterable[Rule], subject: str = "") -> str:
    """A ClusterRole and its ClusterRoleBinding. `subject` is a user's name, or NAMESPACE:NAME of a service account's;
    "" leaves a name to be filled in. Rights that serve instead of others are given too: which is used is the cluster's
    choice."""
    documents = [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": ROLE},
            "rules": policy_rules(rules),
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ROLE},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
            "subjects": [subject_of(subject or "USER")],
        },
    ]
    return yaml.safe_dump_all(documents, sort_keys=False)


def policy_rules(rules: Iterable[Rule]) -> list[dict[str, list[str]]]:
    """As a ClusterRole has them: one for all verbs of a resource, resources of one group with the same verbs together.
    The namespace that a right is needed in is left out: a ClusterRole has none."""
    flat = [rule for given in rules for rule in (given, *given.instead)]
    verbs: dict[tuple[tuple[str, ...], str, str, tuple[str, ...]], list[str]] = {}
    for rule in flat:
        known = verbs.setdefault((rule.paths, rule.group, rule.resource, rule.names), [])
        known += [verb for verb in rule.verbs if verb not in known]
    keyed = [
        ((paths, group, tuple(found), names), resource)
        for (paths, group, resource, names), found in verbs.items()
    ]
    keyed.sort()
    made: list[dict[str, list[str]]] = []
    for (paths, group, allowed, names), same in groupby(keyed, key=lambda pair: pair[0]):
        if paths:
            made.append({"nonResourceURLs": list(paths), "verbs": list(allowed)})
            continue
        rule_: dict[str, list[str]] = {"apiGroups": [group], "resources": [each[1] for each in same]}
        if names:
            rule_["resourceNames"] = list(names)
        made.append({**rule_, "verbs": list(allowed)})
    return made


def subject_of(name: str) -> dict[str, str]:
    """Of a binding: a user by name, or a service account as NAMESPACE:NAME."""
    namespace, colon, account = name.partition(":")
    if colon and account and ":" not in account:
        return {"kind": "ServiceAccount", "namespace": namespace, "name": account}
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}
