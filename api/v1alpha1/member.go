package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Member is one durable slot of a pool: a stable index and name. Its body
// comes and goes; the slot stays, so that nothing about a half-done
// replacement is kept only in memory. Members are written by Pawl; a person
// cordons, holds and deletes them.
//
// No ownerReference leads to or from its body or its Pool: a cascading delete
// must not reach a claimed body.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=pawl
// +kubebuilder:selectablefield:JSONPath=`.spec.pool`
// +kubebuilder:selectablefield:JSONPath=`.spec.claim.uid`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.pool`
// +kubebuilder:printcolumn:name="Index",type=integer,JSONPath=`.spec.index`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Updated",type=string,JSONPath=`.status.conditions[?(@.type=="Updated")].reason`
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.spec.claim.name`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.address`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Wants",type=string,JSONPath=`.spec.revision`,priority=1
// +kubebuilder:printcolumn:name="Incarnation",type=integer,JSONPath=`.status.incarnation`,priority=1
// +kubebuilder:printcolumn:name="Disruption",type=string,JSONPath=`.spec.disruption.reason`,priority=1
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.spec.disruption) && has(oldSelf.status) && has(oldSelf.status.phase) && oldSelf.status.phase == 'Terminating') || (has(self.spec.disruption) && self.spec.disruption.incarnation >= oldSelf.spec.disruption.incarnation)",message="a disruption is not withdrawn once the body is terminating",fieldPath=".spec.disruption"
// +kubebuilder:validation:XValidation:rule="!(has(self.spec.claim) && has(self.status) && has(self.status.phase) && self.status.phase in ['Terminating', 'Updating'])",message="a claimed member never terminates, nor is it updated",fieldPath=".status.phase"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.claim) || oldSelf.hasValue()",optionalOldSelf=true,message="a member is created unclaimed",fieldPath=".spec.claim"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.claim) || has(oldSelf.spec.claim) || (has(oldSelf.status) && has(oldSelf.status.phase) && oldSelf.status.phase == 'Available' && (!has(oldSelf.spec.disruption) || (has(oldSelf.status.incarnation) && oldSelf.spec.disruption.incarnation < oldSelf.status.incarnation)))",message="only an Available, undisturbed member can be claimed",fieldPath=".spec.claim"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.claim) || has(oldSelf.spec.claim) || !has(self.spec.cordoned) || !self.spec.cordoned",message="a cordoned member cannot be claimed",fieldPath=".spec.claim"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.status) && has(oldSelf.status.phase) && oldSelf.status.phase == 'Terminating') || (has(self.status) && has(self.status.phase) && (self.status.phase == 'Terminating' || (has(self.status.incarnation) && self.status.incarnation > (has(oldSelf.status.incarnation) ? oldSelf.status.incarnation : 0))))",message="Terminating ends only in a new incarnation",fieldPath=".status.phase"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.spec.disruption) && has(oldSelf.status) && has(oldSelf.status.phase) && oldSelf.status.phase == 'Updating' && has(oldSelf.status.incarnation) && oldSelf.spec.disruption.incarnation == oldSelf.status.incarnation) || (has(self.spec.disruption) && self.spec.disruption.incarnation >= oldSelf.spec.disruption.incarnation)",message="an update is not withdrawn once it has begun",fieldPath=".spec.disruption"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.spec.disruption) && has(oldSelf.status) && has(oldSelf.status.phase) && oldSelf.status.phase == 'Updating' && has(oldSelf.status.incarnation) && oldSelf.spec.disruption.incarnation == oldSelf.status.incarnation) || (has(self.status) && has(self.status.phase) && (self.status.phase in ['Updating', 'Terminating'] || (has(self.status.incarnation) && self.status.incarnation > oldSelf.status.incarnation)))",message="Updating ends only in a new incarnation, or with the body",fieldPath=".status.phase"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.disruption) || self.spec.disruption.incarnation <= (has(self.status) && has(self.status.incarnation) ? self.status.incarnation : 0)",message="a disruption is of an incarnation that there is, or was"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.status) && has(oldSelf.status.incarnation)) || (has(self.status) && has(self.status.incarnation) && self.status.incarnation >= oldSelf.status.incarnation)",message="status.incarnation never goes back",fieldPath=".status.incarnation"
type Member struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the slot is to be.
	// +required
	Spec MemberSpec `json:"spec,omitzero"`
	// status is what the slot is.
	// +optional
	Status MemberStatus `json:"status,omitempty,omitzero"`
}

