"""Message types of admission that clients configure; `schema.py` says how to read a line.

Field numbers as in k8s.io/api/admissionregistration/v1 of v1.36.
"""

KINDS = {
    "admissionregistration.k8s.io/v1": frozenset(
        {
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        }
    ),
}

MESSAGES = """
MutatingAdmissionPolicy: 1 metadata ObjectMeta; 2 spec MutatingAdmissionPolicySpec
MutatingAdmissionPolicySpec: 1 paramKind *ParamKind; 2 matchConstraints *MatchResources;
    3 variables []Variable; 4 mutations []Mutation; 5 failurePolicy *string;
    6 matchConditions []MatchCondition; 7 reinvocationPolicy string
ParamKind: 1 apiVersion string; 2 kind string
MatchResources: 1 namespaceSelector *LabelSelector; 2 objectSelector *LabelSelector;
    3 resourceRules []NamedRuleWithOperations; 4 excludeResourceRules []NamedRuleWithOperations;
    7 matchPolicy *string
NamedRuleWithOperations: 1 resourceNames []string; 2 . RuleWithOperations
RuleWithOperations: 1 operations []string; 2 . Rule
Rule: 1 apiGroups []string; 2 apiVersions []string; 3 resources []string; 4 scope *string
Variable: 1 name !string; 2 expression !string
Mutation: 2 patchType !string; 3 applyConfiguration *ApplyConfiguration; 4 jsonPatch *JSONPatch
ApplyConfiguration: 1 expression string
JSONPatch: 1 expression string
MatchCondition: 1 name !string; 2 expression !string
MutatingAdmissionPolicyBinding: 1 metadata ObjectMeta; 2 spec MutatingAdmissionPolicyBindingSpec
MutatingAdmissionPolicyBindingSpec: 1 policyName string; 2 paramRef *ParamRef;
    3 matchResources *MatchResources
ParamRef: 1 name string; 2 namespace string; 3 selector *LabelSelector; 4 parameterNotFoundAction *string
MutatingWebhookConfiguration: 1 metadata ObjectMeta; 2 webhooks []MutatingWebhook
MutatingWebhook: 1 name !string; 2 clientConfig WebhookClientConfig; 3 rules []RuleWithOperations;
    4 failurePolicy *string; 5 namespaceSelector *LabelSelector; 6 sideEffects !*string;
    7 timeoutSeconds *int; 8 admissionReviewVersions ![]string; 9 matchPolicy *string;
    10 reinvocationPolicy *string; 11 objectSelector *LabelSelector; 12 matchConditions []MatchCondition
WebhookClientConfig: 1 service *ServiceReference; 2 caBundle bytes; 3 url *string
ServiceReference: 1 namespace !string; 2 name !string; 3 path *string; 4 port *int
ValidatingAdmissionPolicy: 1 metadata ObjectMeta; 2 spec ValidatingAdmissionPolicySpec;
    3 status ValidatingAdmissionPolicyStatus
ValidatingAdmissionPolicySpec: 1 paramKind *ParamKind; 2 matchConstraints *MatchResources;
    3 validations []Validation; 4 failurePolicy *string; 5 auditAnnotations []AuditAnnotation;
    6 matchConditions []MatchCondition; 7 variables []Variable
Validation: 1 expression !string; 2 message string; 3 reason *string; 4 messageExpression string
AuditAnnotation: 1 key !string; 2 valueExpression !string
ValidatingAdmissionPolicyStatus: 1 observedGeneration int; 2 typeChecking *TypeChecking;
    3 conditions []Condition
TypeChecking: 1 expressionWarnings []ExpressionWarning
ExpressionWarning: 2 fieldRef !string; 3 warning !string
ValidatingAdmissionPolicyBinding: 1 metadata ObjectMeta; 2 spec ValidatingAdmissionPolicyBindingSpec
ValidatingAdmissionPolicyBindingSpec: 1 policyName string; 2 paramRef *ParamRef;
    3 matchResources *MatchResources; 4 validationActions []string
ValidatingWebhookConfiguration: 1 metadata ObjectMeta; 2 webhooks []ValidatingWebhook
ValidatingWebhook: 1 name !string; 2 clientConfig WebhookClientConfig; 3 rules []RuleWithOperations;
    4 failurePolicy *string; 5 namespaceSelector *LabelSelector; 6 sideEffects !*string;
    7 timeoutSeconds *int; 8 admissionReviewVersions ![]string; 9 matchPolicy *string;
    10 objectSelector *LabelSelector; 11 matchConditions []MatchCondition
"""
