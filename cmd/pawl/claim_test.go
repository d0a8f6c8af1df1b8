package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// claimed is a claim as a controller leaves it.
func claimed(name string, change func(*v1alpha1.Claim)) *v1alpha1.Claim {
	c := &v1alpha1.Claim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u1"},
		Spec:       v1alpha1.ClaimSpec{Pool: "web", Holder: "ci"},
		Status:     v1alpha1.ClaimStatus{Phase: v1alpha1.ClaimBound, Member: "web-1", Address: "127.0.0.1:20001", ExpiresAt: micro(time.Hour)},
	}
	change(c)
	return c
}

func says(phase v1alpha1.ClaimPhase, message string) func(*v1alpha1.Claim) {
	return func(c *v1alpha1.Claim) {
		c.Status = v1alpha1.ClaimStatus{Phase: phase, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionBound, Status: metav1.ConditionFalse, Reason: "R", Message: message}}}
	}
}

func TestClaim(t *testing.T) {
	t.Parallel()
	p, _ := world(t)
	free := "claim mine: member web-1, address 127.0.0.1:20001, for 60m\nrelease it with `pawl release mine`\n"
	for name, tt := range map[string]struct {
		reason string
		there  *v1alpha1.Claim
		args   []string
		status int
		says   string
		// stays: the claim is there afterwards.
		stays bool
	}{
		"asked again": {
			reason: "the name is the key: the same claim is told about",
			there:  claimed("mine", func(*v1alpha1.Claim) {}), args: []string{"web", "--name", "mine"}, says: free, stays: true,
		},
		"asked again, name": {
			reason: "-o name prints what kubectl takes",
			there:  claimed("mine", func(*v1alpha1.Claim) {}), args: []string{"web", "--name", "mine", "-o", "name"}, says: "claim.pawl.dev/mine\n", stays: true,
		},
		"of another pool": {
			reason: "a name that is taken gives nobody another pool's member",
			there:  claimed("mine", func(c *v1alpha1.Claim) { c.Spec.Pool = "db" }), args: []string{"web", "--name", "mine"},
			status: 1, says: "error: claim mine exists, and is one of pool db; choose another --name\n", stays: true,
		},
		"of another user": {
			reason: "two users of one member would each believe to be alone",
			there:  claimed("mine", func(c *v1alpha1.Claim) { c.Spec.Holder = "somebody" }), args: []string{"web", "--name", "mine"},
			status: 1, says: "error: claim mine exists, and is held by somebody, not by you (ci); choose another --name\n", stays: true,
		},
		"ended": {
			reason: "a claim that has ended does not come back",
			there:  claimed("mine", says(v1alpha1.ClaimExpired, "its time is up; make another claim")), args: []string{"web", "--name", "mine"},
			status: 1, says: "error: claim mine has ended (Expired): its time is up; make another claim; it was there before, and stays\n", stays: true,
		},
		"waited before": {
			reason: "what this call did not make, it does not take back",
			there:  claimed("mine", says(v1alpha1.ClaimPending, "no member of Pool web is free")), args: []string{"web", "--name", "mine", "--wait", "1s"},
			status: 1, says: "error: claim mine got no member of pool web within 1s: no member of Pool web is free; it was there before, and stays\n", stays: true,
		},
		"no controller": {
			reason: "nobody answers, and the claim does not stay behind",
			args:   []string{"web", "--name", "mine", "--wait", "1s"},
			status: 1, says: "error: claim mine got no member of pool web within 1s: no controller has answered; is `pawl controller` or pawld running?; it was taken back\n",
		},
		"no pool": {
			reason: "a claim of a pool that is not there would wait for ever",
			args:   []string{"webb", "--name", "mine"},
			status: 1, says: "error: pool \"webb\" not found in namespace default; `pawl get` lists the pools\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				objects := []client.Object{p.DeepCopy()}
				if tt.there != nil {
					objects = append(objects, tt.there)
				}
				term := newTerminal(t, objects...)
				term.client = stamping(term.client, nil)
				got := term.do(t.Context(), append([]string{"claim"}, tt.args...)...)
				if text := term.out.String() + term.err.String(); got != tt.status || text != tt.says {
					t.Errorf("%s: exit status %d, want %d; it says\n%s, want\n%s", tt.reason, got, tt.status, text, tt.says)
				}
				err := term.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "mine"}, &v1alpha1.Claim{})
				if stays := !apierrors.IsNotFound(err); stays != tt.stays {
					t.Errorf("%s: the claim is there afterwards: %t (%v)", tt.reason, stays, err)
				}
			})
		})
	}
}

// stamping is a server that knows the user as ci, and gives claims a UID. It
// calls created for each new one.
func stamping(c client.WithWatch, created func(client.WithWatch, *v1alpha1.Claim)) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			switch o := o.(type) {
			case *authenticationv1.SelfSubjectReview:
				o.Status.UserInfo.Username = "ci"
				return nil
			case *v1alpha1.Claim:
				o.UID = "new"
				if err := c.Create(ctx, o, options...); err != nil {
					return err
				}
				if created != nil {
					created(c, o)
				}
				return nil
			}
			return c.Create(ctx, o, options...)
		},
	})
}