// MemberSpec is what a slot is to be.
//
// +kubebuilder:validation:XValidation:rule="self.pool == oldSelf.pool && self.index == oldSelf.index",message="pool and index are immutable"
// +kubebuilder:validation:XValidation:rule="!(has(self.claim) && has(self.disruption))",message="a member never has both a claim and a disruption",fieldPath=".disruption"
// +kubebuilder:validation:XValidation:rule="!(has(self.claim) && has(oldSelf.claim)) || (self.claim.name == oldSelf.claim.name && self.claim.uid == oldSelf.claim.uid)",message="a claim is never swapped for another",fieldPath=".claim"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.claim) && has(self.disruption)) || self.disruption.reason != 'Drift'",message="a claimed member is not disrupted for drift, not even by the write that drops its claim",fieldPath=".disruption"
type MemberSpec struct {
	// pool is the name of the Pool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=52
	Pool string `json:"pool,omitempty"`
	// index is the slot's place, 0 or more, unique in its pool.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Index int32 `json:"index"`
	// revision is what this incarnation is, or, under a disruption and before
	// the first body, is to be.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision,omitempty"`
	// cordoned keeps the member from being claimed. Absent means false.
	// +optional
	Cordoned *bool `json:"cordoned,omitempty"`
	// forClaim is true when the slot was made because a claim waited. Its body is
	// then kept while it boots, and for as long again once it is free, although no
	// claim waits any more. Absent means false.
	// +optional
	ForClaim *bool `json:"forClaim,omitempty"`
	// claim is who holds the member. At most one of claim and disruption is set.
	// +optional
	Claim *MemberClaim `json:"claim,omitempty"`
	// disruption is the recorded decision to replace, update or remove the body.
	// +optional
	Disruption *Disruption `json:"disruption,omitempty"`
}

// MemberClaim is who holds a member.
type MemberClaim struct {
	// name is the name of the Claim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// uid is the UID of the Claim.
	// +required
	UID types.UID `json:"uid,omitempty"`
	// holder is the user that made the Claim.
	// +optional
	Holder string `json:"holder,omitempty"`
	// boundAt is when the member was given to the Claim.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$`
	BoundAt *metav1.MicroTime `json:"boundAt,omitempty"`
	// expiresAt is when the claim ends by itself. Absent: never.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$`
	ExpiresAt *metav1.MicroTime `json:"expiresAt,omitempty"`
}

// Disruption is the recorded decision to replace, update or remove the body
// of one incarnation. One of an earlier incarnation is spent.
type Disruption struct {
	// reason is why.
	// +required
	// +kubebuilder:validation:Enum=Drift;ScaleDown;Failed;ClaimEnded;Requested
	Reason DisruptionReason `json:"reason,omitempty"`
	// action is what becomes of the body. Replace: a new one takes its place.
	// Update: the template is applied to it. Remove: the slot goes with it.
	// +required
	// +kubebuilder:validation:Enum=Replace;Update;Remove
	Action DisruptionAction `json:"action,omitempty"`
	// incarnation is the one that is disrupted.
	// +required
	// +kubebuilder:validation:Minimum=0
	Incarnation int64 `json:"incarnation"`
	// since is when it was decided.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$`
	Since *metav1.MicroTime `json:"since,omitempty"`
	// rolling is true when a rollout took the member out of service and it has
	// not been back since. A slot keeps it through failed replacements.
	// +optional
	Rolling *bool `json:"rolling,omitempty"`
}

// DisruptionReason is why a member is disrupted.
type DisruptionReason string

// The reasons.
const (
	DisruptionDrift      DisruptionReason = "Drift"
	DisruptionScaleDown  DisruptionReason = "ScaleDown"
	DisruptionFailed     DisruptionReason = "Failed"
	DisruptionClaimEnded DisruptionReason = "ClaimEnded"
	DisruptionRequested  DisruptionReason = "Requested"
)

// DisruptionAction is what becomes of the body.
type DisruptionAction string

// The actions.
const (
	ActionReplace DisruptionAction = "Replace"
	ActionUpdate  DisruptionAction = "Update"
	ActionRemove  DisruptionAction = "Remove"
)

// Phase is where a slot is in its life.
type Phase string

