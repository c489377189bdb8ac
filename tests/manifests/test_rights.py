"""Which users a locustfile has, as far as its text says."""

from __future__ import annotations

import pytest

from harness.manifests.files import File
from harness.manifests.rights import Users, users_of
from harness.observe.environment import share
from harness.wire.errors import ConfigError

FLEET = Users(kubelets=True, scenario=True, provisioners=False, informers=False)
PROVISIONERS = Users(kubelets=False, scenario=False, provisioners=True, informers=False)
INFORMERS = Users(kubelets=False, scenario=False, provisioners=False, informers=True)


def of_text(text: str) -> Users:
    return users_of(File("mine.py", "mine.py", text))


@pytest.mark.parametrize(
    ("name", "users"),
    [("kubelets", FLEET), ("kperf", FLEET), ("provisioners", PROVISIONERS), ("informers", INFORMERS)],
)
def test_those_of_ours(name: str, users: Users) -> None:
    assert of_text((share("locustfiles") / f"{name}.py").read_text()) == users


BOTH = """\
from harness.load.informerusers import InformerUser
from harness.load.users import ClusterLoaderUser, KubeletUser
"""


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("from mine import Fleet\n", FLEET),
        ("from harness.load.provisionerusers import ClaimsUser as Claims\n", PROVISIONERS),
        ("from harness.load import informerusers\nclass I(informerusers.InformerUser): ...\n", INFORMERS),
        (BOTH, FLEET._replace(informers=True)),
    ],
)
def test_those_of_ones_own(text: str, users: Users) -> None:
    assert of_text(text) == users


@pytest.mark.parametrize("text", ["class\n", "\x00"])
def test_what_is_no_python_is_one_line(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--locustfile mine\.py: is no Python: ") as refused:
        of_text(text)
    assert "\n" not in str(refused.value)
