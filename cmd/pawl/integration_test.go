//go:build integration

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// patience is how long anything may take on a machine that is busy.
const patience = 2 * time.Minute

// asPawl has the test's program be pawl itself.
const asPawl = "PAWL_TEST_AS_PAWL"

func TestMain(m *testing.M) {
	if os.Getenv(asPawl) != "" {
		main()
	}
	os.Exit(pawldtest.Main(m, pawldtest.WithSim()))
}

// place is a namespace of the test's own on a real server.
type place struct {
	*testing.T

	client     client.Client
	kubeconfig string
	namespace  string
}

func newPlace(t *testing.T, s *pawldtest.Server) *place {
	t.Helper()
	scheme, err := newScheme()
	if err == nil {
		err = rbacv1.AddToScheme(scheme)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(s.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	p := &place{T: t, client: c, kubeconfig: s.Kubeconfig}
	p.namespace = strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}})
	return p
}

func (p *place) create(o client.Object) {
	p.Helper()
	if err := p.client.Create(p.Context(), o); err != nil {
		p.Fatal(err)
	}
}

// pool makes a pool of simulated bodies and waits until it stands.
func (p *place) pool(name string, replicas int32, change func(*v1alpha1.Pool)) *v1alpha1.Pool {
	p.Helper()
	rolling := v1alpha1.UpdateRollingUpdate
	o := &v1alpha1.Pool{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name},
		Spec: v1alpha1.PoolSpec{
			Replicas: &replicas, Template: v1alpha1.Template{Sim: &v1alpha1.Sim{Version: new("1")}},
			Update: &v1alpha1.Update{Type: &rolling},
		},
	}
	change(o)
	p.create(o)
	p.eventually("the pool stands", func() bool {
		now := p.now(name)
		return now.Status.Free == replicas && now.Status.ObservedGeneration == now.Generation
	})
	return o
}

func (p *place) now(pool string) *v1alpha1.Pool {
	p.Helper()
	var o v1alpha1.Pool
	if err := p.client.Get(p.Context(), types.NamespacedName{Namespace: p.namespace, Name: pool}, &o); err != nil {
		p.Fatal(err)
	}
	return &o
}

