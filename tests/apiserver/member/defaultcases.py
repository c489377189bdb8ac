"""What is posted of each kind, and what comes back: the cases of test_defaults_of_kinds.py."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

NS = "/namespaces/ns/"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "pause:3"}]}}
POD_SPEC = {
    "containers": [
        {
            "name": "c",
            "image": "pause:3",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent",
        }
    ],
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
FULL = {"metadata": {"labels": {"a": "b"}}, "spec": POD_SPEC}
SELECTOR = {"matchLabels": {"a": "b"}}
JOB_POD = {"containers": TEMPLATE["spec"]["containers"], "restartPolicy": "Never"}  # type: ignore[index]
JOB_TEMPLATE = {"spec": JOB_POD}
FULL_JOB_SPEC = {**POD_SPEC, "restartPolicy": "Never"}
JOB_LABELS = {
    "batch.kubernetes.io/controller-uid": "UID",
    "batch.kubernetes.io/job-name": "x",
    "controller-uid": "UID",
    "job-name": "x",
}
CASES: list[tuple[str, str, Object, Object, int | None]] = [
    (
        "apps/v1",
        "deployments",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
        {
            "spec": {
                "replicas": 1,
                "selector": SELECTOR,
                "template": FULL,
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
                },
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
            },
            "status": {},
        },
        1,
    ),
    (
        "apps/v1",
        "deployments",
        {
            "spec": {
                "selector": SELECTOR,
                "template": TEMPLATE,
                "replicas": 0,
                "strategy": {"type": "Recreate"},
            }
        },
        {
            "spec": {
                "replicas": 0,
                "selector": SELECTOR,
                "template": FULL,
                "strategy": {"type": "Recreate"},
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
            },
            "status": {},
        },
        1,
    ),
    (
        "apps/v1",
        "replicasets",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE}, "status": {"replicas": 7}},
        {
            "spec": {"replicas": 1, "selector": SELECTOR, "template": FULL},
            "status": {"replicas": 0},
        },
        1,
    ),
    (
        "apps/v1",
        "statefulsets",
        {"spec": {"serviceName": "s", "selector": SELECTOR, "template": TEMPLATE}},
        {
            "spec": {
                "replicas": 1,
                "selector": SELECTOR,
                "template": FULL,
                "serviceName": "s",
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "revisionHistoryLimit": 10,
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            },
            "status": {"replicas": 0, "availableReplicas": 0},
        },
        1,
    ),
    (
        "apps/v1",
        "statefulsets",
        {
            "spec": {
                "selector": SELECTOR,
                "template": TEMPLATE,
                "updateStrategy": {"type": "OnDelete"},
                "volumeClaimTemplates": [
                    {"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
                ],
            }
        },
        {
            "spec": {
                "replicas": 1,
                "selector": SELECTOR,
                "template": FULL,
                "serviceName": "",
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "OnDelete"},
                "revisionHistoryLimit": 10,
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                "volumeClaimTemplates": [
                    {
                        "kind": "PersistentVolumeClaim",
                        "apiVersion": "v1",
                        "metadata": {"name": "v"},
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {},
                            "volumeMode": "Filesystem",
                        },
                        "status": {"phase": "Pending"},
                    }
                ],
            },
            "status": {"replicas": 0, "availableReplicas": 0},
        },
        1,
    ),
    (
        "apps/v1",
        "daemonsets",
        {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
        {
            "spec": {
                "selector": SELECTOR,
                "template": FULL,
                "updateStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
                },
                "revisionHistoryLimit": 10,
            },
            "status": {
                "currentNumberScheduled": 0,
                "numberMisscheduled": 0,
                "desiredNumberScheduled": 0,
                "numberReady": 0,
            },
            "metadata.annotations": {"deprecated.daemonset.template.generation": "1"},
        },
        1,
    ),
    ("apps/v1", "controllerrevisions", {"data": {"x": 1}}, {"data": {"x": 1}, "revision": 0}, None),
    (
        "v1",
        "replicationcontrollers",
        {"spec": {"template": TEMPLATE}},
        {
            "spec": {"replicas": 1, "selector": {"a": "b"}, "template": FULL},
            "status": {"replicas": 0},
            "metadata.labels": {"a": "b"},
        },
        1,
    ),
    ("v1", "podtemplates", {"template": TEMPLATE}, {"template": FULL}, 1),
    (
        "batch/v1",
        "jobs",
        {"spec": {"template": JOB_TEMPLATE}},
        {
            "spec": {
                "parallelism": 1,
                "completions": 1,
                "backoffLimit": 6,
                "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "UID"}},
                "manualSelector": False,
                "template": {"metadata": {"labels": JOB_LABELS}, "spec": FULL_JOB_SPEC},
                "completionMode": "NonIndexed",
                "suspend": False,
                "podReplacementPolicy": "TerminatingOrFailed",
            },
            "status": {},
            "metadata.labels": JOB_LABELS,
        },
        1,
    ),
    (
        "batch/v1",
        "jobs",
        {
            "spec": {
                "parallelism": 3,
                "backoffLimitPerIndex": 1,
                "completionMode": "Indexed",
                "completions": 4,
                "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "X"}]}]},
                "manualSelector": True,
                "selector": SELECTOR,
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": JOB_POD},
            }
        },
        {
            "spec": {
                "parallelism": 3,
                "completions": 4,
                "podFailurePolicy": {
                    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "X", "status": "True"}]}]
                },
                "backoffLimit": 2147483647,
                "backoffLimitPerIndex": 1,
                "selector": SELECTOR,
                "manualSelector": True,
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": FULL_JOB_SPEC},
                "completionMode": "Indexed",
                "suspend": False,
                "podReplacementPolicy": "Failed",
            },
            "status": {},
            "metadata.labels": {"a": "b"},
        },
        1,
    ),
    (
        "batch/v1",
        "cronjobs",
        {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}}},
        {
            "spec": {
                "schedule": "* * * * *",
                "concurrencyPolicy": "Allow",
                "suspend": False,
                "jobTemplate": {
                    "metadata": {},
                    "spec": {"template": {"metadata": {}, "spec": FULL_JOB_SPEC}},
                },
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1,
            },
            "status": {},
        },
        1,
    ),
    (
        "v1",
        "endpoints",
        {"subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}]}]},
        {"subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80, "protocol": "TCP"}]}]},
        None,
    ),
    (
        "v1",
        "limitranges",
        {
            "spec": {
                "limits": [
                    {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}},
                    {"type": "Pod", "max": {"cpu": "4"}},
                ]
            }
        },
        {
            "spec": {
                "limits": [
                    {
                        "type": "Container",
                        "max": {"cpu": "2"},
                        "min": {"memory": "1Mi"},
                        "default": {"cpu": "2"},
                        "defaultRequest": {"cpu": "2", "memory": "1Mi"},
                    },
                    {"type": "Pod", "max": {"cpu": "4"}},
                ]
            }
        },
        None,
    ),
    (
        "v1",
        "resourcequotas",
        {"spec": {"hard": {"pods": "4"}}},
        {"spec": {"hard": {"pods": "4"}}, "status": {}},
        None,
    ),
    (
        "discovery.k8s.io/v1",
        "endpointslices",
        {"addressType": "IPv4", "endpoints": [], "ports": None},
        {"addressType": "IPv4", "endpoints": [], "ports": None},
        1,
    ),
    (
        "discovery.k8s.io/v1",
        "endpointslices",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.1.1"]}], "ports": [{"port": 80}]},
        {
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.1.1"], "conditions": {}}],
            "ports": [{"name": "", "protocol": "TCP", "port": 80}],
        },
        1,
    ),
    (
        "networking.k8s.io/v1",
        "networkpolicies",
        {"spec": {"ingress": [{"ports": [{"port": 80}]}], "egress": [{}]}},
        {
            "spec": {
                "podSelector": {},
                "ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}],
                "egress": [{}],
                "policyTypes": ["Ingress", "Egress"],
            }
        },
        1,
    ),
    (
        "networking.k8s.io/v1",
        "networkpolicies",
        {"spec": {"podSelector": {}}},
        {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}},
        1,
    ),
    (
        "networking.k8s.io/v1",
        "ingresses",
        {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
        {
            "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
            "status": {"loadBalancer": {}},
        },
        1,
    ),
    (
        "networking.k8s.io/v1",
        "ingressclasses",
        {"spec": {"controller": "e.io/c", "parameters": {"kind": "P", "name": "p"}}},
        {"spec": {"controller": "e.io/c", "parameters": {"kind": "P", "name": "p", "scope": "Cluster"}}},
        1,
    ),
    (
        "networking.k8s.io/v1",
        "servicecidrs",
        {"spec": {"cidrs": ["10.9.0.0/16"]}},
        {"spec": {"cidrs": ["10.9.0.0/16"]}, "status": {}},
        None,
    ),
    (
        "policy/v1",
        "poddisruptionbudgets",
        {"spec": {"minAvailable": "50%", "selector": SELECTOR}},
        {
            "spec": {"minAvailable": "50%", "selector": SELECTOR},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
        },
        1,
    ),
    (
        "autoscaling/v2",
        "horizontalpodautoscalers",
        {
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d"},
                "maxReplicas": 5,
                "behavior": {"scaleDown": {"selectPolicy": "Disabled"}},
            }
        },
        {
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d"},
                "minReplicas": 1,
                "maxReplicas": 5,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {
                            "name": "cpu",
                            "target": {"type": "Utilization", "averageUtilization": 80},
                        },
                    }
                ],
                "behavior": {
                    "scaleUp": {
                        "stabilizationWindowSeconds": 0,
                        "selectPolicy": "Max",
                        "policies": [
                            {"type": "Pods", "value": 4, "periodSeconds": 15},
                            {"type": "Percent", "value": 100, "periodSeconds": 15},
                        ],
                    },
                    "scaleDown": {
                        "selectPolicy": "Disabled",
                        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
                    },
                },
            },
            "status": {"desiredReplicas": 0, "currentMetrics": None},
        },
        None,
    ),
    (
        "scheduling.k8s.io/v1",
        "priorityclasses",
        {"value": 7, "globalDefault": False},
        {"value": 7, "preemptionPolicy": "PreemptLowerPriority"},
        1,
    ),
    (
        "resource.k8s.io/v1",
        "resourceclaims",
        {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}},
        {
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "r",
                            "exactly": {
                                "deviceClassName": "c",
                                "allocationMode": "ExactCount",
                                "count": 1,
                            },
                        }
                    ]
                }
            },
            "status": {},
        },
        None,
    ),
    (
        "resource.k8s.io/v1",
        "resourceclaimtemplates",
        {
            "spec": {
                "spec": {
                    "devices": {
                        "requests": [
                            {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "All"}},
                            {"name": "s", "firstAvailable": [{"name": "f", "deviceClassName": "c"}]},
                        ]
                    }
                }
            }
        },
        {
            "spec": {
                "metadata": {},
                "spec": {
                    "devices": {
                        "requests": [
                            {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "All"}},
                            {
                                "name": "s",
                                "firstAvailable": [
                                    {
                                        "name": "f",
                                        "deviceClassName": "c",
                                        "allocationMode": "ExactCount",
                                        "count": 1,
                                    }
                                ],
                            },
                        ]
                    }
                },
            }
        },
        None,
    ),
    (
        "resource.k8s.io/v1",
        "resourceslices",
        {
            "spec": {
                "driver": "d.io",
                "pool": {"name": "p", "resourceSliceCount": 1},
                "nodeName": "n",
                "devices": [{"name": "x"}],
            }
        },
        {
            "spec": {
                "driver": "d.io",
                "pool": {"name": "p", "generation": 0, "resourceSliceCount": 1},
                "nodeName": "n",
                "devices": [{"name": "x"}],
            }
        },
        1,
    ),
    ("resource.k8s.io/v1", "deviceclasses", {"spec": {}}, {"spec": {}}, 1),
    (
        "admissionregistration.k8s.io/v1",
        "mutatingwebhookconfigurations",
        {
            "webhooks": [
                {
                    "name": "w.e.io",
                    "clientConfig": {"service": {"namespace": "n", "name": "s"}},
                    "rules": [
                        {
                            "operations": ["CREATE"],
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "resources": ["pods"],
                        }
                    ],
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
            ]
        },
        {
            "webhooks": [
                {
                    "name": "w.e.io",
                    "clientConfig": {"service": {"namespace": "n", "name": "s", "port": 443}},
                    "rules": [
                        {
                            "operations": ["CREATE"],
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "resources": ["pods"],
                            "scope": "*",
                        }
                    ],
                    "failurePolicy": "Fail",
                    "matchPolicy": "Equivalent",
                    "namespaceSelector": {},
                    "objectSelector": {},
                    "sideEffects": "None",
                    "timeoutSeconds": 10,
                    "admissionReviewVersions": ["v1"],
                    "reinvocationPolicy": "Never",
                }
            ]
        },
        1,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "validatingadmissionpolicies",
        {"spec": {"matchConstraints": {}, "validations": [{"expression": "true"}]}},
        {
            "spec": {
                "matchConstraints": {
                    "matchPolicy": "Equivalent",
                    "namespaceSelector": {},
                    "objectSelector": {},
                },
                "validations": [{"expression": "true"}],
                "failurePolicy": "Fail",
            },
            "status": {},
        },
        1,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "validatingadmissionpolicybindings",
        {"spec": {"policyName": "p"}},
        {"spec": {"policyName": "p"}},
        1,
    ),
]
