"""Claims, volumes and what classes them: what is filled in, refused and kept as it was."""

from __future__ import annotations

import random
from typing import Any

import pytest

from harness.apiserver.resources import RESOURCES
from harness.apiserver.strategies import Context, strategy_for

BY_NAME = {resource.resource: strategy_for(resource) for resource in RESOURCES if resource.hub is None}
CONTEXT = Context("2026-01-01T00:00:00Z", random.Random(1))
LATER = Context("2026-01-02T00:00:00Z", random.Random(1))
Object = dict[str, Any]


def created(resource: str, new: Object) -> Object:
    strategy = BY_NAME[resource]
    body = {"metadata": {"name": "x"}, **new}
    strategy.default(body)
    strategy.fill_create(body, "ns", CONTEXT)
    return strategy.ordered(body)


def faults(resource: str, new: Object) -> list[str]:
    body = created(resource, new)
    return [f"{error.field}: {error.message}" for error in BY_NAME[resource].validate(body)]


def update_faults(resource: str, new: Object, old: Object) -> list[str]:
    strategy = BY_NAME[resource]
    before = {"metadata": {"name": "x"}, **old}
    after = {"metadata": {"name": "x"}, **new}
    for body in (before, after):
        strategy.default(body)
    return [f"{error.field}: {error.message}" for error in strategy.validate_update(after, before)]


def claim(**spec: Any) -> Object:
    requests = {"storage": spec.pop("size", "1Gi")}
    return {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": requests}, **spec}}


def volume(**spec: Any) -> Object:
    source = {"csi": {"driver": "d", "volumeHandle": "h"}}
    return {"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, **source, **spec}}


# ---- claims --------------------------------------------------------------------------------------------------------
def test_a_claim_is_pending_and_a_file_system() -> None:
    found = created("persistentvolumeclaims", {**claim(), "status": {"phase": "Bound"}})
    assert found["status"] == {"phase": "Pending"}
    assert found["spec"]["volumeMode"] == "Filesystem"


def test_a_claim_s_data_source_stands_in_both_places() -> None:
    source = {"kind": "PersistentVolumeClaim", "name": "c"}
    assert created("persistentvolumeclaims", claim(dataSource=source))["spec"]["dataSourceRef"] == source
    assert created("persistentvolumeclaims", claim(dataSourceRef=source))["spec"]["dataSource"] == source
    abroad = {**source, "namespace": "other"}
    assert "dataSource" not in created("persistentvolumeclaims", claim(dataSourceRef=abroad))["spec"]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, []),
        ({"accessModes": []}, ["spec.accessModes: Required value: at least 1 access mode is required"]),
        (
            {"accessModes": ["ReadWriteAll"]},
            [
                (
                    'spec.accessModes: Unsupported value: "ReadWriteAll": supported values: "ReadOnlyMany", '
                    '"ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"'
                )
            ],
        ),
        (
            {"accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]},
            ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
        ),
        ({"resources": {}}, ["spec.resources[storage]: Required value"]),
        ({"size": "0"}, ['spec.resources[storage]: Invalid value: "0": must be greater than zero']),
        (
            {"volumeMode": "Tape"},
            ['spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"'],
        ),
        ({"storageClassName": ""}, []),
    ],
)
def test_faults_of_claims(spec: Object, wanted: list[str]) -> None:
    assert faults("persistentvolumeclaims", claim(**spec)) == wanted


def test_a_class_is_named_by_a_dns_name() -> None:
    (fault,) = faults("persistentvolumeclaims", claim(storageClassName="Fast!"))
    assert fault.startswith('spec.storageClassName: Invalid value: "Fast!": a lowercase RFC 1123 subdomain')


BOUND = {"status": {"phase": "Bound", "capacity": {"storage": "2Gi"}}}
IMMUTABLE = (
    "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims"
)
SMALLER = "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"


@pytest.mark.parametrize(
    ("new", "old", "wanted"),
    [
        (claim(volumeName="v"), claim(), []),
        (claim(volumeName="w"), claim(volumeName="v"), [IMMUTABLE]),
        (claim(storageClassName="c"), claim(), []),
        (claim(storageClassName="c"), claim(storageClassName="d"), [IMMUTABLE]),
        (claim(size="2Gi"), claim(), [IMMUTABLE]),
        ({**claim(size="3Gi"), **BOUND}, {**claim(size="2Gi"), **BOUND}, []),
        ({**claim(size="1Gi"), **BOUND}, {**claim(size="2Gi"), **BOUND}, [SMALLER]),
        ({**claim(size="3Gi"), **BOUND}, {**claim(size="4Gi"), **BOUND}, []),
        ({**claim(volumeAttributesClassName="a"), **BOUND}, {**claim(), **BOUND}, []),
        (claim(volumeMode="Block"), claim(), [IMMUTABLE]),
    ],
)
def test_what_may_change_of_a_claim(new: Object, old: Object, wanted: list[str]) -> None:
    assert update_faults("persistentvolumeclaims", new, old) == wanted


