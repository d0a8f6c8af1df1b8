// Package fresh tells whether a cache has seen a controller's own last writes,
// so that nothing is decided twice.
package fresh

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Writes are the last writes of one controller, by the group (a pool, say)
// for which they were made. The zero value is ready for use.
type Writes struct {
	mu     sync.Mutex
	groups map[types.NamespacedName]map[string]string
}

// Wrote notes the resource version that a write to the named object came to.
func (w *Writes) Wrote(group types.NamespacedName, object, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups == nil {
		w.groups = map[types.NamespacedName]map[string]string{}
	}
	if w.groups[group] == nil {
		w.groups[group] = map[string]string{}
	}
	w.groups[group][object] = version
}

// Unseen are the objects of the group whose last write the cache has not seen.
// Version returns the resource version in the cache, or empty if it has no
// such object: then it is up to the caller to find out whether the object has
// been deleted since, and to Forget it.
func (w *Writes) Unseen(group types.NamespacedName, version func(object string) string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var unseen []string
	for object, wrote := range w.groups[group] {
		if seen(version(object), wrote) {
			delete(w.groups[group], object)
			continue
		}
		unseen = append(unseen, object)
	}
	if len(w.groups[group]) == 0 {
		delete(w.groups, group)
	}
	return unseen
}

// Forget drops what was noted of one object.
func (w *Writes) Forget(group types.NamespacedName, object string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.groups[group], object)
	if len(w.groups[group]) == 0 {
		delete(w.groups, group)
	}
}

// ForgetAll drops what was noted of a group that is no more.
func (w *Writes) ForgetAll(group types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.groups, group)
}

// seen tells whether a cached version is the written one or a later one.
func seen(cached, wrote string) bool {
	if cached == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached, wrote)
	return err == nil && order >= 0
}
