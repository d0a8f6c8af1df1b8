package member

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/source"
)

// frozen is what there is of one revision's sources.
type frozen struct {
	values *source.Values
	err    error
	asked  string
}

func (f *frozen) Frozen(_ context.Context, pool types.NamespacedName, id string, list []source.Source) (*source.Values, error) {
	f.asked = fmt.Sprintf("%s %s %v", pool, id, list)
	return f.values, f.err
}

func TestStep_sources(t *testing.T) {
	unreachable := errors.New("connection refused")
	values := &source.Values{ByName: map[string]any{"boot": "x"}}
	const recorded = `{"hash":{"version":1},"template":{"sim":{}},"sources":[{"name":"boot","kind":"ConfigMap","object":"b","digests":{"k":"sha256:1"}}]}`
	const asked = "shop/web r1 [{boot ConfigMap b  false map[k:sha256:1]}]"
	cases := map[string]struct {
		reason  string
		data    string
		frozen  frozen
		want    map[string]any
		lacking bool
		err     error
		asked   string
	}{
		"None":        {"a revision without sources asks nobody", `{"hash":{"version":1},"template":{"sim":{}}}`, frozen{}, nil, false, nil, ""},
		"Kept":        {"what was kept is what bodies are made of", recorded, frozen{values: values}, values.ByName, false, nil, asked},
		"Gone":        {"what is gone is lacking, and no error", recorded, frozen{err: fmt.Errorf("x: %w", source.ErrMissing)}, nil, true, nil, asked},
		"Unreachable": {"what cannot be told is an error, and not gone", recorded, frozen{err: unreachable}, nil, false, unreachable, asked},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &step{r: &Reconciler{Sources: &c.frozen}, pool: &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}}
			rev := &appsv1.ControllerRevision{
				ObjectMeta: metav1.ObjectMeta{Name: "web-r1", Labels: map[string]string{v1alpha1.LabelRevision: "r1"}},
				Data:       runtime.RawExtension{Raw: []byte(c.data)},
			}
			got, lacking, err := s.sources(context.Background(), rev)
			if diff := cmp.Diff(c.want, got); diff != "" || (lacking != nil) != c.lacking || !errors.Is(err, c.err) {
				t.Errorf("%s: lacking %v, error %v, values (-want +got):\n%s", c.reason, lacking, err, diff)
			}
			if c.frozen.asked != c.asked {
				t.Errorf("%s: asked for %q, want %q", c.reason, c.frozen.asked, c.asked)
			}
		})
	}
}

func TestStep_discreetly(t *testing.T) {
	s := &step{secrets: []*source.Values{nil, source.NewValues(nil, []byte("hunter2"))}}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "widgets"}, "hunter2", errors.New("x"))
	err := s.discreetly(fmt.Errorf("make it: %w", conflict))
	if want := `make it: Operation cannot be fulfilled on widgets "[secret]": x`; err == nil || err.Error() != want {
		t.Errorf("what is logged holds nothing secret: got %v, want %s", err, want)
	}
	if !apierrors.IsConflict(err) {
		t.Error("and is still what it was")
	}
	plain := errors.New("plain")
	if got := s.discreetly(plain); got.Error() != "plain" || s.discreetly(nil) != nil {
		t.Errorf("got %v", got)
	}
}
