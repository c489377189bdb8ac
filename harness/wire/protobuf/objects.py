"""Message types of the served kinds but pods, and of what they share; `schema.py` says how to read a line.

Field numbers as in k8s.io/api/{core,authentication,coordination,events,node,policy,storage}/v1 and
am/apis/meta/v1 of v1.36.
"""

MESSAGES = """
DeleteOptions: 1 gracePeriodSeconds *int; 2 preconditions *Preconditions; 3 orphanDependents *bool;
    4 propagationPolicy *string; 5 dryRun []string; 6 ignoreStoreReadErrorWithClusterBreakingPotential *bool
Preconditions: 1 uid *string; 2 resourceVersion *string
ObjectMeta: 1 name string; 2 generateName string; 3 namespace string; 4 selfLink string; 5 uid string;
    6 resourceVersion string; 7 generation int; 8 creationTimestamp ~Time; 9 deletionTimestamp *Time;
    10 deletionGracePeriodSeconds *int; 11 labels {string}; 12 annotations {string};
    13 ownerReferences []OwnerReference; 14 finalizers []string; 17 managedFields []ManagedFieldsEntry
OwnerReference: 1 kind !string; 3 name !string; 4 uid !string; 5 apiVersion !string; 6 controller *bool;
    7 blockOwnerDeletion *bool
ManagedFieldsEntry: 1 manager string; 2 operation string; 3 apiVersion string; 4 time *Time;
    6 fieldsType string; 7 fieldsV1 *FieldsV1; 8 subresource string
ListMeta: 1 selfLink string; 2 resourceVersion string; 3 continue string; 4 remainingItemCount *int;
    5 shardInfo *ShardInfo
ShardInfo: 1 selector !string
PartialObjectMetadata: 1 metadata ObjectMeta
Status: 1 metadata ListMeta; 2 status string; 3 message string; 4 reason string; 5 details *StatusDetails;
    6 code int
StatusDetails: 1 name string; 2 group string; 3 kind string; 4 causes []StatusCause; 5 retryAfterSeconds int;
    6 uid string
StatusCause: 1 reason string; 2 message string; 3 field string
Condition: 1 type !string; 2 status !string; 3 observedGeneration int; 4 lastTransitionTime Time;
    5 reason !string; 6 message !string
ConfigMap: 1 metadata ObjectMeta; 2 data {string}; 3 binaryData {bytes}; 4 immutable *bool
Secret: 1 metadata ObjectMeta; 2 data {bytes}; 3 type string; 4 stringData {string}; 5 immutable *bool
Namespace: 1 metadata ObjectMeta; 2 spec NamespaceSpec; 3 status NamespaceStatus
NamespaceSpec: 1 finalizers []string
NamespaceStatus: 1 phase string; 2 conditions []NamespaceCondition
NamespaceCondition: 1 type !string; 2 status !string; 4 lastTransitionTime Time; 5 reason string;
    6 message string
ServiceAccount: 1 metadata ObjectMeta; 2 secrets []ObjectReference; 3 imagePullSecrets []LocalObjectReference;
    4 automountServiceAccountToken *bool
ObjectReference: 1 kind string; 2 namespace string; 3 name string; 4 uid string; 5 apiVersion string;
    6 resourceVersion string; 7 fieldPath string
LocalObjectReference: 1 name string
Service: 1 metadata ObjectMeta; 2 spec ServiceSpec; 3 status ServiceStatus
ServiceSpec: 1 ports []ServicePort; 2 selector {string}; 3 clusterIP string; 4 type string;
    5 externalIPs []string; 7 sessionAffinity string; 8 loadBalancerIP string;
    9 loadBalancerSourceRanges []string; 10 externalName string; 11 externalTrafficPolicy string;
    12 healthCheckNodePort int; 13 publishNotReadyAddresses bool;
    14 sessionAffinityConfig *SessionAffinityConfig; 17 ipFamilyPolicy *string; 18 clusterIPs []string;
    19 ipFamilies []string; 20 allocateLoadBalancerNodePorts *bool; 21 loadBalancerClass *string;
    22 internalTrafficPolicy *string; 23 trafficDistribution *string
ServicePort: 1 name string; 2 protocol string; 3 port !int; 4 targetPort IntOrString; 5 nodePort int;
    6 appProtocol *string
SessionAffinityConfig: 1 clientIP *ClientIPConfig
ClientIPConfig: 1 timeoutSeconds *int
ServiceStatus: 1 loadBalancer LoadBalancerStatus; 2 conditions []Condition
LoadBalancerStatus: 1 ingress []LoadBalancerIngress
LoadBalancerIngress: 1 ip string; 2 hostname string; 3 ipMode *string; 4 ports []PortStatus
PortStatus: 1 port !int; 2 protocol !string; 3 error *string
Node: 1 metadata ObjectMeta; 2 spec NodeSpec; 3 status NodeStatus
NodeSpec: 1 podCIDR string; 2 externalID string; 3 providerID string; 4 unschedulable bool; 5 taints []Taint;
    6 configSource *NodeConfigSource; 7 podCIDRs []string
Taint: 1 key !string; 2 value string; 3 effect !string; 4 timeAdded *Time
NodeConfigSource: 2 configMap *ConfigMapNodeConfigSource
ConfigMapNodeConfigSource: 1 namespace !string; 2 name !string; 3 uid string; 4 resourceVersion string;
    5 kubeletConfigKey !string
NodeStatus: 1 capacity {Quantity}; 2 allocatable {Quantity}; 3 phase string; 4 conditions []NodeCondition;
    5 addresses []NodeAddress; 6 daemonEndpoints NodeDaemonEndpoints; 7 nodeInfo NodeSystemInfo;
    8 images []ContainerImage; 9 volumesInUse []string; 10 volumesAttached []AttachedVolume;
    11 config *NodeConfigStatus; 12 runtimeHandlers []NodeRuntimeHandler; 13 features *NodeFeatures;
    14 declaredFeatures []string
NodeCondition: 1 type !string; 2 status !string; 3 lastHeartbeatTime Time; 4 lastTransitionTime Time;
    5 reason string; 6 message string
NodeAddress: 1 type !string; 2 address !string
NodeDaemonEndpoints: 1 kubeletEndpoint DaemonEndpoint
DaemonEndpoint: 1 Port !int
NodeSystemInfo: 1 machineID !string; 2 systemUUID !string; 3 bootID !string; 4 kernelVersion !string;
    5 osImage !string; 6 containerRuntimeVersion !string; 7 kubeletVersion !string;
    8 kubeProxyVersion !string; 9 operatingSystem !string; 10 architecture !string; 11 swap *NodeSwapStatus
NodeSwapStatus: 1 capacity *int
ContainerImage: 1 names ![]string; 2 sizeBytes int
AttachedVolume: 1 name !string; 2 devicePath !string
NodeConfigStatus: 1 assigned *NodeConfigSource; 2 active *NodeConfigSource; 3 lastKnownGood *NodeConfigSource;
    4 error string
NodeRuntimeHandler: 1 name !string; 2 features *NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures: 1 recursiveReadOnlyMounts *bool; 2 userNamespaces *bool
NodeFeatures: 1 supplementalGroupsPolicy *bool
Event: 1 metadata ObjectMeta; 2 involvedObject ObjectReference; 3 reason string; 4 message string;
    5 source EventSource; 6 firstTimestamp Time; 7 lastTimestamp Time; 8 count int; 9 type string;
    10 eventTime MicroTime; 11 series *EventSeries; 12 action string; 13 related *ObjectReference;
    14 reportingComponent !string; 15 reportingInstance !string
EventsEvent: 1 metadata ObjectMeta; 2 eventTime MicroTime; 3 series *EventsEventSeries;
    4 reportingController string; 5 reportingInstance string; 6 action string; 7 reason string;
    8 regarding ObjectReference; 9 related *ObjectReference; 10 note string; 11 type string;
    12 deprecatedSource EventSource; 13 deprecatedFirstTimestamp Time; 14 deprecatedLastTimestamp Time;
    15 deprecatedCount int
EventsEventSeries: 1 count !int; 2 lastObservedTime MicroTime
EventSource: 1 component string; 2 host string
EventSeries: 1 count int; 2 lastObservedTime MicroTime
Lease: 1 metadata ObjectMeta; 2 spec LeaseSpec
LeaseSpec: 1 holderIdentity *string; 2 leaseDurationSeconds *int; 3 acquireTime *MicroTime;
    4 renewTime *MicroTime; 5 leaseTransitions *int; 6 strategy *string; 7 preferredHolder *string
Binding: 1 metadata ObjectMeta; 2 target ObjectReference
TokenRequest: 1 metadata ObjectMeta; 2 spec TokenRequestSpec; 3 status TokenRequestStatus
TokenRequestSpec: 1 audiences ![]string; 3 boundObjectRef !*BoundObjectReference; 4 expirationSeconds !*int
BoundObjectReference: 1 kind string; 2 apiVersion string; 3 name string; 4 uid string
TokenRequestStatus: 1 token !string; 2 expirationTimestamp Time
Eviction: 1 metadata ObjectMeta; 2 deleteOptions *DeleteOptions
CSINode: 1 metadata ObjectMeta; 2 spec CSINodeSpec
CSINodeSpec: 1 drivers ![]CSINodeDriver
CSINodeDriver: 1 name !string; 2 nodeID !string; 3 topologyKeys ![]string; 4 allocatable *VolumeNodeResources
VolumeNodeResources: 1 count *int
CSIDriver: 1 metadata ObjectMeta; 2 spec CSIDriverSpec
CSIDriverSpec: 1 attachRequired *bool; 2 podInfoOnMount *bool; 3 volumeLifecycleModes []string;
    4 storageCapacity *bool; 5 fsGroupPolicy *string; 6 tokenRequests []CSITokenRequest;
    7 requiresRepublish *bool; 8 seLinuxMount *bool; 9 nodeAllocatableUpdatePeriodSeconds *int;
    10 serviceAccountTokenInSecrets *bool; 11 preventPodSchedulingIfMissing *bool
CSITokenRequest: 1 audience !string; 2 expirationSeconds *int
RuntimeClass: 1 metadata ObjectMeta; 2 handler !string; 3 overhead *Overhead; 4 scheduling *Scheduling
Overhead: 1 podFixed {Quantity}
Scheduling: 1 nodeSelector {string}; 2 tolerations []Toleration
Toleration: 1 key string; 2 operator string; 3 value string; 4 effect string; 5 tolerationSeconds *int
"""
