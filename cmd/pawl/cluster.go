package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// cluster is the API server that a command talks to.
type cluster struct {
	client.WithWatch

	// rest reads what the typed client does not: tables.
	rest rest.Interface
	// namespace is the one that the flags or the kubeconfig say.
	namespace string
	// name is what the program was called by, for what errors advise.
	name string
}

// dial makes the clients that the kubeconfig flags say. It does not talk to
// the server yet.
func (p *program) dial() (*cluster, error) {
	config, err := p.config()
	if err != nil {
		return nil, err
	}
	namespace, _, err := p.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, p.badKubeconfig(err)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	quiet()
	c := &cluster{namespace: namespace, name: p.name}
	if c.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: newMapper()}); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if c.rest, err = newREST(config, scheme); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, nil
}

// quiet keeps controller-runtime from telling a person, after half a minute,
// that nobody has asked it to log.
var quiet = sync.OnceFunc(func() { ctrllog.SetLogger(logr.Discard()) })

// config reads the kubeconfig.
func (p *program) config() (*rest.Config, error) {
	loader := p.flags.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, p.badKubeconfig(err)
	}
	if len(raw.Clusters) == 0 && *p.flags.APIServer == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" && os.Getenv("KUBERNETES_MASTER") == "" {
		return nil, fmt.Errorf("no kubeconfig (looked for %s); name one with --kubeconfig or KUBECONFIG", p.kubeconfigs())
	}
	context := raw.CurrentContext
	if *p.flags.Context != "" {
		context = *p.flags.Context
	}
	if raw.Contexts[context] == nil && context != "" {
		return nil, fmt.Errorf("kubeconfig %s: there is no context %q in it; it has: %s",
			p.kubeconfigs(), context, strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "))
	}
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, p.badKubeconfig(err)
	}
	config.UserAgent = "pawl/" + release
	config.QPS = -1
	return config, nil
}

// badKubeconfig says which file cannot be used.
func (p *program) badKubeconfig(err error) error {
	const cure = "mend it, or name another one with --kubeconfig or KUBECONFIG"
	if path := new(fs.PathError); errors.As(err, &path) && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("kubeconfig %s: no such file; name one that exists with --kubeconfig or KUBECONFIG", path.Path)
	}
	return fmt.Errorf("kubeconfig %s: %w; %s", p.kubeconfigs(), err, cure)
}

// kubeconfigs names the files that the kubeconfig is read from.
func (p *program) kubeconfigs() string {
	access := p.flags.ToRawKubeConfigLoader().ConfigAccess()
	if access.IsExplicitFile() {
		return access.GetExplicitFile()
	}
	return strings.Join(access.GetLoadingPrecedence(), ", ")
}

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	err := errors.Join(v1alpha1.AddToScheme(s), corev1.AddToScheme(s), appsv1.AddToScheme(s), eventsv1.AddToScheme(s), authenticationv1.AddToScheme(s), metav1.AddMetaToScheme(s))
	if err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	return s, nil
}

// newMapper knows the few kinds that the commands use, so that none has to ask
// the server what it has first.
func newMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Pool", "Member", "Claim"} {
		m.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	m.Add(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), meta.RESTScopeNamespace)
	m.Add(eventsv1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	m.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), meta.RESTScopeRoot)
	return m
}

// newREST is a plain client of Pawl's API.
func newREST(config *rest.Config, scheme *runtime.Scheme) (rest.Interface, error) {
	c := rest.CopyConfig(config)
	c.APIPath = "/apis"
	c.GroupVersion = &v1alpha1.GroupVersion
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(c)
}

// pool reads a pool.
func (c *cluster) pool(ctx context.Context, name string) (*v1alpha1.Pool, error) {
	var p v1alpha1.Pool
	err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, &p)
	if err != nil {
		return nil, c.about(err, "pool", name)
	}
	return &p, nil
}

// members reads a pool's members, in the order of their index.
func (c *cluster) members(ctx context.Context, pool string) ([]*v1alpha1.Member, error) {
	var list v1alpha1.MemberList
	if err := c.List(ctx, &list, client.InNamespace(c.namespace), ofPool(pool)); err != nil {
		return nil, fmt.Errorf("list members of pool %s: %w", pool, err)
	}
	members := make([]*v1alpha1.Member, len(list.Items))
	for i := range list.Items {
		members[i] = &list.Items[i]
	}
	sortMembers(members)
	return members, nil
}

func sortMembers(list []*v1alpha1.Member) {
	slices.SortFunc(list, func(a, b *v1alpha1.Member) int { return int(a.Spec.Index) - int(b.Spec.Index) })
}

// ofPool selects the members or claims of a pool.
func ofPool(name string) client.ListOption { return client.MatchingFields{"spec.pool": name} }

// named selects one object.
func named(name string) client.ListOption { return client.MatchingFields{"metadata.name": name} }

// about says which object is not there, and where to see what is.
func (c *cluster) about(err error, kind, name string) error {
	if !apierrors.IsNotFound(err) || unknownKind(err) {
		return fmt.Errorf("%s %s: %w", kind, name, err)
	}
	list := "`" + c.name + " get` lists the pools"
	if kind == "claim" {
		list = "`kubectl get claims -n " + c.namespace + "` lists the claims"
	}
	return fmt.Errorf("%s %q not found in namespace %s; %s", kind, name, c.namespace, list)
}
