package main

import (
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// bound is a server that gives every claim a member at once.
func bound(t *testing.T, term *terminal) {
	t.Helper()
	term.client = stamping(term.client, func(c client.WithWatch, o *v1alpha1.Claim) {
		given := o.DeepCopy()
		given.Status = claimed("", func(*v1alpha1.Claim) {}).Status
		if err := c.Status().Update(t.Context(), given); err != nil {
			t.Error(err)
		}
	})
}

// said is called with what is printed.
type said func(text string)

func (s said) Write(p []byte) (int, error) {
	s(string(p))
	return len(p), nil
}

func (t *terminal) claimThere(ctx context.Context) bool {
	err := t.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "mine"}, &v1alpha1.Claim{})
	return !apierrors.IsNotFound(err)
}

func TestClaim_command(t *testing.T) {
	t.Parallel()
	p, _ := world(t)
	for name, tt := range map[string]struct {
		reason  string
		command []string
		status  int
		says    string
	}{
		"succeeds": {
			"it knows its member", []string{"sh", "-c", "echo $PAWL_POOL $PAWL_CLAIM $PAWL_MEMBER $PAWL_ADDRESS $PAWL_NAMESPACE"},
			0, "web mine web-1 127.0.0.1:20001 default\n",
		},
		"fails":      {"its exit status is ours", []string{"sh", "-c", "exit 7"}, 7, ""},
		"is killed":  {"as shells say it", []string{"sh", "-c", "kill -9 $$"}, 128 + 9, ""},
		"not there":  {"nothing is left behind", []string{"/no/such/command"}, 1, "error: run /no/such/command: fork/exec /no/such/command: no such file or directory\n"},
		"has flags":  {"they are its own", []string{"echo", "--ttl", "-o", "json"}, 0, "--ttl -o json\n"},
		"is missing": {"there is nothing to run", nil, 2, "error: COMMAND is missing after --\nsee `pawl claim --help`\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, p)
			bound(t, term)
			got := term.do(t.Context(), append([]string{"claim", "web", "--name", "mine", "--"}, tt.command...)...)
			if text := term.out.String() + term.err.String(); got != tt.status || text != tt.says {
				t.Errorf("%s: exit status %d, want %d; it says\n%s, want\n%s", tt.reason, got, tt.status, text, tt.says)
			}
			if term.claimThere(t.Context()) {
				t.Errorf("%s: the claim is not released", tt.reason)
			}
		})
	}
}

// watched changes the status of a claim as soon as somebody watches claims.
func watched(t *testing.T, term *terminal, change func(*v1alpha1.ClaimStatus)) {
	t.Helper()
	term.client = interceptor.NewClient(term.client, interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			w, err := c.Watch(ctx, list, options...)
			if err != nil || ctx.Err() != nil {
				return w, err
			}
			var now v1alpha1.Claim
			if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "mine"}, &now); err != nil {
				return w, err
			}
			change(&now.Status)
			return w, c.Status().Update(ctx, &now)
		},
	})
}

// TestClaim_command_ends: a command whose claim ends before it does is asked to
// end, since its member may be somebody else's next.
func TestClaim_command_ends(t *testing.T) {
	t.Parallel()
	p, _ := world(t)
	term := newTerminal(t, p)
	bound(t, term)
	watched(t, term, func(st *v1alpha1.ClaimStatus) {
		*st = claimed("mine", says(v1alpha1.ClaimExpired, "its time is up")).Status
	})
	var text strings.Builder
	term.ErrOut = said(func(part string) { text.WriteString(part) })
	if got := term.do(t.Context(), "claim", "web", "--name", "mine", "--", "sleep", "60"); got != 128+int(syscall.SIGTERM) {
		t.Errorf("exit status %d", got)
	}
	if want := "error: claim mine has ended (Expired): its time is up; sleep is asked to end\n"; text.String() != want {
		t.Errorf("it says %q, want %q", text.String(), want)
	}
}

