package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

func TestRecycle(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		member string
		change func(p *v1alpha1.Pool, objects []client.Object)
		asked  string
		says   []string
	}{
		"next": {
			"there is room, and so it is next", "web/3",
			func(p *v1alpha1.Pool, objects []client.Object) {
				p.Spec.Update.MaxInFlight = new(int32(5))
				p.Spec.Update.MaxUnavailable = nil
				moved := objects[5].(*v1alpha1.Member)
				moved.Spec.Disruption, moved.Status.Revision, moved.Status.Phase = nil, moved.Spec.Revision, v1alpha1.PhaseAvailable
			},
			"1", []string{"member web-3 is to get another body\n", "web-3"},
		},
		"claimed": {
			"a claimed member is never taken: it waits", "web/0", nil, "1",
			[]string{"member web-0 is to get another body\n  member 0 is to be replaced, as asked (pawl recycle): it is claimed, and waits until the claim is released\n"},
		},
		"held": {
			"nor is one that is held, and it is said until when and why", "web/3",
			func(_ *v1alpha1.Pool, objects []client.Object) {
				objects[6].SetAnnotations(map[string]string{v1alpha1.AnnotationHold: `{"reason":"debugging","until":"2031-05-01T16:00:00Z"}`})
			},
			"1", []string{"as asked (pawl recycle): it is held", "\n  web-3 is held until 2031-05-01T16:00:00Z (for 4h): debugging\n"},
		},
		"already": {
			"asking twice is asking once", "web/3",
			func(_ *v1alpha1.Pool, objects []client.Object) {
				objects[6].SetAnnotations(map[string]string{v1alpha1.AnnotationRecycle: "1"})
			},
			"1", []string{"member web-3 is to get another body already\n"},
		},
		"spent": {
			"what was asked of an earlier body is spent", "web/3",
			func(_ *v1alpha1.Pool, objects []client.Object) {
				objects[6].SetAnnotations(map[string]string{v1alpha1.AnnotationRecycle: "0"})
			},
			"1", []string{"member web-3 is to get another body\n"},
		},
		"going": {
			"one that goes anyhow may be asked for", "web/2", nil, "1", []string{"member web-2 is to get another body\n", "being replaced"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, objects := world(t)
			if tt.change != nil {
				tt.change(p, objects)
			}
			term := newTerminal(t, objects...)
			if got := term.do(t.Context(), "recycle", tt.member); got != 0 {
				t.Fatalf("%s: exit status %d: %s", tt.reason, got, &term.err)
			}
			for _, want := range tt.says {
				if !strings.Contains(term.out.String(), want) {
					t.Errorf("%s: it says %q, want %q", tt.reason, &term.out, want)
				}
			}
			if got := memberOf(t, term, strings.Replace(tt.member, "/", "-", 1)).Annotations[v1alpha1.AnnotationRecycle]; got != tt.asked {
				t.Errorf("%s: incarnation %q is asked to go, want %s", tt.reason, got, tt.asked)
			}
		})
	}
}

func TestRecycle_refused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		args   []string
		change func(m *v1alpha1.Member)
		status int
		says   string
	}{
		"no body": {
			"there is nothing to replace", []string{"web/3"},
			func(m *v1alpha1.Member) { m.Status.Phase, m.Status.BodyUID = v1alpha1.PhasePending, "" }, 1,
			"error: member web-3 has no body to replace: member 3 has no body; the next one is to be of revision 9pddxxgw7rvz\n",
		},
		"removed": {
			"a member that goes gets no other body", []string{"web/3"},
			func(m *v1alpha1.Member) {
				m.Spec.Disruption = &v1alpha1.Disruption{Reason: v1alpha1.DisruptionScaleDown, Action: v1alpha1.ActionRemove, Incarnation: 1}
			}, 1, "error: member web-3 is being removed, and gets no other body\n",
		},
		"deleted": {
			"nor does one that is deleted", []string{"web/3"},
			func(m *v1alpha1.Member) {
				m.DeletionTimestamp, m.Finalizers = new(metav1.NewTime(noon)), []string{v1alpha1.FinalizerBody}
			}, 1, "error: member web-3 is being removed, and gets no other body\n",
		},
		"no member":  {"one that is not there", []string{"web/9"}, nil, 1, "error: pool web has no member with index 9; `pawl status web` lists them\n"},
		"no pool":    {"nor its pool", []string{"db/9"}, nil, 1, "error: pool \"db\" not found in namespace default; `pawl get` lists the pools\n"},
		"which":      {"a pool is no member", []string{"web"}, nil, 2, "error: web: which member of it? write POOL/INDEX, such as web/0\nsee `pawl recycle --help`\n"},
		"no timeout": {"nothing would time out", []string{"web/3", "--timeout", "1s"}, nil, 2, "error: --timeout 1s: needs --wait, and must not be negative\nsee `pawl recycle --help`\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, objects := world(t)
			if tt.change != nil {
				tt.change(objects[6].(*v1alpha1.Member))
			}
			term := newTerminal(t, objects...)
			if got := term.do(t.Context(), append([]string{"recycle"}, tt.args...)...); got != tt.status || term.err.String() != tt.says {
				t.Errorf("%s: exit status %d, it says %q, want %q", tt.reason, got, &term.err, tt.says)
			}
		})
	}
}

