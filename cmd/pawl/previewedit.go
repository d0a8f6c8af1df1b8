package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/fieldpath"
)

// edit is what a pool is to be changed by.
type edit struct {
	name, namespace string
	// manifest is the pool as a file says it should be, in JSON; nil for none.
	manifest []byte
	set      []setting
}

// setting is a field that is set.
type setting struct {
	arg, text string
	path      fieldpath.Path
	value     any
}

// editError is an edit that cannot be meant.
type editError struct{ error }

func (e *editError) Unwrap() error { return e.error }

// edit reads the command line.
func (v *previewing) edit(args []string) (*edit, error) {
	e := &edit{}
	if v.file != "" {
		if err := e.read(v.file, v.In); err != nil {
			return nil, fmt.Errorf("-f %s: %w", v.file, err)
		}
	}
	if len(args) > 0 {
		if e.name != "" && e.name != args[0] {
			return nil, fmt.Errorf("-f %s is about pool %s, not about %s", v.file, e.name, args[0])
		}
		e.name = args[0]
	}
	if n := v.flags.Namespace; n != nil && *n != "" && e.namespace != "" && *n != e.namespace {
		return nil, fmt.Errorf("-f %s is about namespace %s, not about %s", v.file, e.namespace, *n)
	}
	for _, arg := range v.set {
		s, err := parseSetting(arg)
		if err != nil {
			return nil, fmt.Errorf("--set %s: %w", arg, err)
		}
		e.set = append(e.set, s)
	}
	return e, nil
}

// parseSetting reads PATH=VALUE. The path may begin with "spec.".
func parseSetting(arg string) (setting, error) {
	path, text, ok := strings.Cut(arg, "=")
	if !ok {
		return setting{}, errors.New("write PATH=VALUE, such as update.maxUnavailable=2")
	}
	s := setting{arg: arg, text: text}
	var err error
	if s.path, err = fieldpath.Parse(path); err != nil {
		return setting{}, err
	}
	if s.path[0].Name != "spec" {
		s.path = append(fieldpath.Path{{Name: "spec"}}, s.path...)
	}
	if err := yaml.Unmarshal([]byte(text), &s.value); err != nil {
		return setting{}, fmt.Errorf("the value is no YAML: %w", err)
	}
	return s, nil
}

// read finds the pool in a file, which may have other objects too.
func (e *edit) read(file string, stdin io.Reader) error {
	data, err := readFile(file, stdin)
	if err != nil {
		return err
	}
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := e.document(doc); err != nil {
			return err
		}
	}
	if e.manifest == nil {
		return fmt.Errorf("there is no Pool of %s in it", v1alpha1.GroupVersion)
	}
	return nil
}

func (e *edit) document(doc []byte) error {
	raw, err := yaml.YAMLToJSON(doc)
	if err != nil {
		return err
	}
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &head); err != nil {
		return fmt.Errorf("not an object: %w", err)
	}
	if head.Kind != "Pool" || head.APIVersion != v1alpha1.GroupVersion.String() {
		return nil
	}
	switch {
	case e.manifest != nil:
		return fmt.Errorf("one pool at a time, not %s and %s", e.name, head.Name)
	case head.Name == "":
		return errors.New("metadata.name is missing")
	}
	if _, err := decodePool(raw); err != nil {
		return err
	}
	e.manifest, e.name, e.namespace = raw, head.Name, head.Namespace
	return nil
}

func readFile(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file)
}

// strict decodes objects, and takes no field that there is not.
var strict = sync.OnceValues(func() (runtime.Decoder, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(), nil
})

// decodePool decodes a pool from JSON.
func decodePool(raw []byte) (*v1alpha1.Pool, error) {
	d, err := strict()
	if err != nil {
		return nil, err
	}
	p := &v1alpha1.Pool{}
	if _, _, err := d.Decode(raw, nil, p); err != nil {
		return nil, mismatch(err)
	}
	return p, nil
}

// typeError is a value that a field does not take.
type typeError struct{ error }

// mismatch says in a person's words what a field does not take.
func mismatch(err error) error {
	if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
		return &typeError{fmt.Errorf("%s takes %s, not a %s", wrong.Field, kindOf(wrong.Type), wrong.Value)}
	}
	if _, rest, ok := strings.Cut(err.Error(), "strict decoding error: "); ok {
		return errors.New(strings.ReplaceAll(rest, "unknown field ", "there is no field "))
	}
	return err
}

// kindOf is what a person calls the values of a type.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a map"
	default:
		return "a value of type " + t.String()
	}
}

// proposal is a pool as it would be.
type proposal struct {
	// live is the pool as it is; nil if there is none.
	live, pool *v1alpha1.Pool
	notes      []string
}

// propose works out what the edit makes of the pool. The server checks it in a
// dry run, where that is allowed.
func (c *cluster) propose(ctx context.Context, e *edit) (*proposal, error) {
	live := &v1alpha1.Pool{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: e.name}, live)
	missing := apierrors.IsNotFound(err) && !unknownKind(err) && e.manifest != nil
	if err != nil && !missing {
		return nil, c.about(err, "pool", e.name)
	}
	if missing {
		return c.first(ctx, e)
	}
	pr := &proposal{live: live, pool: live.DeepCopy()}
	if e.manifest != nil {
		if err := c.apply(ctx, pr, e.manifest); err != nil {
			return nil, err
		}
	}
	if len(e.set) == 0 {
		return pr, nil
	}
	if pr.pool, err = e.settle(pr.pool); err != nil {
		return nil, err
	}
	patch, err := client.MergeFrom(live).Data(pr.pool)
	if err != nil {
		return nil, err
	}
	return pr, c.try(ctx, pr, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("pawl"))
}

