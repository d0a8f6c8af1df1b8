package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Pool is a set of interchangeable members made from one template.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:categories=pawl
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Free",type=integer,JSONPath=`.status.free`
// +kubebuilder:printcolumn:name="Claimed",type=integer,JSONPath=`.status.claimed`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updated`
// +kubebuilder:printcolumn:name="Stale",type=integer,JSONPath=`.status.stale`
// +kubebuilder:printcolumn:name="Rolling",type=integer,JSONPath=`.status.rolling`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[?(@.type=="Updated")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Unknown",type=integer,JSONPath=`.status.unknown`,priority=1
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`,priority=1
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.targetRevision`,priority=1
// +kubebuilder:printcolumn:name="Current",type=string,JSONPath=`.status.currentRevision`,priority=1
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.rollout.next`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="metadata.name must have at most 52 characters: members are named after it, with their index"
type Pool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the pool should be.
	// +required
	Spec PoolSpec `json:"spec,omitzero"`
	// status is what the pool is.
	// +optional
	Status PoolStatus `json:"status,omitempty,omitzero"`
}

// PoolSpec is what a pool should be.
//
// +kubebuilder:validation:XValidation:rule="!has(self.sources) || size(self.sources) == 0 || has(self.serviceAccountName)",message="sources need serviceAccountName: the account with whose rights they are read",fieldPath=".serviceAccountName",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.template.objects) || has(self.serviceAccountName)",message="template.objects needs serviceAccountName: the account with whose rights the objects are applied",fieldPath=".serviceAccountName",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.replicas) || has(self.replicas)",messageExpression="'replicas is %d and must not be left out: write replicas: %d. To hand the field to an autoscaler, apply that number with a second field manager, then leave it out (docs/replicas.md)'.format([oldSelf.replicas, oldSelf.replicas])",message="replicas must not be left out once it is set: write the number that the pool has now",fieldPath=".replicas",reason=FieldValueRequired
type PoolSpec struct {
	// replicas is the number of members, 0 to 100000. A pool that is created
	// without it gets 1. From then on a write that leaves it out is refused,
	// because an omission would resize the pool; the error says which number to
	// write. A manifest may omit it if its field manager does not own it, or not
	// alone: see docs/replicas.md.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Replicas *int32 `json:"replicas,omitempty"`

	// sizing says which members count towards replicas. Total: all of them,
	// claimed ones included. Warm: those that nobody holds, claimed ones come on
	// top; claims that wait ask for one more each, and a claim that ends in a
	// pool that is full removes its member. Absent means Total.
	// +optional
	// +kubebuilder:validation:Enum=Total;Warm
	Sizing *Sizing `json:"sizing,omitempty"`

	// refillBelow has members that are missing made, up to replicas, only once
	// fewer than this are free, or once drift waits to be rolled: 1 to 100000.
	// More than replicas means the same as replicas. Absent: at once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	RefillBelow *int32 `json:"refillBelow,omitempty"`

	// maxMembers is the largest number of members there may be at once, of any
	// kind: claimed, surge and quarantined ones and those on their way out
	// included; 0 to 200000. Absent: no such limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=200000
	MaxMembers *int32 `json:"maxMembers,omitempty"`

	// serviceAccountName is the account, in the pool's namespace, with whose
	// rights the objects of bodies are read, applied and deleted, and sources
	// are read. It is impersonated, so that who may write Pools gains no right
	// thereby. Required with template.objects and with sources.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName *string `json:"serviceAccountName,omitempty"`

	// template is what a body is made from.
	// +required
	Template Template `json:"template,omitzero"`

	// sources are more that decides what a body is: content that the template
	// uses as ${sources.NAME…}, or that bodies read by themselves. It is part of
	// the revision, so that a change of it is drift.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Sources []Source `json:"sources,omitempty"`

	// update says how members are brought to a new template.
	// +optional
	Update *Update `json:"update,omitempty"`

	// claims says how members are claimed and released.
	// +optional
	Claims *Claims `json:"claims,omitempty"`

	// revisionHistoryLimit is the number of old revisions that are kept, 0 to
	// 1000, beyond those that members run. Absent means 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// Sizing says which members count towards a pool's size.
type Sizing string

// The sizings.
const (
	// SizingTotal counts every member, claimed ones included.
	SizingTotal Sizing = "Total"
	// SizingWarm counts the members that nobody holds.
	SizingWarm Sizing = "Warm"
)

// Source is something whose content decides what a body is. Exactly one of
// configMap, secret and object is set; each is in the pool's namespace and
// read with the rights of serviceAccountName.
//
// +kubebuilder:validation:XValidation:rule="(has(self.configMap) ? 1 : 0) + (has(self.secret) ? 1 : 0) + (has(self.object) ? 1 : 0) == 1",message="exactly one of configMap, secret and object must be set"
type Source struct {
	// name names it in the pool, and in ${sources.NAME…}.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([a-z0-9_]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
	// configMap is a ConfigMap: ${sources.NAME["KEY"]} is the text of a key, or
	// bytes, which are written as base64, where that is no text (UTF-8).
	// +optional
	ConfigMap *KeysSource `json:"configMap,omitempty"`
	// secret is a Secret: ${sources.NAME["KEY"]} is the text of a key, or bytes,
	// as for a configMap. Its content stands in no revision, log, event or
	// status: a keyed digest does.
	// +optional
	Secret *KeysSource `json:"secret,omitempty"`
	// object is any object: ${sources.NAME} is the value of a field.
	// +optional
	Object *ObjectSource `json:"object,omitempty"`
}

// KeysSource is some of the keys of a ConfigMap or Secret.
type KeysSource struct {
	// name is the name of the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// keys are the keys that count. A key that is missing is content that
	// cannot be read. Absent: all that there are, at most 256.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Keys []string `json:"keys,omitempty"`
}

// ObjectSource is a field of an object.
type ObjectSource struct {
	// apiVersion is the object's API version, such as "apps/v1".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`
	// kind is the object's kind.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// name is the object's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// fieldPath is the field whose value counts, such as "spec.image" or
	// "spec.containers[0].image". A field that is missing is content that cannot
	// be read.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	FieldPath string `json:"fieldPath,omitempty"`
}

