//go:build integration

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// deadline bounds every wait for something that takes seconds on an idle
// machine.
const deadline = 90 * time.Second

// Environment of the processes that the tests run: this very binary.
const (
	envServe   = "PAWL_E2E_SERVE" // the address to serve on
	envVersion = "PAWL_E2E_VERSION"
	envRun     = "PAWL_E2E_RUN" // marks the processes of one test
	envBoot    = "PAWL_E2E_BOOT"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(envServe); address != "" {
		serve(address)
	}
	ctrllog.SetLogger(logr.Discard())
	os.Exit(pawldtest.Main(m, pawldtest.WithSim()))
}

// answer is what a process says about itself.
type answer struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
}

// serve is the life of a process: it boots for a while, then answers.
func serve(address string) {
	boot, _ := time.ParseDuration(os.Getenv(envBoot))
	time.Sleep(boot)
	err := http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(answer{os.Getenv(envVersion), os.Getpid()})
	}))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// world is one namespace of a pawld, and what a test does in it.
type world struct {
	t testing.TB
	c client.WithWatch
	// namespace is the test's own.
	namespace string
	// run marks the processes.
	run string
}

// shared is a namespace of the pawld that the tests share.
func shared(t testing.TB) *world {
	t.Helper()
	return newWorld(t, pawldtest.Shared(t).Config)
}

func newWorld(t testing.TB, config *rest.Config) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	run := rand.String(10)
	w := &world{t: t, c: c, namespace: "e2e-" + run, run: run}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	return w
}

// processPool is a pool of n processes that serve their version.
func (w *world) processPool(name string, n int32, version string) *v1alpha1.Pool {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	return &v1alpha1.Pool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace},
		Spec: v1alpha1.PoolSpec{
			Replicas: new(n),
			Update:   &v1alpha1.Update{Type: new(v1alpha1.UpdateRollingUpdate)},
			Template: v1alpha1.Template{Process: &v1alpha1.Process{
				Command:   self,
				Ports:     []string{"http"},
				Env:       map[string]string{envServe: "127.0.0.1:${ports.http}", envVersion: version, envRun: w.run, envBoot: "100ms"},
				Readiness: &v1alpha1.Readiness{HTTP: &v1alpha1.HTTPProbe{Port: "http"}, Period: &metav1.Duration{Duration: 50 * time.Millisecond}},
				Stop:      &v1alpha1.Stop{Grace: &metav1.Duration{Duration: 2 * time.Second}},
			}},
		},
	}
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	if err := w.c.Create(w.t.Context(), o); err != nil {
		w.t.Fatalf("create %s: %v", o.GetName(), err)
	}
}

// edit changes a pool by reading and writing it until that succeeds.
func (w *world) edit(name string, change func(*v1alpha1.Pool)) {
	w.t.Helper()
	w.eventually("edit pool "+name, func() error {
		p := w.pool(name)
		if p == nil {
			return errors.New("it is not there")
		}
		change(p)
		return w.c.Update(w.t.Context(), p)
	})
}

// pool reads a pool; nil if it is not there.
func (w *world) pool(name string) *v1alpha1.Pool {
	w.t.Helper()
	var p v1alpha1.Pool
	err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &p)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatalf("get pool %s: %v", name, err)
	}
	return &p
}

// members reads a pool's members, by index.
func (w *world) members(pool string) []v1alpha1.Member {
	w.t.Helper()
	var list v1alpha1.MemberList
	if err := w.c.List(w.t.Context(), &list, client.InNamespace(w.namespace), client.MatchingFields{"spec.pool": pool}); err != nil {
		w.t.Fatalf("list members of %s: %v", pool, err)
	}
	byIndex := make([]v1alpha1.Member, len(list.Items))
	for _, m := range list.Items {
		if int(m.Spec.Index) < len(byIndex) {
			byIndex[m.Spec.Index] = m
		}
	}
	return byIndex
}

