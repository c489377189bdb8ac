"""Reading what clients send: JSON, YAML, protobuf, and what is wrong with it; negotiation, options, durations, ages."""

import pytest

from harness.apiserver.cache.cachedobject import splice
from harness.apiserver.handlers.bodies import decode_object, decode_options, without_nulls
from harness.apiserver.handlers.negotiate import JSON, PROTOBUF, YAML, View, negotiate
from harness.apiserver.handlers.options import delete_options, list_options, write_options
from harness.apiserver.registry import unspliced
from harness.apiserver.resources import RESOURCES
from harness.apiserver.views.ages import human
from harness.wire import protobuf
from harness.wire.gotext import parse_duration
from harness.wire.status import StatusError

CONFIGMAPS = next(resource for resource in RESOURCES if resource.resource == "configmaps")
PODS = next(resource for resource in RESOURCES if resource.resource == "pods")


# kubectl create configmap cm1 --from-literal=a=b, as kubectl v1.32.4 sent it
SENT = bytes.fromhex(
    "6b3873000a0f0a0276311209436f6e6669674d6170121d0a130a03636d3112001a00220"
    "02a003200380042001206 0a016112016 21a002200".replace(" ", "")
)


def test_kubectl_s_protobuf_is_read() -> None:
    assert decode_object(SENT, PROTOBUF, CONFIGMAPS)["metadata"]["name"] == "cm1"


@pytest.mark.parametrize("body", [b"", b"{}", protobuf.MAGIC, SENT[:-3], protobuf.MAGIC + b"\x0b"])
def test_broken_protobuf_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(StatusError) as caught:
        decode_object(body, PROTOBUF, CONFIGMAPS)
    assert caught.value.status.code == 400


def test_kind_and_version_may_be_left_out() -> None:
    assert decode_object(b'{"metadata":{"name":"x"}}', JSON, CONFIGMAPS) == {"metadata": {"name": "x"}}
    assert decode_object(b"metadata: {name: x}", YAML, CONFIGMAPS) == {"metadata": {"name": "x"}}


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"a": None, "b": 0}, {"b": 0}),
        ([None, 1, None], [1]),
        ({"a": [{"b": None}, {"c": {"d": None}}]}, {"a": [{}, {"c": {}}]}),
        ({"lastProbeTime": None, "status": "True"}, {"lastProbeTime": None, "status": "True"}),
        (None, None),
    ],
)
def test_nulls_are_not_there(value: object, kept: object) -> None:
    before = repr(value)
    assert without_nulls(value) == kept
    assert repr(value) == before


def test_what_has_no_nulls_is_not_copied() -> None:
    value = {"a": [1, {"b": "c"}], "lastTimestamp": None}
    assert without_nulls(value) is value


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"1", b"null", b"", b"{", b"\xff"])
def test_what_is_no_object_a_bad_request(body: bytes) -> None:
    with pytest.raises(StatusError) as caught:
        decode_object(body, JSON, CONFIGMAPS)
    assert caught.value.status.code == 400


def test_delete_options_come_from_the_body_or_the_query() -> None:
    body = decode_options(b'{"gracePeriodSeconds":0,"preconditions":{"uid":"u"}}', JSON)
    assert body is not None
    options = delete_options(body, {"gracePeriodSeconds": "9"})
    assert (options.grace_s, options.uid) == (0, "u")
    options = delete_options(None, {"gracePeriodSeconds": "9", "propagationPolicy": "Orphan"})
    assert (options.grace_s, options.propagation) == (9, "Orphan")
    with pytest.raises(StatusError):
        delete_options({"propagationPolicy": "Sideways"}, {})


@pytest.mark.parametrize(
    ("accept", "media_type", "view"),
    [
        ("", JSON, View.OBJECT),
        ("*/*", JSON, View.OBJECT),
        ("application/vnd.kubernetes.protobuf,application/json", JSON, View.OBJECT),
        ("application/yaml", YAML, View.OBJECT),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", JSON, View.TABLE),
        ("application/json;as=Unknown;v=v1;g=meta.k8s.io,application/json", JSON, View.OBJECT),
        ("application/json; as=PartialObjectMetadataList; v=v1; g=meta.k8s.io", JSON, View.PARTIAL_LIST),
    ],
)
def test_the_first_acceptable_clause_is_taken(accept: str, media_type: str, view: View) -> None:
    found = negotiate(accept)
    assert (found.media_type, found.view) == (media_type, view)


def test_what_is_not_served_is_not_acceptable() -> None:
    for accept in ("text/html", "application/vnd.kubernetes.protobuf"):
        with pytest.raises(StatusError) as caught:
            negotiate(accept)
        assert caught.value.status.code == 406


def test_list_options_are_read() -> None:
    query = {"fieldSelector": "spec.nodeName=n", "limit": "5", "resourceVersion": "0", "timeoutSeconds": "3"}
    options = list_options(query, PODS, watch=False)
    assert (options.limit, options.revision, options.timeout_s) == (5, 0, 3)
    assert options.fields.required("spec.nodeName") == "n"
    assert list_options({}, PODS, watch=False).revision is None


def test_write_options_are_validated() -> None:
    assert write_options({}, "CreateOptions").validation == "Warn"
    assert write_options({"dryRun": "All"}, "CreateOptions").dry_run
    with pytest.raises(StatusError):
        write_options({"fieldValidation": "Loudly"}, "CreateOptions")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10.0),
        ("7m12s", 432.0),
        ("1h", 3600.0),
        ("500ms", 0.5),
        ("0", 0.0),
        ("10", None),
        ("", None),
        ("s", None),
    ],
)
def test_durations_are_go_s(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (7 * 86400 + 11 * 3600, "7d11h"),
        (8 * 86400, "8d"),
        (3 * 365 * 86400, "3y"),
    ],
)
def test_ages_are_shown_as_kubectl_does(seconds: int, shown: str) -> None:
    assert human(seconds) == shown


def test_a_version_is_spliced_in_and_out() -> None:
    stored = b'{"kind":"K","apiVersion":"v1","metadata":{"name":"x"},"data":{"resourceVersion":"7"}}'
    assert unspliced(splice(stored, 12345)) == stored