func TestClaim_bound(t *testing.T) {
	t.Parallel()
	p, _ := world(t)
	synctest.Test(t, func(t *testing.T) {
		term := newTerminal(t, p)
		term.client = stamping(term.client, func(c client.WithWatch, o *v1alpha1.Claim) {
			o = o.DeepCopy()
			go func() {
				time.Sleep(time.Second) // virtual: a controller answers
				o.Status = claimed("", func(*v1alpha1.Claim) {}).Status
				if err := c.Status().Update(t.Context(), o); err != nil {
					t.Error(err)
				}
			}()
		})
		if got := term.do(t.Context(), "claim", "web", "--ttl", "2h"); got != 0 {
			t.Fatalf("exit status %d: %s", got, &term.err)
		}
		if want := "member web-1, address 127.0.0.1:20001"; !strings.Contains(term.out.String(), want) {
			t.Errorf("it says %q, want %q", &term.out, want)
		}
		var list v1alpha1.ClaimList
		if err := term.client.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
			t.Fatalf("claims %+v, %v", list.Items, err)
		}
		if c := list.Items[0]; !strings.HasPrefix(c.Name, "web-") || c.Spec.TTL.Duration != 2*time.Hour || c.Spec.Wait.Duration != defaultWait {
			t.Errorf("claim %s with ttl %v, wait %v", c.Name, c.Spec.TTL, c.Spec.Wait)
		}
	})
}

// TestClaim_none: the controllers say why there is no member, a moment after
// the wait is over, and the claim does not stay behind.
func TestClaim_none(t *testing.T) {
	t.Parallel()
	p, _ := world(t)
	for name, tt := range map[string]struct {
		reason, wait string
		says         time.Duration
	}{
		"after a while": {"the claim waits, and not the program", "5s", 6 * time.Second},
		"at once":       {"it wants a member now or never", "0", 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				term := newTerminal(t, p)
				term.client = stamping(term.client, func(c client.WithWatch, o *v1alpha1.Claim) {
					o = o.DeepCopy()
					go func() {
						time.Sleep(tt.says) // virtual: a controller answers
						says(v1alpha1.ClaimFailed, "no member of Pool web is free")(o)
						if err := c.Status().Update(t.Context(), o); err != nil {
							t.Error(err)
						}
					}()
				})
				if got := term.do(t.Context(), "claim", "web", "--name", "mine", "--wait", tt.wait); got != 1 {
					t.Errorf("%s: exit status %d", tt.reason, got)
				}
				if want := "error: claim mine has ended (Failed): no member of Pool web is free; it was taken back\n"; term.err.String() != want {
					t.Errorf("%s: it says %q, want %q", tt.reason, &term.err, want)
				}
				if term.claimThere(t.Context()) {
					t.Errorf("%s: it stays", tt.reason)
				}
			})
		})
	}
}

func TestClaim_interrupt(t *testing.T) {
	t.Parallel()
	p, _ := world(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		term := newTerminal(t, p)
		term.client = stamping(term.client, func(client.WithWatch, *v1alpha1.Claim) { time.AfterFunc(time.Second, interrupt) })
		if got := term.do(ctx, "claim", "web", "--name", "mine"); got != 1 {
			t.Errorf("exit status %d", got)
		}
		if want := "error: interrupted; claim mine was taken back\n"; term.err.String() != want {
			t.Errorf("it says %q, want %q", &term.err, want)
		}
		var list v1alpha1.ClaimList
		if err := term.client.List(t.Context(), &list); err != nil || len(list.Items) != 0 {
			t.Errorf("claims %+v, %v", list.Items, err)
		}
	})
}

func TestRelease(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		keep   bool
		args   []string
		status int
		out    string
		err    string
	}{
		"several": {"one that is not there keeps no other from being released", false, []string{"nope", "mine"}, 1,
			"claim mine released: member web-1\n", "error: claim \"nope\" not found in namespace default; `kubectl get claims -n default` lists the claims\n"},
		"kept": {"a release is told once it is done, not before", true, []string{"mine"}, 1,
			"", "error: claim mine is not released within 30s; is `pawl controller` or pawld running?\n"},
		"not waited for": {"--wait 0 does not wait", true, []string{"mine", "--wait", "0"}, 0,
			"claim mine is being released: member web-1\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				term := newTerminal(t, claimed("mine", func(c *v1alpha1.Claim) {
					if tt.keep {
						c.Finalizers = []string{v1alpha1.FinalizerBinding}
					}
				}))
				got := term.do(t.Context(), append([]string{"release"}, tt.args...)...)
				if got != tt.status || term.out.String() != tt.out || term.err.String() != tt.err {
					t.Errorf("%s: exit status %d\n%s%s", tt.reason, got, &term.out, &term.err)
				}
			})
		})
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	p, _ := world(t)
	term := newTerminal(t, p)
	for _, step := range []struct {
		args []string
		out  string
	}{
		{[]string{"resume", "web"}, "pool web is not paused\n"},
		{[]string{"pause", "web"}, "pool web paused\n"},
		{[]string{"pause", "web"}, "pool web is paused already\n"},
		{[]string{"resume", "web"}, "pool web resumed\n"},
	} {
		if got := term.do(t.Context(), step.args...); got != 0 || term.out.String() != step.out {
			t.Errorf("%v: exit status %d, %s%s", step.args, got, &term.out, &term.err)
		}
	}
	if got := term.do(t.Context(), "pause", "nope", "web"); got != 1 || !strings.Contains(term.err.String(), `pool "nope" not found`) || term.out.String() != "pool web paused\n" {
		t.Errorf("exit status %d, %s%s", got, &term.out, &term.err)
	}
	var after v1alpha1.Pool
	if err := term.client.Get(t.Context(), client.ObjectKeyFromObject(p), &after); err != nil || !*after.Spec.Update.Paused || *after.Spec.Update.Type != v1alpha1.UpdateRollingUpdate {
		t.Errorf("pool %+v, %v", after.Spec.Update, err)
	}
}