// first is a pool that there is not yet.
func (c *cluster) first(ctx context.Context, e *edit) (*proposal, error) {
	p, err := decodePool(e.manifest)
	if err == nil {
		p, err = e.settle(p)
	}
	if err != nil {
		return nil, err
	}
	p.Namespace = c.namespace
	pr := &proposal{pool: p}
	checked := p.DeepCopy()
	err = c.Create(ctx, checked, client.DryRunAll, client.FieldOwner("pawl"))
	return pr, c.checked(ctx, pr, checked, dryRun{"create", err})
}

// dryRun is what the server was asked to try, and what it said.
type dryRun struct {
	verb string
	err  error
}

// checked takes over what the server made of the pool in a dry run.
func (c *cluster) checked(ctx context.Context, pr *proposal, p *v1alpha1.Pool, d dryRun) error {
	err := d.err
	switch {
	case apierrors.IsForbidden(err) && !c.may(ctx, d, pr.pool.Name):
		pr.note("the server has not checked this: you may not ask it for a dry run")
		return nil
	case err != nil:
		return fmt.Errorf("the server would not take this: %w", err)
	}
	pr.pool.Spec = p.Spec
	return nil
}

// may tells whether one may do to the pool what was refused: then it is admission
// that forbids it. Where that cannot be asked, the words of the refusal tell.
func (c *cluster) may(ctx context.Context, d dryRun, pool string) bool {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: d.verb, Namespace: c.namespace, Name: pool, Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: "pools",
		},
	}}
	if c.Create(ctx, review) != nil {
		return !strings.Contains(d.err.Error(), "cannot "+d.verb+" resource")
	}
	return review.Status.Allowed
}

func (pr *proposal) note(text string) {
	if !slices.Contains(pr.notes, text) {
		pr.notes = append(pr.notes, text)
	}
}

// lastApplied is where `kubectl apply` keeps what it applied last.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// apply makes of the pool what applying the manifest would, in the way in which
// it was applied last. Who may not try takes the manifest as it is, with the
// replicas that the pool has if it leaves them out.
func (c *cluster) apply(ctx context.Context, pr *proposal, manifest []byte) error {
	p, err := decodePool(manifest)
	if err != nil {
		return err
	}
	pr.pool.Spec = p.Spec
	if p.Spec.Replicas == nil {
		pr.pool.Spec.Replicas = pr.live.Spec.Replicas // no apply takes the number away: the schema of Pool refuses it
	}
	patch, options, err := patchFor(pr.live, manifest)
	if err != nil {
		return fmt.Errorf("compare with what was applied last: %w", err)
	}
	return c.try(ctx, pr, patch, options...)
}

// try has the server say what a patch would make of the pool.
func (c *cluster) try(ctx context.Context, pr *proposal, patch client.Patch, options ...client.PatchOption) error {
	p := &v1alpha1.Pool{}
	p.Name, p.Namespace = pr.live.Name, pr.live.Namespace
	err := c.Patch(ctx, p, patch, append(options, client.DryRunAll)...)
	return c.checked(ctx, pr, p, dryRun{"patch", err})
}

// patchFor is what applying the manifest would send.
func patchFor(live *v1alpha1.Pool, manifest []byte) (client.Patch, []client.PatchOption, error) {
	last := live.Annotations[lastApplied]
	if owner := applier(live); owner != "" && last == "" {
		return client.RawPatch(types.ApplyPatchType, manifest), []client.PatchOption{client.FieldOwner(owner), client.ForceOwnership}, nil
	}
	if last == "" {
		last = "{}"
	}
	current, err := json.Marshal(live)
	if err != nil {
		return nil, nil, err
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(last), manifest, current)
	return client.RawPatch(types.MergePatchType, patch), []client.PatchOption{client.FieldOwner("pawl")}, err
}

// applier is who has applied the pool's spec by server-side apply, if that was
// one and no more.
func applier(p *v1alpha1.Pool) string {
	owner := ""
	for _, m := range p.ManagedFields {
		if m.Operation != metav1.ManagedFieldsOperationApply || m.Subresource != "" || m.FieldsV1 == nil || !bytes.Contains(m.FieldsV1.GetRawBytes(), []byte(`"f:spec"`)) {
			continue
		}
		if owner != "" {
			return ""
		}
		owner = m.Manager
	}
	return owner
}

// settle sets the fields.
func (e *edit) settle(p *v1alpha1.Pool) (*v1alpha1.Pool, error) {
	for i := range e.set {
		next, err := e.set[i].into(p)
		if err != nil {
			return nil, &editError{fmt.Errorf("--set %s: %w", e.set[i].arg, err)}
		}
		p = next
	}
	return p, nil
}

// into sets the field. A value that the field does not take is tried as the text
// that it was written as, since a version may look like a number.
func (s *setting) into(p *v1alpha1.Pool) (*v1alpha1.Pool, error) {
	next, err := s.with(p, s.value)
	if wrong := new(typeError); errors.As(err, &wrong) {
		if again, other := s.with(p, s.text); other == nil {
			return again, nil
		}
	}
	return next, err
}

// with is the pool with the field set to the value, or without it.
func (s *setting) with(p *v1alpha1.Pool, value any) (*v1alpha1.Pool, error) {
	raw, err := json.Marshal(kinded(p.DeepCopy(), "Pool"))
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, err
	}
	if value == nil {
		tree = s.path.Delete(tree)
	} else if tree, err = s.path.Set(tree, value); err != nil {
		return nil, err
	}
	if raw, err = json.Marshal(tree); err != nil {
		return nil, err
	}
	return decodePool(raw)
}
