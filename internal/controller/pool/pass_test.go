package pool

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/controller/roster"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/revision"
	"github.com/pawl-dev/pawl/snapshot"
)

// BenchmarkPass is a whole pass over a pool that is large and at rest: read from
// the informers' cache, snapshot, plan, report. Design section 6 allows 10 ms
// for 10,000 members.
func BenchmarkPass(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(strconv.Itoa(n)+" members", func(b *testing.B) { benchmarkPass(b, n) })
	}
}

func benchmarkPass(b *testing.B, n int) {
	b.Helper()
	c := newBench(b, interceptor.Funcs{})
	p := newPool(int32(n))
	p.Finalizers = []string{v1alpha1.FinalizerMembers}
	world := served{"pools": {p}, "members": atRest(b, p, n), "controllerrevisions": {stands(b, p)}}
	first := &cached{}
	first.Client, c.Roster = world.read(b)
	c.Client = first
	if _, err := c.pass(b.Context(), web); err != nil || first.pool == nil {
		b.Fatalf("the first pass reports: %+v, %v", first.pool, err)
	}
	world["pools"] = []client.Object{first.pool}
	rest := &cached{}
	rest.Client, c.Roster = world.read(b)
	c.Client = rest
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.pass(b.Context(), web); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(time.Millisecond), "ms/pass")
	if rest.pool != nil {
		b.Errorf("a pool at rest is written: %+v instead of %+v", rest.pool.Status, first.pool.Status)
	}
}

// cached is a client that reads from an informers' cache, and keeps what is
// written to a Pool's status. It refuses every other write.
type cached struct {
	client.Client

	pool *v1alpha1.Pool
}

func (c *cached) Status() client.SubResourceWriter { return statusOf{c.Client.Status(), c} }

// statusOf keeps what it is given.
type statusOf struct {
	client.SubResourceWriter

	c *cached
}

func (s statusOf) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	p, ok := o.(*v1alpha1.Pool)
	if !ok {
		return fmt.Errorf("patch of %T", o)
	}
	s.c.pool = p.DeepCopy()
	return nil
}

// stands is the revision of the pool's template, on which it stands.
func stands(tb testing.TB, p *v1alpha1.Pool) *appsv1.ControllerRevision {
	tb.Helper()
	content, err := history.ContentOf(&p.Spec.Template)
	if err != nil {
		tb.Fatal(err)
	}
	rev, err := history.New(p, content, revision.Current, 1)
	if err != nil {
		tb.Fatal(err)
	}
	rev.ResourceVersion, rev.UID = "1", "revision"
	if err := history.WriteRecord(rev, history.Record{Stood: 1, StoodAt: snapshot.Micro(time.Unix(0, 0))}); err != nil {
		tb.Fatal(err)
	}
	return rev
}

// atRest are n free members on the template's revision.
func atRest(tb testing.TB, p *v1alpha1.Pool, n int) []client.Object {
	tb.Helper()
	id := history.RevisionID(stands(tb, p))
	since := snapshot.Micro(time.Unix(0, 0))
	list := make([]client.Object, n)
	for i := range list {
		m := &v1alpha1.Member{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: p.Namespace, Name: history.Slot(p.Name, i), UID: types.UID(fmt.Sprint("uid-", i)), ResourceVersion: "1",
				Labels: map[string]string{v1alpha1.LabelPool: p.Name}, Finalizers: []string{v1alpha1.FinalizerBody},
			},
			Spec: v1alpha1.MemberSpec{Pool: p.Name, Index: int32(i), Revision: id},
			Status: v1alpha1.MemberStatus{
				Phase: v1alpha1.PhaseAvailable, Revision: id, Incarnation: 1, BodyUID: fmt.Sprint("body-", i),
				BornAt: since, PhaseSince: since, ServedSince: since,
			},
		}
		r := snapshot.Member(m, time.Unix(0, 0))
		meta.SetStatusCondition(&m.Status.Conditions, snapshot.OnTarget(&r))
		list[i] = m
	}
	return list
}

// served is what an API server lists, by resource.
type served map[string][]client.Object

// ServeHTTP answers lists, and keeps watches open without an event.
func (s served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("sendInitialEvents") != "" { // lists are enough
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("List").GroupKind(), "", nil).ErrStatus)
		return
	}
	if r.URL.Query().Get("watch") != "" {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"resourceVersion": "1"}, "items": append([]client.Object{}, s[path.Base(r.URL.Path)]...)})
}

// read is a client that reads it from an informers' cache, and the roster of that.
func (s served) read(tb testing.TB) (client.Client, roster.Of) {
	tb.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		tb.Fatal(err)
	}
	if err := appsv1.AddToScheme(scheme); err != nil {
		tb.Fatal(err)
	}
	server := httptest.NewServer(s)
	ctx, stop := context.WithCancel(tb.Context())
	tb.Cleanup(func() {
		stop()
		server.CloseClientConnections()
		server.Close()
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Pool", "Member", "Claim"} {
		mapper.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), meta.RESTScopeNamespace)
	of := &roster.Roster{}
	informers, err := cache.New(&rest.Config{Host: server.URL}, cache.Options{Scheme: scheme, Mapper: mapper, NewInformer: of.Follow(nil)})
	if err != nil {
		tb.Fatal(err)
	}
	for _, o := range []client.Object{&v1alpha1.Member{}, &v1alpha1.Claim{}} {
		if _, err := informers.GetInformer(ctx, o); err != nil {
			tb.Fatal(err)
		}
	}
	go func() { _ = informers.Start(ctx) }()
	if !informers.WaitForCacheSync(ctx) {
		tb.Fatal("the cache does not start")
	}
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{Scheme: scheme, Mapper: mapper, Cache: &client.CacheOptions{Reader: informers}})
	if err != nil {
		tb.Fatal(err)
	}
	return c, of
}
