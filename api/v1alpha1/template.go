package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

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
