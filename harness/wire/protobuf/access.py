"""Message types of access: roles, reviews, certificates, flow control; `schema.py` says how to read a line.

Field numbers as in k8s.io/api/{rbac,authorization,authentication,certificates,flowcontrol}/v1 of v1.36.
"""

KINDS = {
    "authentication.k8s.io/v1": frozenset({"SelfSubjectReview", "TokenReview"}),
    "authorization.k8s.io/v1": frozenset(
        {
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        }
    ),
    "certificates.k8s.io/v1": frozenset({"CertificateSigningRequest"}),
    "flowcontrol.apiserver.k8s.io/v1": frozenset({"FlowSchema", "PriorityLevelConfiguration"}),
    "rbac.authorization.k8s.io/v1": frozenset({"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}),
}

MESSAGES = """
Role: 1 metadata ObjectMeta; 2 rules ![]PolicyRule
ClusterRole: 1 metadata ObjectMeta; 2 rules ![]PolicyRule; 3 aggregationRule *AggregationRule
PolicyRule: 1 verbs ![]string; 2 apiGroups []string; 3 resources []string; 4 resourceNames []string;
    5 nonResourceURLs []string
AggregationRule: 1 clusterRoleSelectors []LabelSelector
RoleBinding: 1 metadata ObjectMeta; 2 subjects []RbacSubject; 3 roleRef RoleRef
ClusterRoleBinding: 1 metadata ObjectMeta; 2 subjects []RbacSubject; 3 roleRef RoleRef
RbacSubject: 1 kind !string; 2 apiGroup string; 3 name !string; 4 namespace string
RoleRef: 1 apiGroup !string; 2 kind !string; 3 name !string
SubjectAccessReview: 1 metadata ObjectMeta; 2 spec SubjectAccessReviewSpec; 3 status SubjectAccessReviewStatus
LocalSubjectAccessReview: 1 metadata ObjectMeta; 2 spec SubjectAccessReviewSpec;
    3 status SubjectAccessReviewStatus
SelfSubjectAccessReview: 1 metadata ObjectMeta; 2 spec SelfSubjectAccessReviewSpec;
    3 status SubjectAccessReviewStatus
SubjectAccessReviewSpec: 1 resourceAttributes *ResourceAttributes;
    2 nonResourceAttributes *NonResourceAttributes; 3 user string; 4 groups []string; 5 extra {Strings}; 6 uid string
SelfSubjectAccessReviewSpec: 1 resourceAttributes *ResourceAttributes;
    2 nonResourceAttributes *NonResourceAttributes
ResourceAttributes: 1 namespace string; 2 verb string; 3 group string; 4 version string; 5 resource string;
    6 subresource string; 7 name string; 8 fieldSelector *FieldSelectorAttributes;
    9 labelSelector *LabelSelectorAttributes
FieldSelectorAttributes: 1 rawSelector string; 2 requirements []FieldSelectorRequirement
FieldSelectorRequirement: 1 key !string; 2 operator !string; 3 values []string
LabelSelectorAttributes: 1 rawSelector string; 2 requirements []LabelSelectorRequirement
NonResourceAttributes: 1 path string; 2 verb string
SubjectAccessReviewStatus: 1 allowed !bool; 2 reason string; 3 evaluationError string; 4 denied bool
SelfSubjectRulesReview: 1 metadata ObjectMeta; 2 spec SelfSubjectRulesReviewSpec;
    3 status SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec: 1 namespace string
SubjectRulesReviewStatus: 1 resourceRules ![]ResourceRule; 2 nonResourceRules ![]NonResourceRule;
    3 incomplete !bool; 4 evaluationError string
ResourceRule: 1 verbs ![]string; 2 apiGroups []string; 3 resources []string; 4 resourceNames []string
NonResourceRule: 1 verbs ![]string; 2 nonResourceURLs []string
TokenReview: 1 metadata ObjectMeta; 2 spec TokenReviewSpec; 3 status TokenReviewStatus
TokenReviewSpec: 1 token string; 2 audiences []string
TokenReviewStatus: 1 authenticated bool; 2 user UserInfo; 3 error string; 4 audiences []string
UserInfo: 1 username string; 2 uid string; 3 groups []string; 4 extra {Strings}
SelfSubjectReview: 1 metadata ObjectMeta; 2 status SelfSubjectReviewStatus
SelfSubjectReviewStatus: 1 userInfo UserInfo
CertificateSigningRequest: 1 metadata ObjectMeta; 2 spec CertificateSigningRequestSpec;
    3 status CertificateSigningRequestStatus
CertificateSigningRequestSpec: 1 request !bytes; 2 username string; 3 uid string; 4 groups []string;
    5 usages []string; 6 extra {Strings}; 7 signerName !string; 8 expirationSeconds *int
CertificateSigningRequestStatus: 1 conditions []CertificateSigningRequestCondition; 2 certificate bytes
CertificateSigningRequestCondition: 1 type !string; 2 reason string; 3 message string;
    4 lastUpdateTime Time; 5 lastTransitionTime Time; 6 status !string
FlowSchema: 1 metadata ObjectMeta; 2 spec FlowSchemaSpec; 3 status FlowSchemaStatus
FlowSchemaSpec: 1 priorityLevelConfiguration PriorityLevelConfigurationReference; 2 matchingPrecedence !int;
    3 distinguisherMethod *FlowDistinguisherMethod; 4 rules []PolicyRulesWithSubjects
PriorityLevelConfigurationReference: 1 name !string
FlowDistinguisherMethod: 1 type !string
PolicyRulesWithSubjects: 1 subjects ![]FlowSubject; 2 resourceRules []ResourcePolicyRule;
    3 nonResourceRules []NonResourcePolicyRule
FlowSubject: 1 kind !string; 2 user *NamedSubject; 3 group *NamedSubject;
    4 serviceAccount *ServiceAccountSubject
NamedSubject: 1 name !string
ServiceAccountSubject: 1 namespace !string; 2 name !string
ResourcePolicyRule: 1 verbs ![]string; 2 apiGroups ![]string; 3 resources ![]string; 4 clusterScope bool;
    5 namespaces ![]string
NonResourcePolicyRule: 1 verbs ![]string; 6 nonResourceURLs ![]string
FlowSchemaStatus: 1 conditions []FlowCondition
FlowCondition: 1 type string; 2 status string; 3 lastTransitionTime Time; 4 reason string; 5 message string
PriorityLevelConfiguration: 1 metadata ObjectMeta; 2 spec PriorityLevelConfigurationSpec;
    3 status PriorityLevelConfigurationStatus
PriorityLevelConfigurationSpec: 1 type !string; 2 limited *LimitedPriorityLevel; 3 exempt *ExemptPriorityLevel
LimitedPriorityLevel: 1 nominalConcurrencyShares !*int; 2 limitResponse LimitResponse; 3 lendablePercent *int;
    4 borrowingLimitPercent *int
ExemptPriorityLevel: 1 nominalConcurrencyShares *int; 2 lendablePercent *int
LimitResponse: 1 type !string; 2 queuing *QueuingConfiguration
QueuingConfiguration: 1 queues !int; 2 handSize !int; 3 queueLengthLimit !int
PriorityLevelConfigurationStatus: 1 conditions []FlowCondition
"""
