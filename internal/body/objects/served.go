package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// errNotServed: the API server serves the kind in no version.
var errNotServed = errors.New("the API server does not serve this kind")

// settle is how long a kind must not have been served until its objects count
// as gone with it. While a CustomResourceDefinition moves from one version to
// another, or an aggregated API is installed anew, there is an instant in which
// neither is there.
const settle = 30 * time.Second

// served is a resource in a version in which it is served.
type served struct {
	schema.GroupVersionResource
	kind       string
	namespaced bool
}

// discover asks the API server for the resources of a group in all versions,
// the preferred one first. It asks each time anew and takes no part for the
// whole: an error means that it cannot be told what is served.
type discover func(ctx context.Context, group string) ([]served, error)

// newDiscover asks with Pawl's own rights; every account may ask this.
func newDiscover(config *rest.Config) discover {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return func(context.Context, string) ([]served, error) {
			return nil, fmt.Errorf("set up discovery: %w", err)
		}
	}
	return func(ctx context.Context, group string) ([]served, error) {
		return resourcesOf(ctx, client.RESTClient(), group)
	}
}

// resourcesOf asks at the paths of each group and version. The methods of
// discovery clients are no good here: they take some answers of 403 and 404 for
// empty ones. A version that is listed, as that of an aggregated API is that
// does not answer, has to tell its resources.
func resourcesOf(ctx context.Context, client rest.Interface, group string) ([]served, error) {
	versions, root := []string{"v1"}, "/api"
	if group != "" {
		var groups metav1.APIGroupList
		if err := client.Get().AbsPath("/apis").Do(ctx).Into(&groups); err != nil {
			return nil, fmt.Errorf("discover API groups: %w", err)
		}
		if len(groups.Groups) == 0 {
			return nil, errors.New("discover API groups: the API server lists none")
		}
		versions, root = versionsOf(groups.Groups, group), "/apis/"+group
	}
	var result []served
	for _, version := range versions {
		var list metav1.APIResourceList
		if err := client.Get().AbsPath(root, version).Do(ctx).Into(&list); err != nil {
			return nil, fmt.Errorf("discover %s: %w", schema.GroupVersion{Group: group, Version: version}, err)
		}
		for _, r := range list.APIResources {
			result = append(result, served{
				GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: r.Name},
				kind:                 r.Kind, namespaced: r.Namespaced,
			})
		}
	}
	return result, nil
}

func versionsOf(groups []metav1.APIGroup, name string) []string {
	var versions []string
	for _, g := range groups {
		if g.Name != name {
			continue
		}
		for _, v := range g.Versions {
			versions = append(versions, v.Version)
		}
	}
	return versions
}

// serving returns the first resource of the group that fits. The error wraps
// errNotServed if a complete discovery has shown that there is none.
func (k *Kind) serving(ctx context.Context, group string, fits func(served) bool) (served, error) {
	all, err := k.discover(ctx, group)
	if err != nil {
		return served{}, err
	}
	for _, s := range all {
		if fits(s) {
			return s, nil
		}
	}
	return served{}, errNotServed
}

// placeOf says where objects of the kind are: in its version, or else in one in
// which it is served still, since it is the same object in all. The error wraps
// errNotServed if it is served in none.
func (k *Kind) placeOf(ctx context.Context, gvk schema.GroupVersionKind) (served, error) {
	mapping, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case err == nil:
		return served{mapping.Resource, gvk.Kind, mapping.Scope.Name() == meta.RESTScopeNameNamespace}, nil
	case !meta.IsNoMatchError(err):
		return served{}, fmt.Errorf("look up %s: %w", gvk, err)
	}
	// That the mapper knows of none may be due to a discovery that was not
	// complete.
	all, err := k.discover(ctx, gvk.Group)
	if err != nil {
		return served{}, fmt.Errorf("look up %s: %w", gvk, err)
	}
	var found *served
	for _, s := range all {
		if s.kind != gvk.Kind || strings.Contains(s.Resource, "/") {
			continue // another kind, or a subresource
		}
		if found == nil || s.Version == gvk.Version {
			found = &s
		}
	}
	if found == nil {
		return served{}, fmt.Errorf("look up %s: %w", gvk, errNotServed)
	}
	return *found, nil
}

// inAnyVersion calls f with the resource and, if the API server answers that it
// does not know that, with a version of it that it serves. It returns the
// resource that was used last. The error wraps errNotServed if there is none.
func (k *Kind) inAnyVersion(ctx context.Context, at schema.GroupVersionResource, f func(schema.GroupVersionResource) error) (schema.GroupVersionResource, error) {
	err := f(at)
	if !isUnknown(err) {
		return at, err
	}
	listed := false
	other, lookErr := k.serving(ctx, at.Group, func(s served) bool {
		listed = listed || s.GroupVersionResource == at
		return s.Resource == at.Resource && s.Version != at.Version
	})
	switch {
	case listed && errors.Is(lookErr, errNotServed):
		return at, err // it is served, and is not: that cannot be
	case lookErr != nil:
		return at, fmt.Errorf("look up %s: %w", at.GroupResource(), lookErr)
	}
	return other.GroupVersionResource, f(other.GroupVersionResource)
}

// read reads an object in whichever version it is served, and says in which.
// Without an object or an error there is none: the API server has said so of
// this very object. The error wraps errNotServed if its kind is not served.
func (k *Kind) read(ctx context.Context, acc *account, at schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, schema.GroupVersionResource, error) {
	var live *unstructured.Unstructured
	at, err := k.inAnyVersion(ctx, at, func(r schema.GroupVersionResource) (err error) {
		live, err = acc.client(r, namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	switch {
	case isGone(err, name):
		return nil, at, nil
	case err != nil:
		return nil, at, err
	}
	return live, at, nil
}

// isGone says whether the API server answered that there is no object of that
// name.
func isGone(err error, name string) bool { return name != "" && notFound(err) == name }

// isUnknown says whether the API server answered that it does not know the
// resource in this version.
func isUnknown(err error) bool { return apierrors.IsNotFound(err) && notFound(err) == "" }

// notFound returns the name of the object that, as the API server says, is not
// there. Of the same code, 404, are the answers that it does not know the path,
// and those of whatever else stands at its address: they name none.
func notFound(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return ""
	}
	d := status.Status().Details
	if d == nil || d.Kind == "" {
		return ""
	}
	return d.Name
}

// absences remember since when kinds are not served. The zero value is ready.
type absences struct {
	mu    sync.Mutex
	since map[schema.GroupKind]time.Time
}

// isServed notes that the kind was met.
func (a *absences) isServed(kind schema.GroupKind) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.since, kind)
}

// notServed notes that the kind is served in no version, and returns an error
// as long as that may pass.
func (a *absences) notServed(kind schema.GroupKind, now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, ok := a.since[kind]
	if !ok {
		if a.since == nil {
			a.since = map[schema.GroupKind]time.Time{}
		}
		since, a.since[kind] = now, now
	}
	if now.Sub(since) < settle {
		return fmt.Errorf("%s: %w; its objects count as gone once that has been so for %s", kind, errNotServed, settle)
	}
	return nil
}
