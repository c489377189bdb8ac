"""Before load is put on a cluster that others may use: is it meant, and may we."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import yaml

from harness.client.requests import NODES, ResourceRef, create_, list_
from harness.load.cluster.errands import Errands, problem_of
from harness.load.cluster.permissions import Question, Rule, policy_rules, questions
from harness.load.labels import RUN_LABEL
from harness.wire.errors import ConfigError
from harness.wire.request import Response

REVIEWS = ResourceRef("authorization.k8s.io", "v1", "selfsubjectaccessreviews")
COUNTED = 500  # nodes of others; more are "500 or more"


class _Metadata(msgspec.Struct):
    name: str
    labels: dict[str, str] = {}


class _Item(msgspec.Struct):
    metadata: _Metadata


class _List(msgspec.Struct):
    items: list[_Item] | None = None


class _Verdict(msgspec.Struct, frozen=True):
    allowed: bool = False
    reason: str = ""


class _Review(msgspec.Struct):
    status: _Verdict = _Verdict()


def context_of(errands: Errands) -> str:
    """What --i-know must name: the kubeconfig's context, or the server where there is none."""
    member = errands.target.members[0]
    return errands.target.context or f"{member.host}:{member.port}"


def check_nodes(errands: Errands, i_know: str) -> None:
    """Raises ConfigError where the cluster has nodes of others, unless `i_know` names its context, and where nodes of
    an earlier run are left: new ones would have their names."""
    context = context_of(errands)
    if i_know and i_know != context:
        raise ConfigError(f"--i-know {i_know}: the target's context is {context}")
    left = _nodes(errands, RUN_LABEL)
    if left:
        runs = sorted({item.metadata.labels.get(RUN_LABEL, "") for item in left})
        raise ConfigError(
            f"{context}: nodes of an earlier run are left ({_some(len(left))}); remove them first: "
            f"swarmlet cleanup --run {runs[0]}"
        )
    others = _nodes(errands, f"!{RUN_LABEL}")
    if others and not i_know:
        first = others[0].metadata.name
        raise ConfigError(
            f"{context}: has nodes that are no run's ({_some(len(others))}, {first!r} is one); "
            f"if it may be put under load: --i-know {context}"
        )


def _nodes(errands: Errands, selector: str) -> list[_Item]:
    answer = errands.ask(list_(NODES, label_selector=selector, limit=COUNTED))
    problem = problem_of(answer)
    if problem:
        raise ConfigError(f"{context_of(errands)}: its nodes cannot be listed: {problem}")
    assert isinstance(answer, Response)
    return msgspec.json.decode(answer.body, type=_List).items or []


def _some(count: int) -> str:
    return f"{count} or more" if count >= COUNTED else str(count)


def check_rights(errands: Errands, rules: Sequence[Rule]) -> None:
    """Ask for every right at once. Raises ConfigError, one line that names the first right that is missing, with the
    rule to add."""
    refused = _refused(errands, rules)
    kept = [rule for rule in refused if rule.instead and not _refused(errands, rule.instead)]
    missing = {rule: lacking for rule, lacking in refused.items() if rule not in kept}
    if not missing:
        return
    rule, question = next(iter(missing.items()))
    more = f" ({len(missing) - 1} more are missing)" if len(missing) > 1 else ""
    addition = yaml.safe_dump(policy_rules(missing), default_flow_style=True, width=10_000, sort_keys=False)
    raise ConfigError(
        f"{context_of(errands)}: our credentials may not {question.text}, needed for {rule.purpose}{more}; "
        f"add to a ClusterRole of theirs: rules: {addition.strip()} (or all of `swarmlet rbac`)"
    )


def _refused(errands: Errands, rules: Sequence[Rule]) -> dict[Rule, Question]:
    """Each rule that is not granted, with the first of its questions that was denied."""
    asked = questions(rules)
    answers = errands.ask_all([create_(REVIEWS, None, _review(question)) for question in asked])
    refused: dict[Rule, Question] = {}
    for question, answer in zip(asked, answers, strict=True):
        problem = problem_of(answer)
        if problem:
            raise ConfigError(f"{context_of(errands)}: our rights cannot be asked for: {problem}")
        assert isinstance(answer, Response)
        if not msgspec.json.decode(answer.body, type=_Review).status.allowed:
            refused.setdefault(question.rule, question)
    return refused


def _review(question: Question) -> bytes:
    rule = question.rule
    if rule.paths:
        spec: dict[str, object] = {
            "nonResourceAttributes": {"path": question.name, "verb": question.verb},
        }
    else:
        resource, _, subresource = rule.resource.partition("/")
        attributes = {
            "verb": question.verb,
            "group": rule.group,
            "resource": resource,
            "subresource": subresource,
            "name": question.name,
            "namespace": rule.namespace,
        }
        spec = {"resourceAttributes": {key: value for key, value in attributes.items() if value}}
    return msgspec.json.encode(
        {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    )
