"""Which controllers a run brings, and over whose connections their requests go."""

from __future__ import annotations

import argparse
from typing import Any, cast

import pytest

from harness.client.requests import PODS, list_
from harness.load.byclient import TransportsByClient
from harness.load.controllerarguments import NAMES, add_controller_arguments, controllers_of, scheduler_of
from harness.load.plan import Controllers
from harness.transport.pool import Transport
from harness.wire.errors import ConfigError


def parsed(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_controller_arguments(cast(Any, parser.add_argument))
    return parser.parse_args(argv)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ((), Controllers(NAMES, 20.0, 30)),
        (("--controllers", "none"), Controllers((), 20.0, 30)),
        (
            ("--controllers", "job-controller,namespace-controller"),
            Controllers(("job-controller", "namespace-controller")),
        ),
        (("--controller-limits", "50/100"), Controllers(NAMES, 50.0, 100)),
    ],
)
def test_what_is_asked_for(argv: tuple[str, ...], expected: Controllers) -> None:
    assert controllers_of(parsed(*argv)) == expected


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ("--controllers", "deployments"),
            "no controller is called so; there are service-account-controller",
        ),
        (("--controller-limits", "20"), "expected QPS/BURST"),
        (("--controller-limits", "0/5"), "expected QPS/BURST"),
        (("--controller-limits", "a/b"), "expected QPS/BURST"),
    ],
)
def test_what_is_refused(argv: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        controllers_of(parsed(*argv))


def test_the_schedulers_limits_are_for_both_of_its_clients() -> None:
    assert scheduler_of(parsed()) == {}
    limits = scheduler_of(parsed("--scheduler-limits", "10/20"))
    assert limits == {"qps": 10.0, "burst": 20, "event_qps": 10.0, "event_burst": 20}


class FakeTransport:
    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.closed = 0

    def send(self, request: Any, sink: Any) -> str:
        self.sent.append(request)
        return "handle"

    def close_connections(self) -> None:
        self.closed += 1

    def close(self) -> None:
        self.closed += 10


def test_a_request_goes_over_its_clients_connections() -> None:
    fakes = {"a": FakeTransport(), "b": FakeTransport()}
    both = TransportsByClient(cast(dict[str, Transport], fakes))
    request = list_(PODS, client="b")
    handle: Any = both.send(request, cast(Any, None))
    assert handle == "handle"
    assert (fakes["a"].sent, fakes["b"].sent) == ([], [request])
    both.close_connections()
    both.close()
    assert [each.closed for each in fakes.values()] == [11, 11]
    with pytest.raises(KeyError):
        both.send(list_(PODS, client="c"), cast(Any, None))