// TestClaim_command_renews: the command goes on once the claim was renewed, and
// it is said that its member is wanted back.
func TestClaim_command_renews(t *testing.T) {
	t.Parallel()
	p, _ := world(t)
	p.Spec.Claims = &v1alpha1.Claims{Heartbeat: &metav1.Duration{Duration: time.Hour}}
	term := newTerminal(t, p)
	bound(t, term)
	watched(t, term, func(st *v1alpha1.ClaimStatus) {
		st.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpdateRequested, Status: metav1.ConditionTrue, Message: "member web-1 is stale"}}
	})
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	term.In = in
	var both sync.WaitGroup
	both.Add(2)
	go func() {
		both.Wait()
		_, _ = out.WriteString("go on\n")
	}()
	term.client = interceptor.NewClient(term.client, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			defer both.Done()
			return c.Patch(ctx, o, patch, options...)
		},
	})
	term.ErrOut = said(func(text string) {
		if text != "claim mine: member web-1 is stale\n" {
			t.Errorf("it says %q", text)
		}
		both.Done()
	})
	if got := term.do(t.Context(), "claim", "web", "--name", "mine", "--", "sh", "-c", "read line; echo $line"); got != 0 || term.out.String() != "go on\n" {
		t.Errorf("exit status %d, %s", got, &term.out)
	}
}

// TestClaim_hold_signals: an interrupt comes from the terminal, and the command
// has had it; a request to end is handed on.
func TestClaim_hold_signals(t *testing.T) {
	t.Parallel()
	p, _ := world(t)
	c := claimed("mine", func(*v1alpha1.Claim) {})
	term := newTerminal(t, p, c)
	k, err := term.connect()
	if err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal)
	term.Out = said(func(string) {
		go func() {
			signals <- os.Interrupt
			signals <- syscall.SIGTERM
		}()
	})
	m := &claim{program: term.program}
	err = m.hold(t.Context(), k, c, []string{"sh", "-c", "trap 'exit 3' INT; trap 'exit 4' TERM; echo up; sleep 60 >/dev/null 2>&1 & wait"}, signals)
	if want := exitError(4); err != want { //nolint:errorlint // it is not wrapped
		t.Errorf("it ended with %v instead of %v", err, want)
	}
}

func TestRenew(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		args   []string
		status int
		says   string
		ttl    time.Duration
	}{
		"renews":   {"it is still wanted", []string{"mine"}, 0, "claim mine renewed: member web-1\n", 0},
		"with ttl": {"and for longer", []string{"mine", "--ttl", "3h"}, 0, "claim mine renewed: member web-1\n", 3 * time.Hour},
		"ended":    {"it is too late", []string{"old"}, 1, "error: claim old has ended (Expired): its time is up\n", 0},
		"both":     {"one that has ended keeps no other from being renewed", []string{"old", "mine"}, 1, "claim mine renewed: member web-1\nerror: claim old has ended (Expired): its time is up\n", 0},
		"unknown":  {"the name is wrong", []string{"nope"}, 1, "error: claim \"nope\" not found in namespace default; `kubectl get claims -n default` lists the claims\n", 0},
		"negative": {"that is no time", []string{"mine", "--ttl", "-1s"}, 2, "error: --ttl must not be negative\nsee `pawl renew --help`\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, claimed("mine", func(*v1alpha1.Claim) {}), claimed("old", says(v1alpha1.ClaimExpired, "its time is up")))
			got := term.do(t.Context(), append([]string{"renew"}, tt.args...)...)
			if text := term.out.String() + term.err.String(); got != tt.status || text != tt.says {
				t.Errorf("%s: exit status %d, want %d; it says\n%s, want\n%s", tt.reason, got, tt.status, text, tt.says)
			}
			var c v1alpha1.Claim
			if err := term.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "mine"}, &c); err != nil {
				t.Fatal(err)
			}
			if renewed := strings.Contains(tt.says, "mine renewed"); renewed != (c.Spec.RenewTime != nil && c.Spec.RenewTime.Time.Equal(noon)) {
				t.Errorf("%s: renewed at %v", tt.reason, c.Spec.RenewTime)
			}
			if (tt.ttl != 0) != (c.Spec.TTL != nil) || tt.ttl != 0 && c.Spec.TTL.Duration != tt.ttl {
				t.Errorf("%s: ttl %v", tt.reason, c.Spec.TTL)
			}
		})
	}
}
