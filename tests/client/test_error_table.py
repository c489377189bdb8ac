"""Each error and what the reflector did, written down as it happens. docs/kubelet-fidelity.md has the same rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.client.reflectorstates import State
from harness.wire import status
from harness.wire.request import Failure
from harness.wire.status import Status

from .conftest import obj
from .reflectors import Setup, items

PAGE = Path(__file__).parents[2] / "docs" / "kubelet-fidelity.md"
FORBIDDEN = status.forbidden("", "secrets", "s", "no relationship found")
TOO_LARGE = status.too_large_resource_version(20, 10)
TOO_OLD = status.too_old(1, 5)
INTERNAL = status.internal_error("boom")
TOO_MANY = Status(429, "TooManyRequests", "slow down")
GATEWAY_TIMEOUT = Status(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
RETRIES_S = 10.0
"""What the rest layer takes to send a watch ten times more, before the reflector hears of it."""

Come = Callable[[Setup], None]


def answered(body: Status) -> Come:
    return lambda driver: driver.answer(body)


def told(body: Status) -> Come:
    def come(driver: Setup) -> None:
        driver.open()
        driver.receive(("ERROR", body.as_dict()))

    return come


def failed(failure: Failure, after_s: float = 0.0) -> Come:
    def come(driver: Setup) -> None:
        driver.advance(after_s)
        driver.fail(failure)

    return come


def closed(failure: Failure | None, after_s: float = 5.0) -> Come:
    def come(driver: Setup) -> None:
        driver.open()
        driver.advance(after_s)
        driver.close(failure)

    return come


def began(driver: Setup) -> None:
    driver.start()


def knows(driver: Setup) -> None:
    """A watch-list that resumes: ListAndWatch has begun again after an earlier state."""
    driver.begin()
    driver.back_off()
    driver.take()
    driver.fire()


def watches(driver: Setup) -> None:
    driver.begin()
    driver.advance(10)
    driver.close()  # it is opened again, as a plain watch


def lists(driver: Setup) -> None:
    driver.start()
    driver.answer(FORBIDDEN)


def relists(driver: Setup) -> None:
    driver.begin()
    driver.back_off()
    driver.fire()
    driver.answer(FORBIDDEN)


def pages(driver: Setup) -> None:
    lists(driver)
    driver.answer(items("10", obj("a", 3), token="next"))


ROWS: list[tuple[str, Callable[[Setup], None], str, Come]] = [
    ("first watch-list", began, "connection refused", failed(Failure.REFUSED)),
    ("first watch-list", began, "429", answered(TOO_MANY)),
    ("first watch-list", began, "403", answered(FORBIDDEN)),
    ("first watch-list", began, "422", answered(status.invalid("", "Secret", "s", ()))),
    ("first watch-list", began, "500", answered(INTERNAL)),
    ("first watch-list", began, "410", answered(TOO_OLD)),
    ("first watch-list", began, "504, resourceVersion too large", answered(TOO_LARGE)),
    ("first watch-list", began, "TLS failure", failed(Failure.TLS)),
    ("first watch-list", began, "no answer to PING", failed(Failure.LOST)),
    ("first watch-list", began, "reset or timed out, ten times more too", failed(Failure.TIMEOUT, RETRIES_S)),
    ("first watch-list", began, "ERROR event 429", told(TOO_MANY)),
    ("first watch-list", began, "ERROR event 403", told(FORBIDDEN)),
    ("first watch-list", began, "ERROR event 500", told(INTERNAL)),
    ("first watch-list", began, "clean end before its bookmark", closed(None)),
    ("first watch-list", began, "broken before its bookmark", closed(Failure.RESET)),
    ("first watch-list", began, "end within a second, nothing sent", closed(None, 0.5)),
    ("watch-list at a known revision", knows, "connection refused", failed(Failure.REFUSED)),
    ("watch-list at a known revision", knows, "429", answered(TOO_MANY)),
    ("watch-list at a known revision", knows, "410", answered(TOO_OLD)),
    ("watch-list at a known revision", knows, "504, resourceVersion too large", answered(TOO_LARGE)),
    ("watch-list at a known revision", knows, "ERROR event 504, too large", told(TOO_LARGE)),
    ("watch-list at a known revision", knows, "403", answered(FORBIDDEN)),
    ("watch-list at a known revision", knows, "500", answered(INTERNAL)),
    ("watch-list at a known revision", knows, "TLS failure", failed(Failure.TLS)),
    (
        "watch-list at a known revision",
        knows,
        "reset or timed out, ten times more too",
        failed(Failure.RESET, RETRIES_S),
    ),
    ("watch-list at a known revision", knows, "clean end before its bookmark", closed(None)),
    ("watch-list at a known revision", knows, "broken before its bookmark", closed(Failure.RESET)),
    ("watch-list at a known revision", knows, "end within a second, nothing sent", closed(None, 0.5)),
    ("watch", watches, "connection refused", failed(Failure.REFUSED)),
    ("watch", watches, "429", answered(TOO_MANY)),
    ("watch", watches, "ERROR event 429", told(TOO_MANY)),
    ("watch", watches, "ERROR event 410", told(TOO_OLD)),
    ("watch", watches, "410", answered(TOO_OLD)),
    ("watch", watches, "504, resourceVersion too large", answered(TOO_LARGE)),
    ("watch", watches, "ERROR event 504, too large", told(TOO_LARGE)),
    ("watch", watches, "ERROR event 500", told(INTERNAL)),
    ("watch", watches, "403", answered(FORBIDDEN)),
    ("watch", watches, "TLS failure", failed(Failure.TLS)),
    ("watch", watches, "reset or timed out, ten times more too", failed(Failure.TIMEOUT, RETRIES_S)),
    ("watch", watches, "clean end", closed(None)),
    ("watch", watches, "connection reset, or closed by us", closed(Failure.CLOSED)),
    ("watch", watches, "connection timed out", closed(Failure.TIMEOUT)),
    ("watch", watches, "no answer to PING", closed(Failure.LOST)),
    ("watch", watches, "protocol error", closed(Failure.PROTOCOL)),
    ("watch", watches, "end within a second, nothing sent", closed(None, 0.5)),
    ("LIST after a first watch-list", lists, "403", answered(FORBIDDEN)),
    ("LIST after a first watch-list", lists, "500", answered(INTERNAL)),
    ("LIST after a first watch-list", lists, "429", answered(TOO_MANY)),
    ("LIST after a first watch-list", lists, "504", answered(GATEWAY_TIMEOUT)),
    ("LIST after a first watch-list", lists, "connection refused", failed(Failure.REFUSED)),
    ("LIST after a first watch-list", lists, "timed out", failed(Failure.TIMEOUT)),
    ("LIST after a first watch-list", lists, "410", answered(TOO_OLD)),
    ("LIST, a page after the first", pages, "410", answered(TOO_OLD)),
    ("LIST, a page after the first", pages, "403", answered(FORBIDDEN)),
    ("LIST, a page after the first", pages, "500", answered(INTERNAL)),
    ("LIST at a known revision", relists, "410", answered(TOO_OLD)),
    ("LIST at a known revision", relists, "504, resourceVersion too large", answered(TOO_LARGE)),
]


def what_it_sent(path: str) -> str:
    query = dict(pair.split("=") for pair in path.partition("?")[2].split("&"))
    version = query.get("resourceVersion", "")
    where = {"": "of the latest state", "0": "from the watch cache"}.get(version, "at the last revision")
    if "sendInitialEvents" in query:
        return f"watch-list {where}"
    if "watch" in query:
        return f"watch {where}"
    return f"LIST {where}" + (f", pages of {query['limit']}" if "limit" in query else ", no limit")


def what_it_did(driver: Setup) -> str:
    if not driver.timers:
        return f"at once: {what_it_sent(driver.take()[-1])}"
    waited = driver.fire()
    low = waited / 1.5  # every draw is 0.5 of U[1, 2)
    return f"after {low:.3g} to {2 * low:.3g} s: {what_it_sent(driver.take()[-1])}"


def row(case: tuple[str, Callable[[Setup], None], str, Come]) -> str:
    where, prepare, what, come = case
    driver = Setup()
    prepare(driver)
    driver.take()
    come(driver)
    assert driver.state is not State.STOPPED
    return f"| {where} | {what} | {what_it_did(driver)} |"


@pytest.mark.parametrize("case", ROWS, ids=[f"{where}: {what}" for where, _, what, _ in ROWS])
def test_the_page_says_what_the_reflector_did(
    case: tuple[str, Callable[[Setup], None], str, Come],
) -> None:
    assert row(case) in PAGE.read_text().splitlines()


if __name__ == "__main__":  # python -m tests.client.test_error_table: the rows for the page
    print("\n".join(map(row, ROWS)))
