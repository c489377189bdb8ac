from collections.abc import Iterator

import pytest
from fakemember import Server


@pytest.fixture
def server() -> Iterator[Server]:
    """One member, ready, with the namespace ``ns`` and its service account."""
    started = Server()
    started.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "ns"}})
    started.ask("POST", "/api/v1/namespaces/ns/serviceaccounts", {"metadata": {"name": "default"}})
    yield started
    started.close()
