package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Update says how members are brought to a new template.
//
// +kubebuilder:validation:XValidation:rule="!has(self.method) || self.method != 'InPlace' || !has(self.maxSurge) || self.maxSurge == 0 || self.maxSurge == '0%'",message="method InPlace keeps every body, and so allows no maxSurge: remove it, or set it to 0",fieldPath=".maxSurge"
type Update struct {
	// type is Manual (show drift, touch nothing) or RollingUpdate. Absent means
	// Manual.
	// +optional
	// +kubebuilder:validation:Enum=Manual;RollingUpdate
	Type *UpdateType `json:"type,omitempty"`

	// method is Replace: a member is updated by a new body; or InPlace: the new
	// template is applied to the body that is there, whose identity and data
	// stay. It is out of service meanwhile all the same. Absent means Replace.
	// +optional
	// +kubebuilder:validation:Enum=Replace;InPlace
	Method *UpdateMethod `json:"method,omitempty"`

	// maxUnavailable is how many members may be out of service through the
	// rollout: a number from 0 to 100000, or a percentage of replicas from 0% to
	// 100%, rounded down. Absent means 1. If both this and maxSurge come out 0
	// and neither was written as 0, it is 1; if both are written as 0, nothing
	// is rolled and the pool says that it is paused.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 100000 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be a number from 0 to 100000, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is how many slots above replicas may be made while there is drift, or
	// a member that is to be recycled, that can be rolled: a number from 0 to 100000, or a percentage of
	// replicas from 0% to 100%, rounded up. Absent means 0.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 100000 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be a number from 0 to 100000, or a percentage from 0% to 100%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// minAvailable is the number of members that a claim could get (free, and
	// neither busy nor of unknown occupancy) below which the rollout does not go: a
	// number from 0 to 100000, or a percentage of replicas from 0% to 100%, rounded
	// up. A warm pool in steady use is always short of a member that is being made:
	// with this floor one member may roll at a time all the same. Absent means no
	// such floor.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 100000 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be a number from 0 to 100000, or a percentage from 0% to 100%"
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`

	// maxInFlight is how many members may roll at once, 1 or more, whatever
	// the budget allows. Absent means the larger of maxUnavailable and
	// maxSurge, at least 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxInFlight *int32 `json:"maxInFlight,omitempty"`

	// paused stops everything new for drift: no disruption, no surge, and
	// members that only drain go back into service. Scaling, healing and
	// releases go on. Absent means false.
	// +optional
	Paused *bool `json:"paused,omitempty"`

	// partition is how many members stay off the target, the last in order.
	// Absent means 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Partition *int32 `json:"partition,omitempty"`

	// order is the order in which members are taken: LowestIndex, or
	// OldestFirst by the birth of their bodies. A lower
	// pawl.dev/disruption-cost comes before it. Absent means LowestIndex.
	// +optional
	// +kubebuilder:validation:Enum=LowestIndex;OldestFirst
	Order *UpdateOrder `json:"order,omitempty"`

	// minReadySeconds is how long a body has to be ready until its member is
	// available. Absent means 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// progressDeadline is how long, in addition to minReadySeconds, no body may come
	// into service for the first time while one is on its way, until the pool is
	// stalled. It counts from the decision or from when the member went down, and
	// not while a claim, work, a hold, a window or a pause keeps it. More than 0.
	// Absent means 10m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) > duration('0s')",message="progressDeadline must be a duration of more than 0s, such as 90s or 1h30m"
	ProgressDeadline *metav1.Duration `json:"progressDeadline,omitempty"`

	// failureLimit is in how many slots bodies of the target may fail before the
	// rollout halts, each slot counted once: a number from 1 to 100000, or a
	// percentage of replicas from 1% to 100%, rounded up; no more than there are
	// slots. While none of its bodies has recovered, it is how many bodies may fail.
	// A body that has served for ten times what recovery takes (minReadySeconds, or
	// 60 s if that is more) counts no more. A revision on which the pool stands is
	// never halted. Absent means 3.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 100000 : self.matches('^(100|[1-9][0-9]?)%$')",message="must be a number from 1 to 100000, or a percentage from 1% to 100%"
	FailureLimit *intstr.IntOrString `json:"failureLimit,omitempty"`

	// onFailure says what happens at failureLimit. Halt: nothing more is taken,
	// and what failed goes back to the current revision. Rollback: the current
	// revision is the target again as well, until the template changes. Absent
	// means Halt.
	// +optional
	// +kubebuilder:validation:Enum=Halt;Rollback
	OnFailure *OnFailure `json:"onFailure,omitempty"`

	// windows are the times in which a disruption for drift may start; one that
	// has begun is finished outside. Absent or empty: always.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Windows []Window `json:"windows,omitempty"`

	// onClaimed says what happens when a stale member is claimed. Wait: it
	// waits. Notify: and the Claim's condition UpdateRequested becomes True.
	// Absent means Wait.
	// +optional
	// +kubebuilder:validation:Enum=Wait;Notify
	OnClaimed *OnClaimed `json:"onClaimed,omitempty"`

	// unknown says what becomes of members of which nobody can tell what they
	// run. Adopt: they are not rolled for today's target, and are stale from
	// the next one on. Replace: they are stale now. Absent means Adopt.
	// +optional
	// +kubebuilder:validation:Enum=Adopt;Replace
	Unknown *UnknownPolicy `json:"unknown,omitempty"`
}

// UpdateType is how far a pool acts on drift.
type UpdateType string

// The update types.
const (
	UpdateManual        UpdateType = "Manual"
	UpdateRollingUpdate UpdateType = "RollingUpdate"
)

// UpdateMethod is how a member is brought to another revision.
type UpdateMethod string

// The update methods.
const (
	// MethodReplace makes a new body.
	MethodReplace UpdateMethod = "Replace"
	// MethodInPlace applies the new template to the body that is there.
	MethodInPlace UpdateMethod = "InPlace"
)

// OnFailure says what happens when too many bodies of the target failed.
type OnFailure string

// What happens when too many bodies of the target failed.
const (
	FailureHalt     OnFailure = "Halt"
	FailureRollback OnFailure = "Rollback"
)

// OnClaimed says what happens when a stale member is claimed.
type OnClaimed string

// What happens when a stale member is claimed.
const (
	ClaimedWait   OnClaimed = "Wait"
	ClaimedNotify OnClaimed = "Notify"
)

// Window is a time that comes again and again.
type Window struct {
	// schedule is when it opens: five fields as cron has them (minute, hour, day
	// of the month, the month, day of the week), or @daily and the like. One that
	// cannot be read never opens, and the pool says so. An hour that the clocks
	// repeat opens it twice; if they skip one that it names, it opens as they do.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Schedule string `json:"schedule,omitempty"`
	// duration is how long it stays open, more than 0.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) > duration('0s')",message="duration must be a duration of more than 0s, such as 90s or 1h30m"
	Duration *metav1.Duration `json:"duration,omitempty"`
	// timeZone is a name of the IANA database, such as "Europe/Berlin". Absent
	// means UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone *string `json:"timeZone,omitempty"`
}

// UpdateOrder is the order in which members are taken.
type UpdateOrder string

// The orders.
const (
	OrderLowestIndex UpdateOrder = "LowestIndex"
	OrderOldestFirst UpdateOrder = "OldestFirst"
)

// UnknownPolicy says what becomes of members of unknown revision.
type UnknownPolicy string

// The policies for members of unknown revision.
const (
	UnknownAdopt   UnknownPolicy = "Adopt"
	UnknownReplace UnknownPolicy = "Replace"
)
