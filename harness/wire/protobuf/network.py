"""Message types of service networking beside Service itself; `schema.py` says how to read a line.

Field numbers as in k8s.io/api/{core,discovery,networking}/v1 of v1.36.
"""

KINDS = {
    "discovery.k8s.io/v1": frozenset({"EndpointSlice"}),
    "networking.k8s.io/v1": frozenset(
        {"IPAddress", "Ingress", "IngressClass", "NetworkPolicy", "ServiceCIDR"}
    ),
    "v1": frozenset({"Endpoints"}),
}

MESSAGES = """
Endpoints: 1 metadata ObjectMeta; 2 subsets []EndpointSubset
EndpointSubset: 1 addresses []EndpointAddress; 2 notReadyAddresses []EndpointAddress; 3 ports []EndpointsPort
EndpointAddress: 1 ip !string; 2 targetRef *ObjectReference; 3 hostname string; 4 nodeName *string
EndpointsPort: 1 name string; 2 port !int; 3 protocol string; 4 appProtocol *string
NetworkPolicy: 1 metadata ObjectMeta; 2 spec NetworkPolicySpec
NetworkPolicySpec: 1 podSelector LabelSelector; 2 ingress []NetworkPolicyIngressRule;
    3 egress []NetworkPolicyEgressRule; 4 policyTypes []string
NetworkPolicyIngressRule: 1 ports []NetworkPolicyPort; 2 from []NetworkPolicyPeer
NetworkPolicyPort: 1 protocol *string; 2 port *IntOrString; 3 endPort *int
NetworkPolicyPeer: 1 podSelector *LabelSelector; 2 namespaceSelector *LabelSelector; 3 ipBlock *IPBlock
IPBlock: 1 cidr !string; 2 except []string
NetworkPolicyEgressRule: 1 ports []NetworkPolicyPort; 2 to []NetworkPolicyPeer
Ingress: 1 metadata ObjectMeta; 2 spec IngressSpec; 3 status IngressStatus
IngressSpec: 1 defaultBackend *IngressBackend; 2 tls []IngressTLS; 3 rules []IngressRule;
    4 ingressClassName *string
IngressBackend: 3 resource *TypedLocalObjectReference; 4 service *IngressServiceBackend
IngressServiceBackend: 1 name !string; 2 port ServiceBackendPort
ServiceBackendPort: 1 name string; 2 number int
IngressTLS: 1 hosts []string; 2 secretName string
IngressRule: 1 host string; 2 . IngressRuleValue
IngressRuleValue: 1 http *HTTPIngressRuleValue
HTTPIngressRuleValue: 1 paths ![]HTTPIngressPath
HTTPIngressPath: 1 path string; 2 backend IngressBackend; 3 pathType !*string
IngressStatus: 1 loadBalancer IngressLoadBalancerStatus
IngressLoadBalancerStatus: 1 ingress []IngressLoadBalancerIngress
IngressLoadBalancerIngress: 1 ip string; 2 hostname string; 4 ports []IngressPortStatus
IngressPortStatus: 1 port !int; 2 protocol !string; 3 error *string
IngressClass: 1 metadata ObjectMeta; 2 spec IngressClassSpec
IngressClassSpec: 1 controller string; 2 parameters *IngressClassParametersReference
IngressClassParametersReference: 1 apiGroup *string; 2 kind !string; 3 name !string; 4 scope !*string;
    5 namespace *string
IPAddress: 1 metadata ObjectMeta; 2 spec IPAddressSpec
IPAddressSpec: 1 parentRef *ParentReference
ParentReference: 1 group string; 2 resource string; 3 namespace string; 4 name string
EndpointSlice: 1 metadata ObjectMeta; 2 endpoints ![]Endpoint; 3 ports ![]EndpointPort; 4 addressType !string
Endpoint: 1 addresses ![]string; 2 conditions EndpointConditions; 3 hostname *string; 4 targetRef *ObjectReference;
    5 deprecatedTopology {string}; 6 nodeName *string; 7 zone *string; 8 hints *EndpointHints
EndpointConditions: 1 ready *bool; 2 serving *bool; 3 terminating *bool
EndpointHints: 1 forZones []ForZone; 2 forNodes []ForNode
ForZone: 1 name !string
ForNode: 1 name !string
EndpointPort: 1 name *string; 2 protocol *string; 3 port *int; 4 appProtocol *string
ServiceCIDR: 1 metadata ObjectMeta; 2 spec ServiceCIDRSpec; 3 status ServiceCIDRStatus
ServiceCIDRSpec: 1 cidrs []string
ServiceCIDRStatus: 1 conditions []Condition
"""
