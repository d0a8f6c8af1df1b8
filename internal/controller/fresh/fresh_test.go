package fresh

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestWrites(t *testing.T) {
	t.Parallel()
	var w Writes
	web, db := types.NamespacedName{Name: "web"}, types.NamespacedName{Name: "db"}
	cache := map[string]string{}
	unseen := func(group types.NamespacedName) int {
		return len(w.Unseen(group, func(object string) string { return cache[object] }))
	}
	w.Wrote(web, "a", "10")
	w.Wrote(web, "b", "12")
	w.Wrote(db, "c", "9")
	if n := unseen(web); n != 2 {
		t.Errorf("%d of 2 writes are unseen by an empty cache", n)
	}
	cache["a"], cache["b"] = "10", "11"
	if n := unseen(web); n != 1 {
		t.Errorf("%d writes are unseen by a cache that lacks one", n)
	}
	w.Forget(web, "b")
	w.Forget(web, "nothing")
	if n := unseen(web); n != 0 {
		t.Errorf("%d writes are unseen although they were forgotten", n)
	}
	if _, ok := w.groups[web]; ok {
		t.Error("a group without writes is kept")
	}
	w.Wrote(web, "a", "20")
	w.Forget(web, "a")
	w.ForgetAll(db)
	if len(w.groups) != 0 {
		t.Errorf("kept: %v", w.groups)
	}
}