func TestRecycle_wait(t *testing.T) {
	t.Parallel()
	// become has the member become something, and a moment pass.
	become := func(t *testing.T, c client.Client, change func(m *v1alpha1.Member)) {
		t.Helper()
		time.Sleep(time.Minute)
		var m v1alpha1.Member
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web-3"}, &m); err != nil {
			t.Error(err)
		}
		if change == nil { // it goes
			if err := c.Delete(t.Context(), &m); err != nil {
				t.Error(err)
			}
			return
		}
		status := m.DeepCopy()
		change(status)
		m.Spec, m.Annotations, m.UID = status.Spec, status.Annotations, status.UID
		if err := c.Update(t.Context(), &m); err != nil {
			t.Error(err)
		}
		m.Status = status.Status
		if err := c.Status().Update(t.Context(), &m); err != nil {
			t.Error(err)
		}
	}
	for name, tt := range map[string]struct {
		reason string
		args   []string
		life   []func(m *v1alpha1.Member)
		status int
		out    []string
		says   string
	}{
		"back": {
			"it ends once another body is in service", nil, []func(m *v1alpha1.Member){
				func(m *v1alpha1.Member) { m.Status.Phase = v1alpha1.PhaseTerminating },
				func(m *v1alpha1.Member) { m.Status.Phase, m.Status.Incarnation = v1alpha1.PhaseProvisioning, 2 },
				func(m *v1alpha1.Member) { m.Status.Phase = v1alpha1.PhaseAvailable },
			}, 0, []string{"web-3  Available → Terminating\n", "web-3  Provisioning → Available"}, "",
		},
		"too slow": {
			"or when the time is over", []string{"--timeout", "10m"}, []func(m *v1alpha1.Member){
				func(m *v1alpha1.Member) { m.Status.Phase = v1alpha1.PhaseTerminating },
			}, 1, nil, "error: member web-3 has no other body in service after 10m0s, and is Terminating; it is still asked for\n",
		},
		"removed": {
			"or when another member has its place", nil, []func(m *v1alpha1.Member){
				func(m *v1alpha1.Member) { m.UID = "another" },
			}, 1, nil, "error: member web-3 was removed\n",
		},
		"surge": {
			"a surge member stands in for it, and its slot goes", nil, []func(m *v1alpha1.Member){
				func(m *v1alpha1.Member) {
					m.Spec.Disruption = &v1alpha1.Disruption{Reason: v1alpha1.DisruptionRequested, Action: v1alpha1.ActionRemove, Incarnation: 1}
					m.Status.Phase = v1alpha1.PhaseTerminating
				},
				nil,
			}, 0, []string{"web-3  Available → Terminating", "member web-3 was removed: a surge member serves in its place\n"}, "",
		},
		"another": {
			"the slot went by that way while nobody looked, and there is another one", nil, []func(m *v1alpha1.Member){
				func(m *v1alpha1.Member) {
					m.Spec.Disruption = &v1alpha1.Disruption{Reason: v1alpha1.DisruptionRequested, Action: v1alpha1.ActionRemove, Incarnation: 1}
				},
				func(m *v1alpha1.Member) { m.UID, m.Spec.Disruption = "another", nil },
			}, 0, []string{"member web-3 was removed: a surge member serves in its place\n"}, "",
		},
		"scaled down": {
			"a slot that goes for another reason is not replaced", nil, []func(m *v1alpha1.Member){
				func(m *v1alpha1.Member) {
					m.Spec.Disruption = &v1alpha1.Disruption{Reason: v1alpha1.DisruptionScaleDown, Action: v1alpha1.ActionRemove, Incarnation: 1}
				},
				nil,
			}, 1, nil, "error: member web-3 was removed\n",
		},
		"withdrawn": {
			"or when somebody takes the request back", nil, []func(m *v1alpha1.Member){
				func(m *v1alpha1.Member) { m.Annotations = nil },
			}, 1, nil, "error: member web-3 is no longer to get another body: somebody withdrew it (annotation pawl.dev/recycle)\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, objects := world(t)
				term := newTerminal(t, objects...)
				go func() {
					for _, change := range tt.life {
						become(t, term.client, change)
					}
				}()
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				if got := term.do(ctx, append([]string{"recycle", "web/3", "--wait"}, tt.args...)...); got != tt.status || term.err.String() != tt.says {
					t.Errorf("%s: exit status %d, it says %q, want %q", tt.reason, got, &term.err, tt.says)
				}
				for _, want := range tt.out {
					if !strings.Contains(term.out.String(), want) {
						t.Errorf("%s: it tells %q, want %q", tt.reason, &term.out, want)
					}
				}
			})
		})
	}
}