// Claims says how members are claimed and released.
type Claims struct {
	// defaultTTL is the time to live of claims that name none. More than 0.
	// Absent: such claims do not expire.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) > duration('0s')",message="defaultTTL must be a duration of more than 0s, such as 90s or 1h30m"
	DefaultTTL *metav1.Duration `json:"defaultTTL,omitempty"`
	// maxTTL is the longest time to live that a claim gets, also one that
	// names none. More than 0. Absent: no limit.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) > duration('0s')",message="maxTTL must be a duration of more than 0s, such as 90s or 1h30m"
	MaxTTL *metav1.Duration `json:"maxTTL,omitempty"`
	// heartbeat is how often a holder has to renew its claim, by setting
	// spec.renewTime; one that did not for this long has expired. 1s or more.
	// After Pawl has started, or could not reach the API server for a while, every
	// claim has one whole heartbeat again. Absent: nobody has to.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('1s')",message="heartbeat must be a duration of 1s or more, such as 90s or 1h30m"
	Heartbeat *metav1.Duration `json:"heartbeat,omitempty"`
	// onRelease says what becomes of a member whose claim ends. Replace: it
	// gets a new body. Reuse: it is free again as it is. Absent means Replace.
	// +optional
	// +kubebuilder:validation:Enum=Replace;Reuse
	OnRelease *OnRelease `json:"onRelease,omitempty"`
	// prefer says which members a claim gets first. Updated: those on the
	// target. Absent means Updated.
	// +optional
	// +kubebuilder:validation:Enum=Updated
	Prefer *Prefer `json:"prefer,omitempty"`
}

// OnRelease says what becomes of a member whose claim ends.
type OnRelease string

// What becomes of a member whose claim ends.
const (
	ReleaseReplace OnRelease = "Replace"
	ReleaseReuse   OnRelease = "Reuse"
)

// Prefer says which members a claim gets first.
type Prefer string

// PreferUpdated prefers members on the target revision.
const PreferUpdated Prefer = "Updated"

// PoolStatus is what a pool is: counts only, never a row per member.
type PoolStatus struct {
	// observedGeneration is the generation processed at the start of the last pass.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// selector selects the pool's members, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
	// replicas is the number of members, surge and members on their way out included.
	// +optional
	Replicas int32 `json:"replicas"`
	// free is the number of members that can be claimed.
	// +optional
	Free int32 `json:"free"`
	// claimed is the number of claimed members.
	// +optional
	Claimed int32 `json:"claimed"`
	// provisioning is the number of members whose body is on its way.
	// +optional
	Provisioning int32 `json:"provisioning"`
	// updated is the number of bodies on the target revision.
	// +optional
	Updated int32 `json:"updated"`
	// stale is the number of bodies on another revision than the target.
	// +optional
	Stale int32 `json:"stale"`
	// unknown is the number of bodies whose revision cannot be told.
	// +optional
	Unknown int32 `json:"unknown"`
	// rolling is the number of members that a rollout took out of service and
	// that are not back.
	// +optional
	Rolling int32 `json:"rolling"`
	// surge is the number of members above replicas.
	// +optional
	Surge int32 `json:"surge"`
	// size is the value of replicas for which members were made. A larger one makes
	// more, whatever refillBelow says.
	// +optional
	Size int32 `json:"size,omitempty"`
	// failed is the number of members in phase Failed.
	// +optional
	Failed int32 `json:"failed"`
	// quarantined is the number of members that failed and are kept for inspection.
	// +optional
	Quarantined int32 `json:"quarantined"`
	// waitingClaims is the number of claims that wait for a member.
	// +optional
	WaitingClaims int32 `json:"waitingClaims"`
	// currentRevision is the last revision on which the pool stood or, before that,
	// the first one of which a body recovered. Absent: no body has recovered yet.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// targetRevision is what the template says now.
	// +optional
	TargetRevision string `json:"targetRevision,omitempty"`
	// rollout is how far the members are on their way to the target.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`
	// conditions are Ready, Reconciling, Stalled, Updated, Available and, where
	// there are sources, SourcesResolved.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RolloutStatus is how far the members are on their way to the target.
type RolloutStatus struct {
	// revision is the revision that members are brought to.
	// +optional
	Revision string `json:"revision,omitempty"`
	// since is when that became the target.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// updated is the number of bodies on it.
	// +optional
	Updated int32 `json:"updated"`
	// total is the number of members.
	// +optional
	Total int32 `json:"total"`
	// blockers says what keeps members from being updated, the most frequent
	// first.
	// +optional
	// +listType=map
	// +listMapKey=reason
	Blockers []Blocker `json:"blockers,omitempty"`
	// next is one sentence: what happens next, or who has to do what.
	// +optional
	Next string `json:"next,omitempty"`
}

// Blocker is one thing that keeps members from being updated.
type Blocker struct {
	// reason is the machine-readable cause.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// count is the number of members.
	// +optional
	Count int32 `json:"count"`
	// example is the name of one of them.
	// +optional
	Example string `json:"example,omitempty"`
	// since is when this reason appeared.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// PoolList is a list of Pools.
//
// +kubebuilder:object:root=true
type PoolList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Pool `json:"items"`
}
