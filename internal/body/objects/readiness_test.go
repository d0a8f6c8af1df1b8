package objects

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// object reads an object and puts on it what the API server would.
func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	if err := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), len(manifest)).Decode(&o); err != nil {
		t.Fatalf("%v in %s", err, manifest)
	}
	o.SetNamespace("shop")
	o.SetName("web-3")
	o.SetUID("u-" + o.GetUID())
	o.SetLabels(map[string]string{v1alpha1.LabelIncarnation: "7", v1alpha1.LabelRevision: "r1"})
	o.SetCreationTimestamp(metav1.Unix(1900000000, 0))
	return &o
}

const (
	podReady    = `{apiVersion: v1, kind: Pod, status: {phase: Running, podIP: 10.0.0.7, conditions: [{type: Ready, status: "True"}]}}`
	podDone     = `{apiVersion: v1, kind: Pod, status: {phase: Succeeded}}`
	podOut      = `{apiVersion: v1, kind: Pod, status: {phase: Failed, reason: Evicted, message: "The node was low on memory."}}`
	podBoots    = `{apiVersion: v1, kind: Pod, status: {phase: Pending, initContainerStatuses: [{name: pull, state: {waiting: {reason: PodInitializing}}}]}}`
	podLoops    = `{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [{name: main, state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}, lastState: {terminated: {exitCode: 2, reason: Error, message: no config}}}]}}`
	podHomeless = `{apiVersion: v1, kind: Pod, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes are available}]}}`
	jobFailed   = `{apiVersion: batch/v1, kind: Job, status: {failed: 1, conditions: [{type: FailureTarget, status: "True"}, {type: Failed, status: "True", reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}]}}`
	jobRuns     = `{apiVersion: batch/v1, kind: Job, status: {active: 1, startTime: "2030-01-01T00:00:00Z", conditions: [{type: Failed, status: "False"}]}}`
	noQuota     = `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, conditions: [{type: Available, status: "False"}, {type: ReplicaFailure, status: "True", reason: FailedCreate, message: "exceeded quota: pods"}]}}`
	noProgress  = `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: has timed out progressing}]}}`
	config      = `{apiVersion: v1, kind: ConfigMap}`
	goingAway   = `{apiVersion: v1, kind: ConfigMap, metadata: {deletionTimestamp: "2030-01-01T00:00:00Z"}}`
	broken      = `{apiVersion: example.com/v1, kind: Odd, metadata: {generation: 2}, status: {observedGeneration: "x"}}`
	inCluster   = `{apiVersion: v1, kind: Service, spec: {clusterIP: 10.1.0.1, ports: [{port: 443}, {port: 80}]}}`
	headless    = `{apiVersion: v1, kind: Service, spec: {clusterIP: None}}`
	addressed   = `{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {pawl.dev/address: "https://web-3.example.com"}}}`
)

