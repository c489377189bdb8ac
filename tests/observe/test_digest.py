"""The few figures of a scrape that are shown while a run goes on."""

from __future__ import annotations

import msgspec

from harness.observe.digest import Digest, Scraped, digest_of
from harness.observe.exposition import samples

TEXT = """\
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",verb="GET"} 10
apiserver_request_total{code="403",verb="GET"} 2
apiserver_longrunning_requests{resource="pods",verb="WATCH"} 7
apiserver_longrunning_requests{resource="pods",verb="CONNECT"} 100
apiserver_watch_cache_resource_version{resource="pods"} 41
apiserver_watch_cache_resource_version{resource="nodes"} 43
apiserver_flowcontrol_rejected_requests_total{reason="queue-full"} 3
apiserver_flowcontrol_rejected_requests_total{reason="time-out"} 4
apiserver_request_total_of_something_else 1000
etcd_requests_total 5
"""


def test_sums_and_the_newest_revision() -> None:
    assert digest_of(dict(samples(TEXT))) == Digest(watches=7, requests=12, rejects=7, revision=43)


def test_what_nothing_has_happened_to_yet_is_0_and_a_revision_that_is_not_shown_is_unknown() -> None:
    assert digest_of({'apiserver_request_total{code="200"}': 1.0}) == Digest(0, 1, 0, None)


def test_a_target_without_apiserver_metrics_says_nothing() -> None:
    assert digest_of({"go_goroutines": 5.0}) == Digest()


def test_as_the_scraper_says_it_and_the_session_reads_it() -> None:
    said = Scraped(12.5, {"member-0": Digest(watches=1, requests=2, rejects=0), "member-1": None})
    line = msgspec.json.decode(msgspec.json.encode(said))
    assert line["kind"] == "scraped"
    assert msgspec.convert(line, Scraped) == said
