"""The rules of the roles that every cluster begins with, one line each (kubernetes v1.36
plugin/pkg/auth/authorizer/rbac/bootstrappolicy: policy.go, controller_policy.go, namespace_policy.go).

A line is ``verbs | groups | resources | names``, or ``verbs | url | paths``; ``-`` is the core group, and READ, WRITE
and ``events`` stand for what upstream abbreviates the same way. `bootstrappolicy` makes objects of it. Of our own is
``swarmlet:shared-informers``: a real controller manager's controllers read through one client of its own, the fleet's
read as themselves.
"""

from __future__ import annotations

CLUSTER_ROLES = """
cluster-admin
  * | * | *
  * | url | *
system:discovery
  get | url | /api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/
system:public-info-viewer
  get | url | /healthz /livez /readyz /version /version/
system:monitoring
  get | url | /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*
system:service-account-issuer-discovery
  get | url | /.well-known/openid-configuration /openid/v1/jwks
system:basic-user
  create | authorization.k8s.io | selfsubjectaccessreviews selfsubjectrulesreviews
  create | authentication.k8s.io | selfsubjectreviews
system:aggregate-to-admin
  create | authorization.k8s.io | localsubjectaccessreviews
  READ WRITE | rbac.authorization.k8s.io | roles rolebindings
system:aggregate-to-edit
  READ | - | pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy
  impersonate | - | serviceaccounts
  WRITE | - | pods pods/attach pods/exec pods/portforward pods/proxy
  create | - | pods/eviction
  WRITE | - | configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets \
serviceaccounts services services/proxy
  create | - | serviceaccounts/token
  WRITE | apps | daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale \
statefulsets statefulsets/scale
  WRITE | autoscaling | horizontalpodautoscalers
  WRITE | batch | cronjobs jobs
  WRITE | extensions | daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies \
replicasets replicasets/scale replicationcontrollers/scale
  WRITE | policy | poddisruptionbudgets
  WRITE | networking.k8s.io | ingresses networkpolicies
  READ WRITE | coordination.k8s.io | leases
  WRITE | resource.k8s.io | resourceclaims resourceclaimtemplates
system:aggregate-to-view
  READ | - | configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers \
replicationcontrollers/scale serviceaccounts services services/status
  READ | - | bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status \
resourcequotas resourcequotas/status
  READ | - | namespaces
  READ | discovery.k8s.io | endpointslices
  READ | apps | controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status \
replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status
  READ | autoscaling | horizontalpodautoscalers horizontalpodautoscalers/status
  READ | batch | cronjobs cronjobs/status jobs jobs/status
  READ | extensions | daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses \
ingresses/status networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale
  READ | policy | poddisruptionbudgets poddisruptionbudgets/status
  READ | networking.k8s.io | ingresses ingresses/status networkpolicies
  READ | resource.k8s.io | resourceclaims resourceclaims/status resourceclaimtemplates
system:heapster
  READ | - | events namespaces nodes pods
  READ | extensions | deployments
system:node
  create | authentication.k8s.io | tokenreviews
  create | authorization.k8s.io | localsubjectaccessreviews subjectaccessreviews
  READ | - | services
  create READ | - | nodes
  update patch | - | nodes/status
  update patch | - | nodes
  create update patch | - | events
  READ | - | pods
  create delete | - | pods
  update patch | - | pods/status
  create | - | pods/eviction
  READ | - | configmaps secrets
  get | - | persistentvolumeclaims persistentvolumes
  get | - | endpoints
  create READ | certificates.k8s.io | certificatesigningrequests
  get create update patch delete | coordination.k8s.io | leases
  get | storage.k8s.io | volumeattachments
  create | - | serviceaccounts/token
  get update patch | - | persistentvolumeclaims/status
  READ | storage.k8s.io | csidrivers
  get create update patch delete | storage.k8s.io | csinodes
  READ | node.k8s.io | runtimeclasses
  get | resource.k8s.io | resourceclaims
  READ create update patch delete deletecollection | resource.k8s.io | resourceslices
system:node-problem-detector
  get | - | nodes
  patch | - | nodes/status
  events
system:kubelet-api-admin
  READ | - | nodes
  proxy | - | nodes
  * | - | nodes/configz nodes/healthz nodes/log nodes/metrics nodes/pods nodes/proxy nodes/stats
system:node-bootstrapper
  create READ | certificates.k8s.io | certificatesigningrequests
system:auth-delegator
  create | authentication.k8s.io | tokenreviews
  create | authorization.k8s.io | subjectaccessreviews
system:kube-aggregator
  READ | - | endpoints services
system:kube-controller-manager
  events
  create | coordination.k8s.io | leases
  get update | coordination.k8s.io | leases | kube-controller-manager
  create | - | secrets serviceaccounts
  delete | - | secrets
  get | - | configmaps namespaces secrets serviceaccounts
  update | - | secrets serviceaccounts
  create | authentication.k8s.io | tokenreviews
  create | authorization.k8s.io | subjectaccessreviews
  list watch | * | *
  create | - | serviceaccounts/token
system:kube-dns
  list watch | - | endpoints services
system:persistent-volume-provisioner
  READ create delete | - | persistentvolumes
  READ update | - | persistentvolumeclaims
  READ | storage.k8s.io | storageclasses
  watch | - | events
  events
system:certificates.k8s.io:certificatesigningrequests:nodeclient
  create | certificates.k8s.io | certificatesigningrequests/nodeclient
system:certificates.k8s.io:certificatesigningrequests:selfnodeclient
  create | certificates.k8s.io | certificatesigningrequests/selfnodeclient
system:certificates.k8s.io:legacy-unknown-approver
  approve | certificates.k8s.io | signers | kubernetes.io/legacy-unknown
system:certificates.k8s.io:kubelet-serving-approver
  approve | certificates.k8s.io | signers | kubernetes.io/kubelet-serving
system:certificates.k8s.io:kube-apiserver-client-approver
  approve | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client
system:certificates.k8s.io:kube-apiserver-client-kubelet-approver
  approve | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client-kubelet
system:volume-scheduler
  READ update patch | - | persistentvolumes
  READ | storage.k8s.io | storageclasses
  READ update patch | - | persistentvolumeclaims
system:node-proxier
  list watch | - | endpoints services
  READ | - | nodes
  events
  list watch | discovery.k8s.io | endpointslices
  list watch | networking.k8s.io | servicecidrs
system:kube-scheduler
  events
  create | coordination.k8s.io | leases
  get update | coordination.k8s.io | leases | kube-scheduler
  READ | - | nodes
  READ delete | - | pods
  create | - | bindings pods/binding
  patch update | - | pods/status
  READ | - | replicationcontrollers services
  READ | apps extensions | replicasets
  READ | apps | statefulsets
  READ | policy | poddisruptionbudgets
  READ | - | persistentvolumeclaims persistentvolumes
  create | authentication.k8s.io | tokenreviews
  create | authorization.k8s.io | subjectaccessreviews
  READ | storage.k8s.io | csinodes
  READ | - | namespaces
  READ | storage.k8s.io | csidrivers
  READ | storage.k8s.io | csistoragecapacities
  READ | storage.k8s.io | volumeattachments
  READ | resource.k8s.io | deviceclasses resourceclaims resourceslices
  update patch | resource.k8s.io | resourceclaims resourceclaims/status
swarmlet:shared-informers
  list watch | - | configmaps namespaces serviceaccounts
"""

