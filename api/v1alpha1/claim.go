package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Claim asks for a member of a pool and holds it. Its name is the idempotency
// key: asking again under the same name is told about the same member.
// Deleting it releases the member.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=pawl
// +kubebuilder:selectablefield:JSONPath=`.spec.pool`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.pool`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Member",type=string,JSONPath=`.status.member`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.address`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expiresAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Holder",type=string,JSONPath=`.spec.holder`,priority=1
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision`,priority=1
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.phase) || !(oldSelf.status.phase in ['Released', 'Expired', 'Failed']) || (has(self.status) && has(self.status.phase) && self.status.phase == oldSelf.status.phase)",message="a claim that has ended does not come back",fieldPath=".status.phase"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.member) || (has(self.status) && has(self.status.member) && self.status.member == oldSelf.status.member)",message="status.member never changes",fieldPath=".status.member"
type Claim struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for.
	// +required
	Spec ClaimSpec `json:"spec,omitzero"`
	// status is what was given.
	// +optional
	Status ClaimStatus `json:"status,omitempty,omitzero"`
}

// ClaimSpec is what is asked for. It is immutable but for ttl and renewTime.
//
// +kubebuilder:validation:XValidation:rule="self.pool == oldSelf.pool",message="pool is immutable; make another claim"
// +kubebuilder:validation:XValidation:rule="has(self.holder) == has(oldSelf.holder) && (!has(self.holder) || self.holder == oldSelf.holder)",message="holder is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.wait) == has(oldSelf.wait) && (!has(self.wait) || self.wait == oldSelf.wait)",message="wait is immutable; make another claim"
type ClaimSpec struct {
	// pool is the name of the Pool, in the claim's namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=52
	Pool string `json:"pool,omitempty"`
	// ttl is how long the member is held, counted from boundAt. More than 0.
	// Absent: as long as the pool's defaultTTL and maxTTL say.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) > duration('0s')",message="ttl must be a duration of more than 0s, such as 90s or 1h30m"
	TTL *metav1.Duration `json:"ttl,omitempty"`
	// wait is how long the claim waits for a member, counted from its creation;
	// then it has failed. 0s: it fails unless a member is free. Absent: without
	// limit.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('0s')",message="wait must be a duration of 0s or more, such as 90s or 1h30m"
	Wait *metav1.Duration `json:"wait,omitempty"`
	// renewTime is the holder's last heartbeat. See the pool's
	// claims.heartbeat.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$`
	RenewTime *metav1.MicroTime `json:"renewTime,omitempty"`
	// holder is the user that made the claim, stamped by the API server.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Holder string `json:"holder,omitempty"`
}

// ClaimPhase is where a claim is in its life.
type ClaimPhase string

// The phases of a claim.
const (
	// ClaimPending: it waits for a member.
	ClaimPending ClaimPhase = "Pending"
	// ClaimBound: it has one.
	ClaimBound ClaimPhase = "Bound"
	// ClaimReleased: it was deleted and its member let go.
	ClaimReleased ClaimPhase = "Released"
	// ClaimExpired: its time ran out.
	ClaimExpired ClaimPhase = "Expired"
	// ClaimFailed: its member's body is gone, or its pool is, or it has waited
	// for as long as it may.
	ClaimFailed ClaimPhase = "Failed"
)

// ClaimStatus is what was given.
type ClaimStatus struct {
	// observedGeneration is the generation last processed.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is where the claim is in its life.
	// +optional
	// +kubebuilder:validation:Enum=Pending;Bound;Released;Expired;Failed
	Phase ClaimPhase `json:"phase,omitempty"`
	// member is the name of the Member that was given.
	// +optional
	Member string `json:"member,omitempty"`
	// address is where its body serves.
	// +optional
	Address string `json:"address,omitempty"`
	// revision is what its body runs.
	// +optional
	Revision string `json:"revision,omitempty"`
	// boundAt is when it was given.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$`
	BoundAt *metav1.MicroTime `json:"boundAt,omitempty"`
	// ttl is the spec.ttl that expiresAt was counted from. Absent: there was
	// none.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	TTL *metav1.Duration `json:"ttl,omitempty"`
	// expiresAt is when the claim's time to live ends. Absent: never.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$`
	ExpiresAt *metav1.MicroTime `json:"expiresAt,omitempty"`
	// conditions are Bound and UpdateRequested.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClaimList is a list of Claims.
//
// +kubebuilder:object:root=true
type ClaimList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Claim `json:"items"`
}
