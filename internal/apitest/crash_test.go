//go:build integration

package apitest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// diary is what one writer was told has been stored.
type diary struct {
	// counter is the last value written to the writer's member.
	counter int
	// claims are the UIDs of the claims it made, by name.
	claims map[string]types.UID
}

// keep writes without a pause until the API is gone: a counter on a member of
// its own, and a claim each time.
func (d *diary) keep(client dynamic.Interface, member string) {
	for {
		next := d.counter + 1
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"counter":"%d"}}}`, next)
		if _, err := client.Resource(members).Namespace("default").
			Patch(context.Background(), member, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return
		}
		d.counter = next
		claim := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "pawl.dev/v1alpha1", "kind": "Claim",
			"metadata": map[string]any{"name": fmt.Sprintf("%s-%d", member, next)},
			"spec":     map[string]any{"pool": "p"},
		}}
		o, err := client.Resource(claims).Namespace("default").Create(context.Background(), claim, metav1.CreateOptions{})
		if err != nil {
			return
		}
		d.claims[o.GetName()] = o.GetUID()
	}
}

// compare fails the test unless everything in the diary is there.
func (d *diary) compare(t *testing.T, client dynamic.Interface, member string) {
	t.Helper()
	o, err := client.Resource(members).Namespace("default").Get(context.Background(), member, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var counter int
	if _, err := fmt.Sscan(o.GetAnnotations()["counter"], &counter); err != nil && d.counter > 0 {
		t.Fatal(err)
	}
	// One more may have been stored without an answer.
	if counter != d.counter && counter != d.counter+1 {
		t.Errorf("%s counts %d, and %d was acknowledged", member, counter, d.counter)
	}
	d.counter = counter
	for name, uid := range d.claims {
		o, err := client.Resource(claims).Namespace("default").Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			t.Errorf("claim %s was acknowledged: %v", name, err)
		} else if o.GetUID() != uid {
			t.Errorf("claim %s has another UID", name)
		}
	}
}

// Killed at random instants under load, pawld has lost nothing that it had
// acknowledged.
func TestCrash(t *testing.T) {
	const writers, rounds = 8, 4
	s := pawldtest.Start(t, pawldtest.WithoutControllers())
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	a := api{t, client}
	diaries := make([]diary, writers)
	name := func(i int) string { return fmt.Sprintf("p-%d", i) }
	for i := range diaries {
		diaries[i].claims = map[string]types.UID{}
		a.create(members, "default", fmt.Sprintf(`{apiVersion: pawl.dev/v1alpha1, kind: Member, metadata: {name: %s}, spec: {pool: p, index: %d}}`, name(i), i))
	}
	for round := range rounds {
		var group sync.WaitGroup
		for i := range diaries {
			group.Go(func() { diaries[i].keep(client, name(i)) })
		}
		instant := time.Duration(rand.Int64N(int64(time.Second)))
		<-time.After(instant)
		s.Kill()
		group.Wait()
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		total := 0
		for i := range diaries {
			diaries[i].compare(t, client, name(i))
			total += diaries[i].counter
		}
		t.Logf("round %d: killed after %s, %d writes so far", round, instant, 2*total)
	}
}
