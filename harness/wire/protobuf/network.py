"""Message types of service networking beside Service itself; `schema.py` says how to read a line.

Field numbers as in k8s.io/api/{discovery,networking}/v1 of v1.36.
"""

KINDS = {
    "discovery.k8s.io/v1": frozenset({"EndpointSlice"}),
    "networking.k8s.io/v1": frozenset({"ServiceCIDR"}),
}

MESSAGES = """
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
