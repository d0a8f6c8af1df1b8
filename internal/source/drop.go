package source

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// inventory is all copies, by pool and revision; those with the keys of digests
// have the revision "". The value tells that a copy is known to be there:
// otherwise it may be. Nil: it is not known what there is.
type inventory map[types.NamespacedName]map[string]map[copyRef]bool

// has tells whether a copy is known to be there.
func (r *Resolver) has(pool types.NamespacedName, id string, ref copyRef) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copies[pool][id][ref]
}

// note remembers a copy.
func (r *Resolver) note(pool types.NamespacedName, id string, ref copyRef, there bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.copies != nil {
		r.copies.add(pool, id, ref, there)
	}
}

func (i inventory) add(pool types.NamespacedName, id string, ref copyRef, there bool) {
	if i[pool] == nil {
		i[pool] = map[string]map[copyRef]bool{}
	}
	if i[pool][id] == nil {
		i[pool][id] = map[copyRef]bool{}
	}
	i[pool][id][ref] = there
}

// list finds all copies there are, once.
func (r *Resolver) list(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.copies != nil {
		return nil
	}
	found := inventory{}
	for _, kind := range []string{kindConfigMap, kindSecret} {
		list := metaList("", "v1", kind)
		if err := r.options.Reader.List(ctx, list, client.HasLabels{v1alpha1.LabelSource, v1alpha1.LabelPool}); err != nil {
			return fmt.Errorf("list frozen sources: %w", err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			pool := types.NamespacedName{Namespace: o.Namespace, Name: o.Labels[v1alpha1.LabelPool]}
			found.add(pool, o.Labels[v1alpha1.LabelRevision], copyRef{kind == kindSecret, o.Name}, true)
		}
	}
	r.copies = found
	return nil
}

func metaList(group, version, kind string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.APIVersion = metav1.GroupVersion{Group: group, Version: version}.String()
	list.Kind = kind + "List"
	return list
}

// Drop removes the copies of every revision of a pool that keep does not name,
// and that is not stored; with nil all of them, and the key of the pool's
// digests. It costs nothing where there are none.
func (r *Resolver) Drop(ctx context.Context, pool types.NamespacedName, keep map[string]bool) error {
	if err := r.list(ctx); err != nil {
		return err
	}
	ids := r.superfluous(pool, keep)
	if len(ids) == 0 {
		return nil
	}
	if keep != nil {
		stored, err := r.stored(ctx, pool)
		if err != nil {
			return err
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return stored[id] })
	}
	for _, id := range ids {
		if err := r.drop(ctx, pool, id); err != nil {
			return err
		}
	}
	return nil
}

// superfluous are the revisions that have copies and are not kept, sorted.
func (r *Resolver) superfluous(pool types.NamespacedName, keep map[string]bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(r.copies[pool])) {
		if keep == nil || !keep[id] && id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// stored are the revisions of a pool that the API server itself shows.
func (r *Resolver) stored(ctx context.Context, pool types.NamespacedName) (map[string]bool, error) {
	list := metaList("apps", "v1", "ControllerRevision")
	if err := r.options.Reader.List(ctx, list, client.InNamespace(pool.Namespace), client.MatchingLabels{v1alpha1.LabelPool: pool.Name}); err != nil {
		return nil, fmt.Errorf("list revisions of Pool %s: %w", pool.Name, err)
	}
	ids := map[string]bool{}
	for i := range list.Items {
		ids[list.Items[i].Labels[v1alpha1.LabelRevision]] = true
	}
	return ids, nil
}

// drop removes the copies of one revision.
func (r *Resolver) drop(ctx context.Context, pool types.NamespacedName, id string) error {
	r.values.Remove(frozenKey{pool, id})
	r.mu.Lock()
	refs := slices.SortedFunc(maps.Keys(r.copies[pool][id]), func(a, b copyRef) int { return strings.Compare(a.String(), b.String()) })
	if id == "" {
		delete(r.pools, pool) // the key goes
	}
	r.mu.Unlock()
	for _, ref := range refs {
		if err := r.remove(ctx, pool, ref); err != nil {
			return fmt.Errorf("remove %s: %w", ref, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.copies[pool], id)
	if len(r.copies[pool]) == 0 {
		delete(r.copies, pool)
	}
	return nil
}

// remove lets one copy go. Whatever interrupts it, it can be removed again.
func (r *Resolver) remove(ctx context.Context, pool types.NamespacedName, ref copyRef) error {
	o := &metav1.PartialObjectMetadata{}
	o.APIVersion, o.Kind = "v1", ref.kind()
	err := r.options.Reader.Get(ctx, types.NamespacedName{Namespace: pool.Namespace, Name: ref.name}, o)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if _, marked := o.Labels[v1alpha1.LabelSource]; !marked || o.Labels[v1alpha1.LabelPool] != pool.Name {
		return nil // somebody else's
	}
	before := o.DeepCopy()
	if controllerutil.RemoveFinalizer(o, v1alpha1.FinalizerRevision) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.options.Client.Patch(ctx, o, patch); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if !o.DeletionTimestamp.IsZero() {
		return nil
	}
	return client.IgnoreNotFound(r.options.Client.Delete(ctx, o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion}))
}