# Names without the prefix; each is bound to the account of that name in kube-system.
CONTROLLER_ROLES = """
attachdetach-controller
  list watch | - | persistentvolumeclaims persistentvolumes
  READ | - | nodes
  patch update | - | nodes/status
  list watch | - | pods
  events
  READ create delete | storage.k8s.io | volumeattachments
  READ | storage.k8s.io | csidrivers
  READ | storage.k8s.io | csinodes
clusterrole-aggregation-controller
  escalate READ update patch | rbac.authorization.k8s.io | clusterroles
cronjob-controller
  READ update | batch | cronjobs
  READ create update delete patch | batch | jobs
  update | batch | cronjobs/status
  update | batch | cronjobs/finalizers
  list watch delete | - | pods
  events
daemon-set-controller
  READ | apps extensions | daemonsets
  update | apps extensions | daemonsets/status
  update | apps extensions | daemonsets/finalizers
  list watch | - | nodes
  list watch create delete patch | - | pods
  create | - | pods/binding
  READ create delete update patch | apps | controllerrevisions
  events
deployment-controller
  READ update | apps extensions | deployments
  update | apps extensions | deployments/status
  update | apps extensions | deployments/finalizers
  READ create update patch delete | apps extensions | replicasets
  READ update | - | pods
  events
disruption-controller
  READ | apps extensions | deployments
  READ | apps extensions | replicasets
  READ | - | replicationcontrollers
  READ | policy | poddisruptionbudgets
  READ | apps | statefulsets
  update | policy | poddisruptionbudgets/status
  patch update | - | pods/status
  get | * | */scale
  events
endpoint-controller
  READ | - | pods services
  READ create update delete | - | endpoints
  create | - | endpoints/restricted
  events
endpointslice-controller
  READ | - | nodes pods services
  update | - | services/finalizers
  READ create update delete | discovery.k8s.io | endpointslices
  events
endpointslicemirroring-controller
  READ | - | endpoints services
  update | - | services/finalizers
  update | - | endpoints/finalizers
  READ create update delete | discovery.k8s.io | endpointslices
  events
expand-controller
  READ update patch | - | persistentvolumes
  update patch | - | persistentvolumeclaims/status
  READ | - | persistentvolumeclaims
  events
  get | - | services
ephemeral-volume-controller
  READ | - | pods
  update | - | pods/finalizers
  READ create | - | persistentvolumeclaims
  events
resource-claim-controller
  READ | - | pods
  update | - | pods/finalizers
  READ create delete | resource.k8s.io | resourceclaims
  update patch | resource.k8s.io | resourceclaims resourceclaims/status
  update patch | - | pods/status
  events
device-taint-eviction-controller
  READ delete | - | pods
  update patch | - | pods/status
  READ | resource.k8s.io | resourceclaims
  READ | resource.k8s.io | resourceslices
  READ | resource.k8s.io | deviceclasses
  READ | resource.k8s.io | devicetaintrules
  events
generic-garbage-collector
  READ patch update delete | * | *
  events
horizontal-pod-autoscaler
  READ | autoscaling | horizontalpodautoscalers
  update | autoscaling | horizontalpodautoscalers/status
  get update | * | */scale
  list watch | - | pods
  list watch | metrics.k8s.io | pods
  READ | custom.metrics.k8s.io | *
  READ | external.metrics.k8s.io | *
  events
job-controller
  READ update patch | batch | jobs
  update | batch | jobs/status
  update | batch | jobs/finalizers
  list watch create delete patch | - | pods
  events
namespace-controller
  READ delete | - | namespaces
  update | - | namespaces/finalize namespaces/status
  READ delete deletecollection | * | *
node-controller
  READ update delete patch | - | nodes
  patch update | - | nodes/status
  patch update | - | pods/status
  READ delete | - | pods
  events
persistent-volume-binder
  READ update create delete | - | persistentvolumes
  update | - | persistentvolumes/status
  READ update | - | persistentvolumeclaims
  update | - | persistentvolumeclaims/status
  READ create delete | - | pods
  READ | storage.k8s.io | storageclasses
  list watch | - | nodes
  events
  watch | - | events
  get | - | services
pod-garbage-collector
  list watch delete | - | pods
  READ | - | nodes
  patch | - | pods/status
replicaset-controller
  READ update | apps extensions | replicasets
  update | apps extensions | replicasets/status
  update | apps extensions | replicasets/finalizers
  list watch patch create delete | - | pods
  events
replication-controller
  READ update | - | replicationcontrollers
  update | - | replicationcontrollers/status
  update | - | replicationcontrollers/finalizers
  list watch patch create delete | - | pods
  events
resourcequota-controller
  list watch | * | *
  update | - | resourcequotas/status
  events
route-controller
  list watch | - | nodes
  patch | - | nodes/status
  events
service-account-controller
  create | - | serviceaccounts
  events
service-controller
  READ | - | services
  patch update | - | services/status
  list watch | - | nodes
  events
service-cidrs-controller
  READ patch update | networking.k8s.io | servicecidrs
  patch update | networking.k8s.io | servicecidrs/finalizers
  patch update | networking.k8s.io | servicecidrs/status
  READ | networking.k8s.io | ipaddresses
  events
statefulset-controller
  list watch | - | pods
  READ | apps | statefulsets
  update | apps | statefulsets/status
  update | apps | statefulsets/finalizers
  get create delete update patch | - | pods
  READ create delete update patch | apps | controllerrevisions
  READ create | - | persistentvolumeclaims
  update delete | - | persistentvolumeclaims
  update | - | pods/finalizers
  events
ttl-controller
  update patch list watch | - | nodes
  events
certificate-controller
  READ delete | certificates.k8s.io | certificatesigningrequests
  update | certificates.k8s.io | certificatesigningrequests/approval certificatesigningrequests/status
  approve | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client-kubelet
  sign | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client \
kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown
  create | authorization.k8s.io | subjectaccessreviews
  events
pvc-protection-controller
  READ update | - | persistentvolumeclaims
  READ | - | pods
  events
pv-protection-controller
  READ update | - | persistentvolumes
  events
volumeattributesclass-protection-controller
  READ | - | persistentvolumeclaims
  READ | - | persistentvolumes
  READ update | storage.k8s.io | volumeattributesclasses
  events
ttl-after-finished-controller
  READ delete | batch | jobs
  events
root-ca-cert-publisher
  create update | - | configmaps
  events
validatingadmissionpolicy-status-controller
  READ | admissionregistration.k8s.io | validatingadmissionpolicies
  get patch update | admissionregistration.k8s.io | validatingadmissionpolicies/status
  events
legacy-service-account-token-cleaner
  get | - | configmaps | kube-apiserver-legacy-service-account-token-tracking
  patch delete | - | secrets
selinux-warning-controller
  events
  READ | - | persistentvolumes
  READ | - | persistentvolumeclaims
  READ | - | pods
  READ | storage.k8s.io | csidrivers
"""

NAMESPACE_ROLES = """
kube-system/extension-apiserver-authentication-reader
  READ | - | configmaps | extension-apiserver-authentication
kube-system/system:controller:bootstrap-signer
  READ | - | secrets
kube-system/system:controller:cloud-provider
  create READ | - | configmaps
kube-system/system:controller:token-cleaner
  READ delete | - | secrets
  events
kube-system/system::leader-locking-kube-controller-manager
  watch | - | configmaps
  get update | - | configmaps | kube-controller-manager
kube-system/system::leader-locking-kube-scheduler
  watch | - | configmaps
  get update | - | configmaps | kube-scheduler
kube-public/system:controller:bootstrap-signer
  READ | - | configmaps
  update | - | configmaps | cluster-info
  events
"""
