package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/fieldpath"
)

// CheckLive implements body.Liver: any field of an object can be live, but for
// those by which it is known.
func (k *Kind) CheckLive(template *v1alpha1.Template) error {
	_, err := body.LiveFields(template, "objects", mayLive)
	return err
}

func mayLive(p fieldpath.Path) error {
	if len(p) < 3 {
		return errors.New("name a field of an object, such as objects[0].metadata.labels: the objects themselves are part of the revision")
	}
	in := p[2:]
	for _, fixed := range []string{"apiVersion", "kind", "metadata.name", "metadata.namespace"} {
		f, err := fieldpath.Parse(fixed)
		if err != nil {
			return err
		}
		if f.Within(in) || in.Within(f) {
			return fmt.Errorf("an object is known by its %s, which cannot change while it is there", fixed)
		}
	}
	if in[0].Name == "status" {
		return errors.New("an object's status is for others to write")
	}
	return nil
}

// liveIn are the live fields of an object of the template. What cannot be one
// is left out: CheckLive tells of it.
func liveIn(template *v1alpha1.Template, i int) []fieldpath.Path {
	if len(template.LiveFields) == 0 {
		return nil
	}
	paths, _ := body.LiveFields(template, "objects", mayLive)
	var in []fieldpath.Path
	for _, p := range paths {
		if p[1].Index == i {
			in = append(in, p[2:])
		}
	}
	return in
}

// liveDigest sums up what the manifest says at its live fields; empty without
// any.
func (m manifest) liveDigest() string {
	if len(m.live) == 0 {
		return ""
	}
	var said []any
	for _, p := range m.live {
		value, err := p.Get(m.Object)
		said = append(said, p.String(), err == nil, value)
	}
	// What was decoded from JSON can be encoded.
	text, _ := json.Marshal(said) //nolint:errchkjson // see above
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// ApplyLive implements body.Liver. Each object remembers what was applied last,
// so that one that has it is only read. Fields that are not live and that
// somebody else has changed or removed since they were applied stay as they are.
func (k *Kind) ApplyLive(ctx context.Context, slot body.Slot, template *v1alpha1.Template) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if slot.ServiceAccount == "" {
		return errNoAccount
	}
	manifests, err := k.plan(ctx, slot, template)
	if err != nil {
		return err
	}
	acc, err := k.accounts.get(slot.Namespace, slot.ServiceAccount)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range manifests {
		if len(m.live) > 0 {
			errs = append(errs, acc.applyLive(ctx, slot, m))
		}
	}
	return errors.Join(errs...)
}

func (a *account) applyLive(ctx context.Context, slot body.Slot, m manifest) error {
	client := a.client(m.resource, m.GetNamespace())
	live, err := client.Get(ctx, m.GetName(), metav1.GetOptions{})
	switch {
	case isGone(err, m.GetName()):
		return nil
	case err != nil:
		return classify("read", m, err)
	case !isMarked(live, slot), incarnationOf(live) != slot.Incarnation, live.GetDeletionTimestamp() != nil:
		return nil
	case live.GetAnnotations()[AnnotationLive] == m.GetAnnotations()[AnnotationLive]:
		return nil
	}
	object := conditional(m, live)
	keep := append(slices.Clone(m.live), fieldpath.Path{{Name: "metadata"}, {Name: "annotations"}, {Name: AnnotationLive}})
	if err := keepOwned(object, live.GetManagedFields(), keep); err != nil {
		return fmt.Errorf("%s: %s: %w", m.field, m, err)
	}
	if _, err := client.Apply(ctx, m.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return classify("update the live fields of", m, err)
	}
	return nil
}
