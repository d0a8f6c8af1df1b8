package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

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
type PoolSpec struct {
	// replicas is the number of members, 0 to 100000. Absent means 1.
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

// Template is what a body is made from. Exactly one of objects, process and
// sim is set. These three are part of the revision; how readiness is judged
// and how long a boot may take are not, and apply at once.
//
// +kubebuilder:validation:XValidation:rule="(has(self.objects) ? 1 : 0) + (has(self.process) ? 1 : 0) + (has(self.sim) ? 1 : 0) == 1",message="exactly one of objects, process and sim must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.ready) || has(self.objects)",message="ready needs objects; a process has its own readiness"
type Template struct {
	// objects are manifests of any kind, server-side applied. Strings may hold
	// ${…}: CEL expressions over member (name, index, incarnation, namespace),
	// pool (name, namespace) and sources (by name). A string that is one expression and nothing
	// else takes the type of its value.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:XPreserveUnknownFields
	Objects []runtime.RawExtension `json:"objects,omitempty"`

	// process is a process on the machine that pawld runs on. Only pawld
	// accepts it.
	// +optional
	Process *Process `json:"process,omitempty"`

	// sim is a scripted body that does nothing but boot, serve and stop, for
	// tests, demos and load. Accepted only where it is switched on.
	// +optional
	Sim *Sim `json:"sim,omitempty"`

	// ready are CEL expressions over objects, a list in the order of the
	// template as they stand in the cluster; a body is ready when all are
	// true. Absent: when every object is Current as kstatus defines it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=4096
	Ready []string `json:"ready,omitempty"`

	// bootTimeout is how long a body may take until it is ready, and how long
	// one that has served may be down, before it has failed. More than 0.
	// Absent means 10m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) > duration('0s')",message="bootTimeout must be a duration of more than 0s, such as 90s or 1h30m"
	BootTimeout *metav1.Duration `json:"bootTimeout,omitempty"`

	// liveFields are paths below template that are not part of the revision,
	// such as "process.files[0].content", "process.stop" or
	// "objects[0].metadata.labels": what they say now is applied to every member
	// at once, stale and waiting ones included, and never replaces anything. All
	// else stays as the member's own revision says. A process takes them for
	// files, readiness and stop.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	LiveFields []string `json:"liveFields,omitempty"`
}

// Process is a local process. Strings may hold ${…}: CEL expressions over
// member, pool, sources and ports (both by name).
//
// +kubebuilder:validation:XValidation:rule="!has(self.readiness) || !has(self.readiness.tcp) || (has(self.ports) && self.readiness.tcp.port in self.ports)",message="readiness.tcp.port must be one of ports",fieldPath=".readiness"
// +kubebuilder:validation:XValidation:rule="!has(self.readiness) || !has(self.readiness.http) || (has(self.ports) && self.readiness.http.port in self.ports)",message="readiness.http.port must be one of ports",fieldPath=".readiness"
type Process struct {
	// command is the program, by absolute path or found in PATH.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Command string `json:"command,omitempty"`
	// args are the program's arguments.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=65536
	Args []string `json:"args,omitempty"`
	// env is added to a minimal environment (PATH, HOME, TMPDIR, LANG). Keys
	// have no "=" and are not empty.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) > 0 && !k.contains('='))",message="names of environment variables must not be empty or contain '='"
	Env map[string]string `json:"env,omitempty"`
	// files are written into the body's own directory, which is the process's
	// working directory, before it starts.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=64
	Files []File `json:"files,omitempty"`
	// ports are allocated on the loopback interface, never to two bodies at
	// once, and stay with the slot. ${ports.NAME} is the number; the first one
	// makes the member's address.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=15
	// +kubebuilder:validation:items:Pattern=`^[a-z]([a-z0-9_]{0,14})$`
	Ports []string `json:"ports,omitempty"`
	// readiness says when the process is ready. Absent: as soon as it runs.
	// +optional
	Readiness *Readiness `json:"readiness,omitempty"`
	// stop says how the process is ended. Absent: SIGTERM, then SIGKILL after
	// ten seconds.
	// +optional
	Stop *Stop `json:"stop,omitempty"`
}

// File is a file in a process's working directory.
type File struct {
	// path is relative to the working directory and stays below it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '.' || p == '')",message="path must be relative and stay below the working directory"
	Path string `json:"path,omitempty"`
	// content is the file's text.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	Content *string `json:"content,omitempty"`
	// mode is the file's permission bits as an octal number of three digits.
	// Absent means "644".
	// +optional
	// +kubebuilder:validation:MaxLength=3
	// +kubebuilder:validation:Pattern=`^[0-7]{3}$`
	Mode *string `json:"mode,omitempty"`
}

// Readiness is a probe; exactly one of tcp, http, exec and output is set.
//
// +kubebuilder:validation:XValidation:rule="(has(self.tcp) ? 1 : 0) + (has(self.http) ? 1 : 0) + (has(self.exec) ? 1 : 0) + (has(self.output) ? 1 : 0) == 1",message="exactly one of tcp, http, exec and output must be set"
type Readiness struct {
	// tcp asks whether a connection to the port succeeds.
	// +optional
	TCP *TCPProbe `json:"tcp,omitempty"`
	// http asks whether a GET answers with a status of 200 to 399.
	// +optional
	HTTP *HTTPProbe `json:"http,omitempty"`
	// exec asks whether a command in the body's directory and environment exits with 0.
	// +optional
	Exec *ExecProbe `json:"exec,omitempty"`
	// output asks whether a line of its standard output or error matches. It stays ready
	// as long as it runs.
	// +optional
	Output *OutputProbe `json:"output,omitempty"`
	// period is the time between two probes, 10ms or more. Absent means 1s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('10ms')",message="period must be a duration of 10ms or more, such as 90s or 1h30m"
	Period *metav1.Duration `json:"period,omitempty"`
}

// TCPProbe connects to a port.
type TCPProbe struct {
	// port is the name of one of the process's ports.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	Port string `json:"port,omitempty"`
}

// HTTPProbe asks a port over HTTP.
type HTTPProbe struct {
	// port is the name of one of the process's ports.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	Port string `json:"port,omitempty"`
	// path begins with "/". Absent means "/".
	// +optional
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=2048
	Path *string `json:"path,omitempty"`
}

// ExecProbe runs a command.
type ExecProbe struct {
	// command is the program and its arguments.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Command []string `json:"command,omitempty"`
}

// OutputProbe waits for a line of output.
type OutputProbe struct {
	// match is a regular expression (RE2) that a line has to match somewhere.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Match string `json:"match,omitempty"`
}

// Stop says how a process is ended. Its whole process group is.
type Stop struct {
	// signal is sent first. Absent means TERM.
	// +optional
	// +kubebuilder:validation:Enum=TERM;INT;QUIT;HUP;USR1;USR2;KILL
	Signal *string `json:"signal,omitempty"`
	// grace is how long it may take to end before it is killed. Absent means
	// 10s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('0s')",message="grace must be a duration of 0s or more, such as 90s or 1h30m"
	Grace *metav1.Duration `json:"grace,omitempty"`
}

// Sim is a scripted body.
type Sim struct {
	// version has no meaning but that another version is another revision.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version *string `json:"version,omitempty"`
	// boot is the time from the birth of a body until it is ready. Absent
	// means 0s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('0s')",message="boot must be a duration of 0s or more, such as 90s or 1h30m"
	Boot *metav1.Duration `json:"boot,omitempty"`
	// stop is the time from being told to go until it is gone. Absent means 0s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('0s')",message="stop must be a duration of 0s or more, such as 90s or 1h30m"
	Stop *metav1.Duration `json:"stop,omitempty"`
	// drain is the time that the drain before the end takes. Absent means 0s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('0s')",message="drain must be a duration of 0s or more, such as 90s or 1h30m"
	Drain *metav1.Duration `json:"drain,omitempty"`
	// outcome is what becomes of the body. Ready: it serves. NeverReady: it
	// boots for ever. Crash: it serves for after, then ends. CreateError: it
	// cannot be created. Absent means Ready.
	// +optional
	// +kubebuilder:validation:Enum=Ready;NeverReady;Crash;CreateError
	Outcome *string `json:"outcome,omitempty"`
	// after is how long a body with outcome Crash serves. Absent means 0s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) >= duration('0s')",message="after must be a duration of 0s or more, such as 90s or 1h30m"
	After *metav1.Duration `json:"after,omitempty"`
}

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

	// maxSurge is how many slots above replicas may be made while there is
	// drift that can be rolled: a number from 0 to 100000, or a percentage of
	// replicas from 0% to 100%, rounded up. Absent means 0.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 100000 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be a number from 0 to 100000, or a percentage from 0% to 100%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// minAvailable is the number of free members below which the rollout does
	// not go: a number from 0 to 100000, or a percentage of replicas from 0% to
	// 100%, rounded up. Absent means no such floor.
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

	// progressDeadline is how long no new member may come into service, while
	// one should, until the pool is called stalled. More than 0. Absent means
	// 10m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) > duration('0s')",message="progressDeadline must be a duration of more than 0s, such as 90s or 1h30m"
	ProgressDeadline *metav1.Duration `json:"progressDeadline,omitempty"`

	// failureLimit is how many bodies of the target may fail before the
	// rollout halts: a number from 1 to 100000, or a percentage of replicas from
	// 1% to 100%, rounded up. Absent means 3.
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
	// of the month, month, day of the week), or @daily and the like. One that
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
	// After Pawl has started, every claim has one whole heartbeat again. Absent:
	// nobody has to.
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
	// failed is the number of members in phase Failed.
	// +optional
	Failed int32 `json:"failed"`
	// quarantined is the number of members that failed and are kept for inspection.
	// +optional
	Quarantined int32 `json:"quarantined"`
	// waitingClaims is the number of claims that wait for a member.
	// +optional
	WaitingClaims int32 `json:"waitingClaims"`
	// currentRevision is the last revision on which the whole pool once stood.
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
