"""Who asks: tokens of all kinds, and nobody."""

from __future__ import annotations

from random import Random

import pytest

from harness.apiserver.auth.accounttokens import EXTENDED_S, ISSUER, AccountTokens, Ref
from harness.apiserver.auth.authentication import (
    ANONYMOUS_USER,
    Authenticator,
    UserInfo,
    account_user,
    admin_user,
)
from harness.apiserver.clock import VirtualClock
from harness.apiserver.exchange import ClientCertificate
from harness.apiserver.metrics.families import Metrics

KEY = b"a key that all members of a pool share"
ADMIN = admin_user()


class Setup:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.metrics = Metrics()
        self.accounts = AccountTokens(KEY, self.clock.wall, Random(1))
        self.authenticator = Authenticator(
            self.metrics, {"admin-token": ADMIN}, self.accounts, self.clock.wall
        )

    def user(self, authorization: str | None) -> UserInfo | None:
        headers = {} if authorization is None else {"authorization": authorization}
        return self.authenticator.authenticate(headers)

    def attempts(self, result: str) -> float:
        return self.metrics.authentication_attempts.labels(result).value


def test_the_admin_token_is_the_admin() -> None:
    assert Setup().user("Bearer admin-token") is ADMIN


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic dXNlcjpwYXNz", "admin-token"])
def test_without_a_bearer_token_a_request_is_anonymous(header: str | None) -> None:
    assert Setup().user(header) is ANONYMOUS_USER
    assert UserInfo("system:anonymous", ("system:unauthenticated",)) == ANONYMOUS_USER


def test_the_scheme_is_read_in_any_case() -> None:
    assert Setup().user("bearer  admin-token") is ADMIN


@pytest.mark.parametrize("token", ["nonsense", "a.b.c", "..", "ä.ö.ü"])
def test_an_unknown_token_is_refused(token: str) -> None:
    setup = Setup()
    assert setup.user(f"Bearer {token}") is None
    assert setup.attempts("error") == 1


def test_an_issued_token_is_its_service_account() -> None:
    setup = Setup()
    token = setup.accounts.issue(
        "ns", Ref("default", "sa-uid"), 600, pod=Ref("p", "pod-uid"), node=Ref("n1")
    ).token
    user = setup.user(f"Bearer {token}")
    assert user is not None
    assert user.name == "system:serviceaccount:ns:default"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert user.uid == "sa-uid"
    extra = dict(user.extra)
    assert extra["authentication.kubernetes.io/pod-name"] == ("p",)
    assert extra["authentication.kubernetes.io/pod-uid"] == ("pod-uid",)
    assert extra["authentication.kubernetes.io/node-name"] == ("n1",)
    assert extra["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")


def test_claims_are_those_of_a_real_token_request() -> None:
    setup = Setup()
    issued = setup.accounts.issue("ns", Ref("default", "u"), 600, pod=Ref("p", "pu"), node=Ref("n1", "nu"))
    claims = setup.accounts.verify(issued.token)
    assert claims is not None
    now = int(setup.clock.wall())
    assert (claims.iss, claims.aud, claims.sub) == (ISSUER, [ISSUER], "system:serviceaccount:ns:default")
    assert (claims.iat, claims.nbf, claims.exp, issued.expires_s) == (now, now, now + 600, now + 600)
    bound = claims.kubernetes
    assert (bound.namespace, bound.serviceaccount, bound.pod, bound.node) == (
        "ns",
        Ref("default", "u"),
        Ref("p", "pu"),
        Ref("n1", "nu"),
    )


def test_a_token_of_3607_s_for_a_pod_is_good_for_a_year() -> None:
    setup = Setup()
    issued = setup.accounts.issue("ns", Ref("default"), 3607, pod=Ref("p"))
    claims = setup.accounts.verify(issued.token)
    assert claims is not None
    assert claims.exp - claims.iat == EXTENDED_S
    assert claims.kubernetes.warnafter == claims.iat + 3607
    assert issued.expires_s == claims.iat + 3607


def test_any_member_with_the_key_accepts_a_token_and_none_without() -> None:
    setup = Setup()
    token = setup.accounts.issue("ns", Ref("default"), 600).token
    assert AccountTokens(KEY, setup.clock.wall, Random(2)).user(token) == setup.accounts.user(token)
    assert AccountTokens(KEY[::-1], setup.clock.wall, Random(1)).user(token) is None


def test_a_token_expires_even_when_it_is_known() -> None:
    setup = Setup()
    token = setup.accounts.issue("ns", Ref("default"), 600).token
    assert setup.user(f"Bearer {token}") is not None
    setup.clock.advance(599)
    assert setup.user(f"Bearer {token}") is not None
    setup.clock.advance(1.001)
    assert setup.user(f"Bearer {token}") is None


def test_a_token_for_another_audience_is_refused() -> None:
    setup = Setup()
    assert setup.user(f"Bearer {setup.accounts.issue('ns', Ref('default'), 600, ['vault']).token}") is None