func TestKind_judge(t *testing.T) {
	cases := map[string]struct {
		reason  string
		objects []string // "" is missing
		ready   []bool
		want    body.Observation
	}{
		"Absent":      {reason: "no object, no body", objects: []string{"", ""}, want: body.Observation{State: body.Absent}},
		"Ready":       {reason: "all objects are current", objects: []string{config, podReady}, want: body.Observation{State: body.Ready, Address: "10.0.0.7"}},
		"Booting":     {reason: "one is not", objects: []string{config, podBoots}, want: body.Observation{State: body.Booting, Message: "Pod shop/web-3: container pull: PodInitializing"}},
		"CrashLoop":   {reason: "how it ended before", objects: []string{podLoops}, want: body.Observation{State: body.Booting, Message: "Pod shop/web-3: container main: CrashLoopBackOff: back-off 10s; it exited with 2 before: Error: no config"}},
		"JobFailed":   {reason: "a Job that has failed is not tried again", objects: []string{config, jobFailed}, want: body.Observation{State: body.Exited, Message: "Job shop/web-3 has failed: BackoffLimitExceeded: Job has reached the specified backoff limit"}},
		"JobRuns":     {reason: "one that runs may succeed yet", objects: []string{jobRuns}, want: body.Observation{State: body.Ready}},
		"Quota":       {reason: "what an object itself says is wrong", objects: []string{noQuota}, want: body.Observation{State: body.Booting, Message: "Deployment shop/web-3: ReplicaFailure: FailedCreate: exceeded quota: pods"}},
		"Stuck":       {reason: "or gets no further", objects: []string{noProgress}, want: body.Observation{State: body.Booting, Message: "Deployment shop/web-3: Progressing: ProgressDeadlineExceeded: has timed out progressing"}},
		"Unmet":       {reason: "also where expressions judge", objects: []string{noQuota}, ready: []bool{false}, want: body.Observation{State: body.Booting, Message: "Deployment shop/web-3: ReplicaFailure: FailedCreate: exceeded quota: pods"}},
		"Unscheduled": {reason: "a Pod that finds no node", objects: []string{podHomeless}, want: body.Observation{State: body.Booting, Message: "Pod shop/web-3: PodScheduled: Unschedulable: 0/3 nodes are available"}},
		"Missing":     {reason: "a part is missing", objects: []string{"", config}, want: body.Observation{State: body.Down, Message: "ConfigMap shop/missing is missing"}},
		"Stopping":    {reason: "a part is on its way out, whatever else is missing", objects: []string{"", goingAway}, want: body.Observation{State: body.Stopping, Message: "ConfigMap shop/web-3 is terminating"}},
		"Succeeded":   {reason: "a Pod that has ended does not come back", objects: []string{podDone}, want: body.Observation{State: body.Exited, Message: "Pod shop/web-3 has succeeded"}},
		"Failed":      {reason: "and says why", objects: []string{config, podOut}, want: body.Observation{State: body.Exited, Message: "Pod shop/web-3 has failed: Evicted: The node was low on memory."}},
		"Both":        {reason: "a failed Pod is told before one that succeeded", objects: []string{podDone, podOut}, want: body.Observation{State: body.Exited, Message: "Pod shop/web-3 has failed: Evicted: The node was low on memory."}},
		"Odd":         {reason: "a status that makes no sense is not ready", objects: []string{broken}, want: body.Observation{State: body.Booting, Message: "Odd shop/web-3: its status makes no sense: "}},
		"Expression":  {reason: "expressions take kstatus's place", objects: []string{podBoots}, ready: []bool{true, true}, want: body.Observation{State: body.Ready}},
		"OneFalse":    {reason: "all of them must hold", objects: []string{config}, ready: []bool{true, false}, want: body.Observation{State: body.Booting, Message: "not yet: e1 (because)"}},
		"DoneReady":   {reason: "a Pod may be meant to succeed", objects: []string{podDone}, ready: []bool{true}, want: body.Observation{State: body.Ready}},
		"DoneUnmet":   {reason: "but then the rest has to hold", objects: []string{podDone}, ready: []bool{false}, want: body.Observation{State: body.Exited, Message: "Pod shop/web-3 has succeeded"}},
		"FailedMet":   {reason: "none is meant to fail", objects: []string{podOut}, ready: []bool{true}, want: body.Observation{State: body.Exited, Message: "Pod shop/web-3 has failed: Evicted: The node was low on memory."}},
		"Service":     {reason: "a Service is an address before a Pod is", objects: []string{podReady, inCluster}, want: body.Observation{State: body.Ready, Address: "10.1.0.1:443"}},
		"Headless":    {reason: "a headless one by its name", objects: []string{headless}, want: body.Observation{State: body.Ready, Address: "web-3.shop.svc"}},
		"Annotation":  {reason: "what the template says comes first", objects: []string{addressed, inCluster}, want: body.Observation{State: body.Ready, Address: "https://web-3.example.com"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			k := &Kind{ready: func(_ context.Context, expression string, objects []any) (bool, string, error) {
				if len(objects) != len(c.objects) {
					t.Errorf("%s: expressions see all objects, got %d", c.reason, len(objects))
				}
				return c.ready[int(expression[1]-'0')], "because", nil
			}}
			in := &v1alpha1.Template{}
			for i := range c.ready {
				in.Ready = append(in.Ready, "e"+string(rune('0'+i)))
			}
			manifests, objects := make([]manifest, len(c.objects)), make([]*unstructured.Unstructured, len(c.objects))
			for i, o := range c.objects {
				manifests[i] = manifest{Unstructured: object(t, config)}
				manifests[i].SetName("missing")
				manifests[i].resource.Resource = "things"
				if o != "" {
					objects[i] = object(t, o)
				}
			}
			got, err := k.judge(context.Background(), in, parts{manifests: manifests, objects: objects})
			if err != nil {
				t.Fatal(err)
			}
			if c.want.State != body.Absent {
				c.want.Incarnation, c.want.Revision, c.want.BornAt = 7, "r1", time.Unix(1900000000, 0)
			}
			if strings.HasSuffix(c.want.Message, ": ") && strings.HasPrefix(got.Message, c.want.Message) {
				c.want.Message = got.Message
			}
			got.UID = ""
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestKind_judge_CannotBeTold(t *testing.T) {
	k := &Kind{ready: func(context.Context, string, []any) (bool, string, error) {
		return true, "", errors.New("no condition")
	}}
	objects := []*unstructured.Unstructured{object(t, podReady)}
	o, err := k.judge(context.Background(), &v1alpha1.Template{Ready: []string{"1"}}, parts{manifests: []manifest{{Unstructured: objects[0]}}, objects: objects})
	if err == nil || err.Error() != "template.ready[0]: no condition" {
		t.Errorf("an expression that cannot be told is an error, never a state: got %+v, %v", o, err)
	}
}

func TestOneLine(t *testing.T) {
	if got := oneLine("a\n b\t c\xff "); got != "a b c�" {
		t.Errorf("got %q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Repeat(rapid.String().Draw(t, "s")+"é", rapid.IntRange(0, 400).Draw(t, "n"))
		got := oneLine(in)
		if len(got) > maxMessage || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\t") {
			t.Errorf("%d bytes, %q", len(got), got)
		}
		if want := strings.Join(strings.Fields(in), " "); len(want) <= maxMessage && got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