// revise gives the pool's template another version.
func (p *place) revise(pool, sim string) {
	p.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"template":{"sim":%s}}}`, sim)
	if err := p.client.Patch(p.Context(), p.now(pool), client.RawPatch(types.MergePatchType, patch)); err != nil {
		p.Fatal(err)
	}
}

func (p *place) eventually(what string, is func() bool) {
	p.Helper()
	for late := time.Now().Add(patience); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(late) {
			p.Fatalf("never: %s", what)
		}
	}
}

// call runs a command line.
func (p *place) call(ctx context.Context, args ...string) (status int, out, problems string) {
	var o, e bytes.Buffer
	prog := newProgram("pawl", genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &o, ErrOut: &e})
	status = prog.run(ctx, append([]string{"--kubeconfig", p.kubeconfig, "-n", p.namespace}, args...))
	return status, o.String(), e.String()
}

// must runs a command line that has to work, and returns what it printed.
func (p *place) must(args ...string) string {
	p.Helper()
	status, out, problems := p.call(p.Context(), args...)
	if status != 0 || problems != "" {
		p.Fatalf("%v: exit status %d: %s", args, status, problems)
	}
	return out
}

// says fails the test unless the text has all of it.
func (p *place) says(text string, all ...string) {
	p.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			p.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

func nothing(*v1alpha1.Pool) {}

func TestIntegration_Get(t *testing.T) {
	t.Parallel()
	p := newPlace(t, pawldtest.Shared(t))
	p.pool("web", 2, nothing)
	out := p.must("get")
	p.says(out, "NAME", "REPLICAS", "FREE", "CLAIMED", "UPDATED", "STALE", "ROLLING", "STATE", "AGE", "web ", "AllMembersCurrent")
	p.says(p.must("get", "-o", "wide"), "TARGET", "NEXT", "nothing to do")
	p.says(p.must("get", "-A"), "NAMESPACE", p.namespace)
	p.says(p.must("get", "web", "-o", "name"), "pool.pawl.dev/web\n")
	var o v1alpha1.Pool
	if err := json.Unmarshal([]byte(p.must("get", "web", "-o", "json")), &o); err != nil || o.Kind != "Pool" || o.Status.Free != 2 {
		t.Errorf("%+v, %v", o, err)
	}
	status, _, problems := p.call(t.Context(), "get", "webb")
	if want := "error: pool \"webb\" not found in namespace " + p.namespace + "; `pawl get` lists the pools\n"; status != 1 || problems != want {
		t.Errorf("exit status %d, %s", status, problems)
	}
}

func TestIntegration_Claim(t *testing.T) {
	t.Parallel()
	p := newPlace(t, pawldtest.Shared(t))
	p.pool("web", 2, nothing)

	var first v1alpha1.Claim
	if err := json.Unmarshal([]byte(p.must("claim", "web", "--name", "mine", "--ttl", "1h", "-o", "json")), &first); err != nil {
		t.Fatal(err)
	}
	if first.Status.Phase != v1alpha1.ClaimBound || first.Status.ExpiresAt == nil {
		t.Errorf("claim %+v", first.Status)
	}
	p.says(p.must("claim", "web", "--name", "mine"), "claim mine: member "+first.Status.Member)
	p.must("claim", "web", "--name", "other")

	status, _, problems := p.call(t.Context(), "claim", "web", "--name", "third", "--wait", "1s")
	if status != 1 {
		t.Errorf("a claim of a pool that is empty: exit status %d", status)
	}
	p.says(problems, "error: claim third ", "no member of ", "it was taken back")
	ctx, interrupt := context.WithCancel(t.Context())
	time.AfterFunc(time.Second, interrupt)
	status, _, problems = p.call(ctx, "claim", "web", "--name", "fourth")
	if status != 1 {
		t.Errorf("an interrupted claim: exit status %d", status)
	}
	p.says(problems, "interrupted; claim fourth was taken back")

	p.says(p.must("status", "web"), "2 claimed", "Claimed", "mine (", "other (")
	p.says(p.must("release", "mine", "other"), "claim mine released: member "+first.Status.Member, "claim other released")
	p.eventually("no claim is left", func() bool {
		var list v1alpha1.ClaimList
		return p.client.List(t.Context(), &list, client.InNamespace(p.namespace)) == nil && len(list.Items) == 0
	})
}

func TestIntegration_StatusAndExplain(t *testing.T) {
	t.Parallel()
	p := newPlace(t, pawldtest.Shared(t))
	p.pool("web", 3, nothing)
	p.must("claim", "web", "--name", "mine")
	p.revise("web", `{"version":"2"}`)
	p.eventually("the rollout waits for the claimed member", func() bool {
		now := p.now("web")
		c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionUpdated)
		return c != nil && c.Reason == "UpdateBlocked" && now.Status.Updated == 2
	})
	p.says(p.must("status", "web"), "2 of 3 updated", "1 claimed", "UpdateBlocked", "next: ", "mine (")
	p.says(p.must("explain", "web"), "UpdateBlocked", "Claimed", "1 member", "first: web-0", "why:", "next:")
	p.says(p.must("explain", "web/0"), "member "+p.namespace+"/web-0 of pool web: Claimed", "claimed by mine (",
		"Claimed: member 0 is on revision", "when claim mine ends, it gets a new body", "Bound", "Fill")
	p.says(p.must("explain", "web/1"), "the target", "Stale")
	status, _, problems := p.call(t.Context(), "status", "web", "--watch", "--timeout", "1s")
	if status != 1 {
		t.Errorf("the watch of a rollout that waits: exit status %d", status)
	}
	p.says(problems, "pool web is not updated after 1s: 2 of 3 updated")
}

func TestIntegration_Watch(t *testing.T) {
	t.Parallel()
	p := newPlace(t, pawldtest.Shared(t))
	p.pool("web", 3, nothing)
	p.must("pause", "web")
	p.revise("web", `{"version":"2","boot":"300ms"}`)
	p.eventually("the pool says that it is paused", func() bool {
		c := meta.FindStatusCondition(p.now("web").Status.Conditions, v1alpha1.ConditionUpdated)
		return c != nil && c.Reason == "UpdatePaused"
	})
	var wait sync.WaitGroup
	var status int
	var out, problems string
	wait.Go(func() {
		status, out, problems = p.call(t.Context(), "status", "web", "--watch", "--timeout", patience.String())
	})
	time.Sleep(time.Second) // for the watch to begin; the rest does not depend on it
	p.must("resume", "web")
	wait.Wait()
	if status != 0 {
		t.Fatalf("exit status %d: %s\n%s", status, problems, out)
	}
	p.says(out, "pool web  0 of 3 updated  UpdatePaused", "web-0  Available → Terminating  (Drift)", "Provisioning → Available", "3 of 3 updated  AllMembersCurrent")
}

func TestIntegration_WatchHalted(t *testing.T) {
	t.Parallel()
	p := newPlace(t, pawldtest.Shared(t))
	p.pool("web", 2, func(o *v1alpha1.Pool) {
		o.Spec.Template.BootTimeout = &metav1.Duration{Duration: time.Second}
		o.Spec.Update.FailureLimit = new(intstr.FromInt32(1))
	})
	p.revise("web", `{"version":"2","outcome":"NeverReady"}`)
	status, out, problems := p.call(t.Context(), "status", "web", "--watch", "--timeout", patience.String())
	if status != 1 {
		t.Errorf("exit status %d\n%s", status, out)
	}
	p.says(problems, "pool web: UpdateHalted: ", "no body of any revision has recovered, so there is no revision to go back to",
		"correct the template, or try it once more (pawl retry web)")
	p.says(p.must("explain", "web"), "UpdateHalted", "Halted")
}

func TestIntegration_Version(t *testing.T) {
	t.Parallel()
	p := newPlace(t, pawldtest.Shared(t))
	p.says(p.must("version"), "pawl devel", "server: Kubernetes v")
	var v versions
	if err := json.Unmarshal([]byte(p.must("version", "-o", "json")), &v); err != nil || v.Server == nil || v.Client.Go == "" {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestIntegration_Controller runs the operator as on a cluster: outside of
// pawld, on objects, with the rights of an account.
func TestIntegration_Controller(t *testing.T) {
	t.Parallel()
	s := pawldtest.Start(t, pawldtest.WithoutControllers())
	p := newPlace(t, s)
	p.namespace = "default"
	for _, file := range []string{"account.yaml", "configmaps.yaml"} {
		p.apply("../../examples/objects/" + file)
	}
	pawl := exec.Command(os.Args[0], "controller", "--kubeconfig", p.kubeconfig,
		"--leader-elect-namespace", "default", "--metrics-address", "0", "--health-address", "127.0.0.1:0")
	pawl.Env = append(os.Environ(), asPawl+"=1")
	var log bytes.Buffer
	pawl.Stderr = &log
	if err := pawl.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pawl.Process.Kill() }()
	p.eventually("the pool stands", func() bool { return p.now("settings").Status.Free == 3 })
	p.says(p.must("get", "settings"), "AllMembersCurrent")
	var one corev1.ConfigMap
	if err := p.client.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "settings-1"}, &one); err != nil || one.Data["owner"] != "settings/1" {
		t.Errorf("%+v, %v", one.Data, err)
	}
	if err := pawl.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := pawl.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%s", err, &log)
	}
	for line := range strings.Lines(log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is no JSON: %s", line)
		}
	}
	p.says(log.String(), `"msg":"stopped"`)
}

// apply makes the objects of a file of manifests.
func (p *place) apply(path string) {
	p.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		p.Fatal(err)
	}
	for doc := range strings.SplitSeq(string(data), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), o); err != nil {
			p.Fatal(err)
		}
		p.create(o)
	}
}
