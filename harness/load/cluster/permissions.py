"""What a run needs to be allowed: the tables, from which the YAML is printed and the questions are asked.

The rights are those of the run's own credentials. Nodes that are impersonated act with a node's rights, so what a
kubelet does is not in here. A row is: verbs | API group ("" for core) | resources [| names [| namespace]], or verbs and
paths; its group of rows says what it is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec
import yaml

from harness.clusterloader import Config
from harness.clusterloader.kinds import kind_of_object
from harness.load.identity.signing import SIGNER

ROLE = "swarmlet-run"

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
_CONTROLLERS = """
  impersonate | | users
  impersonate | | groups | system:serviceaccounts system:serviceaccounts:kube-system
  impersonate | | serviceaccounts | service-account-controller root-ca-cert-publisher namespace-controller | kube-system
"""
_SCENARIO = """
  create get list delete | | namespaces
  get | | serviceaccounts
  list watch | | nodes
  list watch | | pods
"""
_SCENARIO_OBJECTS = ("create", "get", "list", "watch", "patch", "delete")
"""Of each kind that a scenario makes: phases create, patch (after a GET), and delete; measurements list and watch."""


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
    controllers: bool = False,
    config: Config | None = None,
) -> list[Rule]:
    """The rights of a run. `identity` is that of its nodes; `own_authority`: their certificates are signed by a key of
    ours, not by the API; `controllers`: scheduler and controllers are ours, as the cluster has none; `config` is the
    scenario's."""
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
    if controllers:
        rules += _rows("a cluster without scheduler or controllers", _CONTROLLERS)
    if config is not None:
        rules += _rows("any scenario", _SCENARIO)
        rules += _of_objects(config)
    return rules


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
