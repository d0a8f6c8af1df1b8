package roster

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

func memberOf(ns, pool, name string) *v1alpha1.Member {
	return &v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: v1alpha1.MemberSpec{Pool: pool}}
}

func claimOn(ns, pool, name string) *v1alpha1.Claim {
	return &v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: v1alpha1.ClaimSpec{Pool: pool}}
}

// What belongs to a pool is found in all informers of its kind, of which there
// may be one for each namespace, as it is there.
func TestRoster(t *testing.T) {
	t.Parallel()
	var r Roster
	makes := r.Follow(nil)
	make1 := func(o runtime.Object) toolscache.Store {
		return makes(&toolscache.ListWatch{}, o, 0, toolscache.Indexers{}).GetStore()
	}
	first, second, claims := make1(&v1alpha1.Member{}), make1(&v1alpha1.Member{}), make1(&v1alpha1.Claim{})
	make1(&v1alpha1.Pool{}) // which nobody asks for
	kept := memberOf("a", "web", "web-0")
	for store, objects := range map[toolscache.Store][]client.Object{
		first:  {kept, memberOf("a", "web", "web-1"), memberOf("a", "db", "db-0")},
		second: {memberOf("b", "web", "web-0")},
		claims: {claimOn("a", "web", "c"), claimOn("b", "web", "d")},
	} {
		for _, o := range objects {
			if err := store.Add(o); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := map[string]struct {
		pool    types.NamespacedName
		members []string
		claims  []string
	}{
		"one of several":        {types.NamespacedName{Namespace: "a", Name: "web"}, []string{"a/web-0", "a/web-1"}, []string{"a/c"}},
		"another of them":       {types.NamespacedName{Namespace: "a", Name: "db"}, []string{"a/db-0"}, nil},
		"in another informer":   {types.NamespacedName{Namespace: "b", Name: "web"}, []string{"b/web-0"}, []string{"b/d"}},
		"one that is not there": {types.NamespacedName{Namespace: "b", Name: "db"}, nil, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			members, err := r.Members(tt.pool)
			claims, err2 := r.Claims(tt.pool)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if diff := cmp.Diff(tt.members, namesOf(members)); diff != "" {
				t.Errorf("its members (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.claims, namesOf(claims)); diff != "" {
				t.Errorf("its claims (-want +got):\n%s", diff)
			}
			for _, m := range members {
				if m.Name == kept.Name && m.Namespace == kept.Namespace && m != kept {
					t.Error("a member is copied")
				}
			}
		})
	}
}

// What moves from one pool to another, or goes, is found where it is.
func TestRoster_Follows(t *testing.T) {
	t.Parallel()
	var r Roster
	store := r.Follow(nil)(&toolscache.ListWatch{}, &v1alpha1.Member{}, 0, toolscache.Indexers{}).GetStore()
	is := func(want string) {
		t.Helper()
		m, _ := r.Members(types.NamespacedName{Namespace: "a", Name: "web"})
		if got := fmt.Sprint(namesOf(m)); got != want {
			t.Errorf("there is %s, want %s", got, want)
		}
	}
	is("[]")
	_ = store.Add(memberOf("a", "web", "web-0"))
	is("[a/web-0]")
	_ = store.Update(memberOf("a", "db", "web-0"))
	is("[]")
	_ = store.Update(memberOf("a", "web", "web-0"))
	_ = store.Delete(memberOf("a", "web", "web-0"))
	is("[]")
}

func namesOf[T client.Object](list []T) []string {
	var names []string
	for _, o := range list {
		names = append(names, o.GetNamespace()+"/"+o.GetName())
	}
	slices.Sort(names)
	return names
}