# ---- volumes -------------------------------------------------------------------------------------------------------
def test_a_volume_is_pending_retained_and_a_file_system() -> None:
    found = created("persistentvolumes", volume(hostPath={"path": "/x"}))
    assert found["status"] == {"phase": "Pending", "lastPhaseTransitionTime": CONTEXT.now}
    assert found["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert found["spec"]["volumeMode"] == "Filesystem"
    assert found["spec"]["hostPath"] == {"path": "/x", "type": ""}


@pytest.mark.parametrize(
    ("status", "stamp"),
    [
        ({"phase": "Bound"}, LATER.now),
        ({"phase": "Pending"}, None),
        ({"phase": "Bound", "lastPhaseTransitionTime": CONTEXT.now}, LATER.now),
        ({"phase": "Bound", "lastPhaseTransitionTime": "2025-01-01T00:00:00Z"}, "2025-01-01T00:00:00Z"),
    ],
)
def test_a_volume_s_change_of_phase_is_stamped(status: Object, stamp: str | None) -> None:
    strategy = BY_NAME["persistentvolumes"]
    old = created("persistentvolumes", volume())
    new = {"metadata": dict(old["metadata"]), "spec": {"changed": True}, "status": dict(status)}
    strategy.default_status(new)
    strategy.fill_update(new, old, LATER, "status")
    assert new["status"].get("lastPhaseTransitionTime") == stamp
    assert new["spec"] == old["spec"]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, []),
        ({"accessModes": []}, ["spec.accessModes: Required value"]),
        ({"capacity": {}}, ["spec.capacity: Required value"]),
        (
            {"capacity": {"cpu": "1"}},
            ['spec.capacity: Unsupported value: {"cpu":"1"}: supported values: "storage"'],
        ),
        (
            {"capacity": {"storage": "-1"}},
            ['spec.capacity[storage]: Invalid value: "-1": must be greater than zero'],
        ),
        ({"csi": None}, ["spec: Required value: must specify a volume type"]),
        (
            {"nfs": {"server": "s", "path": "/"}},
            ["spec.nfs: Forbidden: may not specify more than 1 volume type"],
        ),
        (
            {"csi": {}},
            ["spec.csi.driver: Required value", "spec.csi.volumeHandle: Required value"],
        ),
        (
            {"persistentVolumeReclaimPolicy": "Burn"},
            [
                (
                    'spec.persistentVolumeReclaimPolicy: Unsupported value: "Burn": supported values: "Delete", '
                    '"Recycle", "Retain"'
                )
            ],
        ),
        (
            {"csi": None, "local": {"path": "/x"}},
            ["spec.nodeAffinity: Required value: Local volume requires node affinity"],
        ),
    ],
)
def test_faults_of_volumes(spec: Object, wanted: list[str]) -> None:
    assert faults("persistentvolumes", volume(**spec)) == wanted


AFFINITY = {"required": {"nodeSelectorTerms": []}}


@pytest.mark.parametrize(
    ("new", "old", "wanted"),
    [
        (volume(claimRef={"name": "c"}), volume(), []),
        (
            volume(csi={"driver": "e", "volumeHandle": "h"}),
            volume(),
            [
                "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"
            ],
        ),
        (volume(volumeMode="Block"), volume(), ['volumeMode: Invalid value: "Block": field is immutable']),
        (volume(nodeAffinity=AFFINITY), volume(), []),
        (
            volume(),
            volume(nodeAffinity=AFFINITY),
            [
                "spec.nodeAffinity: Invalid value: null: field is immutable, except for updating from beta label to GA"
            ],
        ),
    ],
)
def test_what_may_change_of_a_volume(new: Object, old: Object, wanted: list[str]) -> None:
    assert update_faults("persistentvolumes", new, old) == wanted


# ---- storage.k8s.io ------------------------------------------------------------------------------------------------
def test_a_class_deletes_and_binds_at_once() -> None:
    found = created("storageclasses", {"provisioner": "p", "parameters": {}})
    assert (found["reclaimPolicy"], found["volumeBindingMode"]) == ("Delete", "Immediate")
    assert "parameters" not in found


