"""What is asked for and cannot be is one line."""

from __future__ import annotations

import msgspec
import pytest

from harness.manifests.options import Asked, Secret, secret_of, variables_of
from harness.wire.errors import ConfigError
from tests.manifests.filled import ASKED, ELSEWHERE

replace = msgspec.structs.replace


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (replace(ASKED, name="Lab"), "--name 'Lab': allowed is lower-case letters, digits and -"),
        (replace(ASKED, name="a" * 41), "longer than 40 characters"),
        (replace(ASKED, name="-a"), "--name '-a'"),
        (replace(ASKED, namespace="a.b"), "--namespace 'a.b'"),
        (replace(ASKED, namespace="a\nb"), "--namespace 'a\\nb'"),
        (replace(ASKED, image="a b"), "--image 'a b'"),
        (replace(ASKED, image=""), "--image ''"),
        (replace(ASKED, claim="a_b"), "--record-claim 'a_b'"),
        (
            replace(ELSEWHERE, secret=Secret("A", "config")),
            "--kubeconfig-secret 'A': allowed is NAME or NAME/KEY",
        ),
        (replace(ELSEWHERE, secret=Secret("a", "x/y")), "--kubeconfig-secret 'x/y'"),
        (replace(ASKED, i_know=""), "it has nodes of its own: if that is meant, --i-know in-cluster"),
        (replace(ASKED, i_know="prod"), "--i-know in-cluster"),
        (replace(ASKED, context="prod"), "--context prod: is of a kubeconfig"),
        (replace(ASKED, subject="jane"), "--subject jane: is for another cluster's manifests"),
        (replace(ELSEWHERE, operator=True), "--kubeconfig-secret with --operator"),
        (replace(ASKED, operator=True, claim="c"), "--record-claim with --operator"),
        (replace(ASKED, operator=True, web=True), "--web with --operator"),
    ],
)
def test_what_cannot_be_is_refused_by_its_option(asked: Asked, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        asked.validate()
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_longest_name_is_allowed() -> None:
    replace(ASKED, name="a" * 40, namespace="n" * 63).validate()
    replace(ELSEWHERE, i_know="").validate()  # a cluster without nodes of its own


def test_a_secret_is_a_name_and_a_key() -> None:
    assert secret_of("") is None
    assert secret_of("a") == secret_of("a/") == Secret("a", "config")
    assert secret_of("a/kube.conf") == Secret("a", "kube.conf")


def test_variables_are_a_scenarios() -> None:
    assert variables_of(["CL2_A=1", "CL2_B=", "CL2_C=a=b\nc"]) == (
        ("CL2_A", "1"),
        ("CL2_B", ""),
        ("CL2_C", "a=b\nc"),
    )
    for text in ("A=1", "CL2_A", "CL2_a=1", "=1"):
        with pytest.raises(ConfigError, match="not CL2_NAME=VALUE"):
            variables_of([text])