def test_a_changed_token_is_refused() -> None:
    setup = Setup()
    header, payload, signature = setup.accounts.issue("ns", Ref("default"), 600).token.split(".")
    other = setup.accounts.issue("ns", Ref("admin"), 600).token.split(".")[1]
    assert setup.user(f"Bearer {header}.{other}.{signature}") is None
    assert setup.user(f"Bearer {header}.{payload}.{signature[:-2]}") is None


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        AccountTokens(b"short", VirtualClock().wall, Random(1))


def test_users_are_counted_in_few_classes() -> None:
    setup = Setup()
    for name in ("system:node:n1", "kubelet", "a@b.example"):
        Authenticator(setup.metrics, {"t": UserInfo(name)}).authenticate({"authorization": "Bearer t"})
    users = setup.metrics.authenticated_user_requests
    assert {key[0]: child.value for key, child in users.children.items()} == {
        "other": 1,
        "kubelet": 1,
        "email_id": 1,
    }
    assert setup.attempts("success") == 3


@pytest.mark.parametrize(
    ("user", "node"),
    [
        (UserInfo("system:node:n1", ("system:nodes",)), "n1"),
        (UserInfo("system:node:", ("system:nodes",)), ""),
        (UserInfo("system:node:n1", ("system:authenticated",)), None),
        (UserInfo("n1", ("system:nodes",)), None),
        (account_user("a", "b"), None),
    ],
)
def test_a_node_needs_both_its_name_and_its_group(user: UserInfo, node: str | None) -> None:
    assert user.node_name == node


# ---- client certificates -------------------------------------------------------------------------------------------
def certificate(
    name: str = "jane", *groups: str, begins_s: float = -10, ends_s: float = 10
) -> ClientCertificate:
    """One of jane's; times are relative to the clock's beginning."""
    now = VirtualClock().wall()
    return ClientCertificate(name, groups, now + begins_s, now + ends_s, f"{name}{groups}")


def shown(setup: Setup, shown: ClientCertificate | None, token: str = "") -> UserInfo | None:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return setup.authenticator.authenticate(headers, shown)


def test_a_certificate_s_name_and_groups_are_the_user_s() -> None:
    setup = Setup()
    user = shown(setup, certificate("jane", "team", "system:nodes"))
    assert user == UserInfo(
        "jane",
        ("team", "system:nodes", "system:authenticated"),
        extra=(
            (
                "authentication.kubernetes.io/credential-id",
                ("X509SHA256=jane('team', 'system:nodes')",),
            ),
        ),
    )
    assert shown(setup, certificate("jane", "team", "system:nodes")) is user  # made once
    assert shown(setup, certificate("jane", "system:authenticated")).groups == ("system:authenticated",)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "token", "user"),
    [
        (certificate(), "", "jane"),
        (certificate(), "admin-token", "jane"),
        (certificate(), "nonsense", "jane"),
        (certificate(""), "", "system:anonymous"),
        (certificate(""), "admin-token", "kubernetes-admin"),
        (certificate(""), "nonsense", None),
        (certificate(ends_s=0), "", None),
        (certificate(ends_s=0), "admin-token", "kubernetes-admin"),
        (certificate(begins_s=1), "", None),
        (certificate(begins_s=0, ends_s=1), "", "jane"),
        (None, "", "system:anonymous"),
    ],
)
def test_certificates_and_tokens_together(
    kind: ClientCertificate | None, token: str, user: str | None
) -> None:
    found = shown(Setup(), kind, token)
    assert (None if found is None else found.name) == user


def test_a_certificate_ends_while_its_connection_is_open() -> None:
    setup, held = Setup(), certificate(ends_s=10)
    assert shown(setup, held) is not None
    setup.clock.advance(9.9)
    assert shown(setup, held) is not None
    setup.clock.advance(0.2)
    assert shown(setup, held) is None
    assert setup.attempts("error") == 1


def test_what_is_remembered_of_certificates_is_bounded() -> None:
    setup = Setup()
    for number in range(20_010):
        shown(setup, certificate(f"u{number}"))
    assert len(setup.authenticator._certified) <= 20_000


# ---- reviews -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("audiences", "asked", "found"),
    [
        ((), (), [ISSUER]),
        ((), ("vault",), None),
        (("vault",), ("vault", "other"), ["vault"]),
        (("vault",), (), None),
        (("vault", ISSUER), (ISSUER, "vault"), [ISSUER, "vault"]),
    ],
)
def test_a_token_is_reviewed_for_audiences(
    audiences: tuple[str, ...], asked: tuple[str, ...], found: list[str] | None
) -> None:
    setup = Setup()
    token = setup.accounts.issue("ns", Ref("default"), 600, audiences).token
    review = setup.authenticator.review(token, asked)
    assert (None if review is None else list(review[1])) == found


def test_the_admin_s_token_is_good_for_whatever_is_asked() -> None:
    setup = Setup()
    assert setup.authenticator.review("admin-token", ("vault",)) == (ADMIN, ("vault",))
    assert Authenticator(setup.metrics, {"t": ADMIN}).review("t") == (ADMIN, ())
    assert Authenticator(setup.metrics, {}).review("t") is None