// eventually waits until check has nothing to complain about.
func (w *world) eventually(what string, check func() error) {
	w.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(w.t.Context(), 20*time.Millisecond, deadline, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		w.t.Fatalf("%s: not within %s: %v", what, deadline, last)
	}
}

// updated waits until every member of the pool is free and on its target.
func (w *world) updated(pool string, n int32) {
	w.t.Helper()
	w.eventually("all of "+pool+" updated", func() error {
		p := w.pool(pool)
		st := p.Status
		c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionUpdated)
		if st.ObservedGeneration == p.Generation && st.Free+st.Claimed == n && st.Updated == n && st.Replicas == n && c != nil && c.Reason == "AllMembersCurrent" {
			return nil
		}
		if n <= 5 {
			return errors.New(describe(p) + "\n" + list(w.members(pool)))
		}
		return errors.New(describe(p))
	})
}

// recovered has the pool stand on its target, as if its bodies had served for long
// enough, and waits until the controller says so.
func (w *world) recovered(pool string) {
	w.t.Helper()
	w.eventually(pool+" stands on its target", func() error {
		st := w.pool(pool).Status
		if st.TargetRevision != "" && st.CurrentRevision == st.TargetRevision {
			return nil
		}
		var r appsv1.ControllerRevision
		if err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: history.Name(pool, st.TargetRevision)}, &r); err != nil {
			return err
		}
		rec, err := history.ReadRecord(&r)
		if err != nil || rec.Stood > 0 {
			return errors.Join(err, errors.New("the controller has not seen it"))
		}
		err = history.WriteRecord(&r, rec.Stand(nil, time.Now()))
		return errors.Join(err, w.c.Update(w.t.Context(), &r), errors.New("it is stored only now"))
	})
}

// reason waits until a condition of the pool has the reason.
func (w *world) reason(pool, condition, reason string) *v1alpha1.Pool {
	w.t.Helper()
	var p *v1alpha1.Pool
	w.eventually(fmt.Sprintf("%s of %s is %s", condition, pool, reason), func() error {
		p = w.pool(pool)
		if c := meta.FindStatusCondition(p.Status.Conditions, condition); c != nil && c.Reason == reason && p.Status.ObservedGeneration == p.Generation {
			return nil
		}
		return errors.New(describe(p))
	})
	return p
}

func describe(p *v1alpha1.Pool) string {
	b, err := json.Marshal(p.Status)
	return fmt.Sprintf("%s %v", b, err)
}

// claim makes a claim and waits until it is bound.
func (w *world) claim(name, pool string) *v1alpha1.Claim {
	w.t.Helper()
	c := &v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}, Spec: v1alpha1.ClaimSpec{Pool: pool}}
	w.create(c)
	w.eventually("claim "+name+" bound", func() error {
		if err := w.c.Get(w.t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if c.Status.Phase != v1alpha1.ClaimBound {
			return fmt.Errorf("phase %s", c.Status.Phase)
		}
		return nil
	})
	return c
}

// gone waits until the object is not there any more.
func (w *world) gone(o client.Object) {
	w.t.Helper()
	w.eventually(o.GetName()+" gone", func() error {
		err := w.c.Get(w.t.Context(), client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("still there: %w", err)
	})
}

// processes are the pids of the test's processes.
func (w *world) processes() []int {
	w.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		w.t.Fatal(err)
	}
	var pids []int
	for _, d := range dirs {
		if env, err := os.ReadFile(d); err == nil && strings.Contains(string(env), envRun+"="+w.run) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(d)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// ask is what the process at the address says about itself.
func ask(ctx context.Context, address string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var a answer
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
	if err != nil {
		return a, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }()
	return a, json.NewDecoder(resp.Body).Decode(&a)
}

func intOrString(n int) *intstr.IntOrString { return new(intstr.FromInt32(int32(n))) }

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// list is what a failed test says of members.
func list(members []v1alpha1.Member) string {
	var all []string
	for _, m := range members {
		b, err := json.Marshal(m)
		all = append(all, fmt.Sprintf("%s %v", b, err))
	}
	return strings.Join(all, "\n")
}