@pytest.mark.parametrize(
    ("resource", "new", "wanted"),
    [
        ("storageclasses", {"provisioner": "p.example.com"}, []),
        ("storageclasses", {}, ["provisioner: Required value"]),
        (
            "storageclasses",
            {"provisioner": "p", "reclaimPolicy": "Recycle", "volumeBindingMode": "Never"},
            [
                'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"',
                (
                    'volumeBindingMode: Unsupported value: "Never": supported values: "Immediate", '
                    '"WaitForFirstConsumer"'
                ),
            ],
        ),
        (
            "storageclasses",
            {"provisioner": "p", "parameters": {"": "x"}},
            ['parameters: Invalid value: "": field can not be empty.'],
        ),
        ("volumeattributesclasses", {"driverName": "d", "parameters": {"a": "b"}}, []),
        (
            "volumeattributesclasses",
            {},
            [
                "driverName: Required value",
                "parameters: Required value: must contain at least one key/value pair",
            ],
        ),
        ("csistoragecapacities", {"storageClassName": "c"}, []),
        (
            "volumeattachments",
            {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
            [],
        ),
        (
            "volumeattachments",
            {"spec": {"attacher": "", "nodeName": "n", "source": {}}},
            [
                "spec.attacher: Required value",
                "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            ],
        ),
        (
            "volumeattachments",
            {
                "spec": {
                    "attacher": "a" * 64,
                    "nodeName": "n",
                    "source": {"persistentVolumeName": "v", "inlineVolumeSpec": {"csi": {}}},
                }
            },
            [
                "spec.attacher: Too long: may not be more than 63 bytes",
                "spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            ],
        ),
    ],
)
def test_faults_of_classes_and_attachments(resource: str, new: Object, wanted: list[str]) -> None:
    assert faults(resource, new) == wanted


def test_too_many_parameters() -> None:
    parameters = {str(number): "x" for number in range(513)}
    wanted = ["parameters: Too many: 513: must have at most 512 items"]
    assert faults("storageclasses", {"provisioner": "p", "parameters": parameters}) == wanted
    del parameters["0"]
    assert faults("storageclasses", {"provisioner": "p", "parameters": parameters}) == []


@pytest.mark.parametrize(
    ("resource", "new", "old", "wanted"),
    [
        ("storageclasses", {"provisioner": "p", "mountOptions": ["ro"]}, {"provisioner": "p"}, []),
        (
            "storageclasses",
            {"provisioner": "q", "parameters": {"a": "b"}, "reclaimPolicy": "Retain"},
            {"provisioner": "p"},
            [
                "parameters: Forbidden: updates to parameters are forbidden.",
                "provisioner: Forbidden: updates to provisioner are forbidden.",
                "reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.",
            ],
        ),
        (
            "storageclasses",
            {"provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer"},
            {"provisioner": "p"},
            ['volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable'],
        ),
        (
            "volumeattributesclasses",
            {"driverName": "e", "parameters": {"a": "b"}},
            {"driverName": "d", "parameters": {"a": "b"}},
            ['driverName: Invalid value: "e": field is immutable'],
        ),
        (
            "csistoragecapacities",
            {"storageClassName": "c", "nodeTopology": {}},
            {"storageClassName": "d"},
            [
                "nodeTopology: Invalid value: {}: field is immutable",
                'storageClassName: Invalid value: "c": field is immutable',
            ],
        ),
        ("csistoragecapacities", {"storageClassName": "c", "capacity": "1"}, {"storageClassName": "c"}, []),
    ],
)
def test_what_may_change_of_a_class(resource: str, new: Object, old: Object, wanted: list[str]) -> None:
    assert update_faults(resource, new, old) == wanted


def test_an_attachment_s_status_is_the_attacher_s_and_brings_no_labels() -> None:
    strategy = BY_NAME["volumeattachments"]
    spec = {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    old = created("volumeattachments", {"spec": spec, "status": {"attached": True}})
    assert old["status"] == {"attached": False}
    new = {
        "metadata": {**old["metadata"], "labels": {"a": "b"}},
        "spec": {**spec, "nodeName": "m"},
        "status": {"attached": True},
    }
    strategy.fill_update(new, old, LATER, "status")
    assert new["status"] == {"attached": True}
    assert new["spec"] == spec
    assert "labels" not in new["metadata"]
    assert update_faults("volumeattachments", {"spec": {**spec, "nodeName": "m"}}, {"spec": spec})