// The phases.
const (
	// PhasePending: no body yet.
	PhasePending Phase = "Pending"
	// PhaseProvisioning: the body boots.
	PhaseProvisioning Phase = "Provisioning"
	// PhasePreparing: the body is ready, but not for long enough yet.
	PhasePreparing Phase = "Preparing"
	// PhaseAvailable: in service, unclaimed.
	PhaseAvailable Phase = "Available"
	// PhaseClaimed: somebody holds it.
	PhaseClaimed Phase = "Claimed"
	// PhaseUnready: it has served, and is down.
	PhaseUnready Phase = "Unready"
	// PhaseUpdating: another template is applied to the body.
	PhaseUpdating Phase = "Updating"
	// PhaseDraining: it is to go, and may still be taken back.
	PhaseDraining Phase = "Draining"
	// PhaseTerminating: it goes; nothing brings it back.
	PhaseTerminating Phase = "Terminating"
	// PhaseFailed: the body did not come up, crashed, is gone, or stayed down.
	PhaseFailed Phase = "Failed"
)

// MemberStatus is what a slot is.
type MemberStatus struct {
	// phase is where the slot is in its life.
	// +optional
	// +kubebuilder:validation:Enum=Pending;Provisioning;Preparing;Available;Claimed;Unready;Updating;Draining;Terminating;Failed
	Phase Phase `json:"phase,omitempty"`
	// revision is what really runs. Empty: no body, or nobody can tell.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision,omitempty"`
	// incarnation counts the bodies of the slot; the first is 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Incarnation int64 `json:"incarnation,omitempty"`
	// bodyUID identifies the body. Empty: there is none.
	// +optional
	BodyUID string `json:"bodyUID,omitempty"`
	// address is where the body serves, if it has an address.
	// +optional
	Address string `json:"address,omitempty"`
	// bornAt is when the body was created.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$`
	BornAt *metav1.MicroTime `json:"bornAt,omitempty"`
	// phaseSince is when the slot entered its phase.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$`
	PhaseSince *metav1.MicroTime `json:"phaseSince,omitempty"`
	// servedSince is when this incarnation last came into service. Absent: it
	// has never been.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$`
	ServedSince *metav1.MicroTime `json:"servedSince,omitempty"`
	// downSince is when the slot was last in service, or was made if it never was.
	// Absent: it is in service.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$`
	DownSince *metav1.MicroTime `json:"downSince,omitempty"`
	// unsettledSince is when the body first left service before it had recovered,
	// that is, before it had been in service for minReadySeconds, or 60 s if that
	// is more. Absent: it never did, or has recovered since.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$`
	UnsettledSince *metav1.MicroTime `json:"unsettledSince,omitempty"`
	// recovered is the revision of the slot's last body that recovered and has left
	// service since; recoveredAt is when it recovered.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Recovered string `json:"recovered,omitempty"`
	// recoveredAt is when that body recovered: see recovered.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$`
	RecoveredAt *metav1.MicroTime `json:"recoveredAt,omitempty"`
	// nextAttemptAt is when the next birth of the same revision is tried.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$`
	NextAttemptAt *metav1.MicroTime `json:"nextAttemptAt,omitempty"`
	// attempts counts the births in a row whose body did not recover: refused,
	// failed, vanished or without room. Another revision starts at 0.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// noRoom is true when the last birth found no room.
	// +optional
	NoRoom bool `json:"noRoom,omitempty"`
	// exited is true when the body has ended by itself and does not come back.
	// +optional
	Exited bool `json:"exited,omitempty"`
	// failedEarly is true when, in phase Failed, the body had served for less than
	// ten times what recovery takes, so that it counts against its revision.
	// +optional
	FailedEarly bool `json:"failedEarly,omitempty"`
	// bootTook is how long the slot's last body that came into service took
	// from its birth until then; stopTook how long the last one that went took
	// from the decision until it was gone.
	// +optional
	// +kubebuilder:validation:Type=string
	BootTook *metav1.Duration `json:"bootTook,omitempty"`
	// stopTook is how long it took to stop: see bootTook.
	// +optional
	// +kubebuilder:validation:Type=string
	StopTook *metav1.Duration `json:"stopTook,omitempty"`
	// message is what the body last said about itself: why it is not ready,
	// its exit code, the error of its creation.
	// +optional
	Message string `json:"message,omitempty"`
	// conditions are Ready; Updated, whose reason is the blocker while False.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MemberList is a list of Members.
//
// +kubebuilder:object:root=true
type MemberList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Member `json:"items"`
}
