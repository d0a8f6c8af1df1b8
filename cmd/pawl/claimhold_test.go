package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// TestClaim_renewing: a claim is renewed in time, whatever becomes of the pool
// and of the server meanwhile.
func TestClaim_renewing(t *testing.T) {
	t.Parallel()
	const heartbeat = 30 * time.Second
	away := errors.New("the server is away")
	for name, tt := range map[string]struct {
		reason string
		// asks is the heartbeat so long after the start, reads and writes whether
		// the server does either then.
		asks          func(time.Duration) time.Duration
		reads, writes func(time.Duration) error
		// from and silence: from then on there are never so long between renewals.
		from, silence time.Duration
		complaints    int
	}{
		"as asked": {
			reason: "one renewal that is lost does not matter",
			asks:   func(time.Duration) time.Duration { return heartbeat }, silence: heartbeat/beatsPerHeartbeat + time.Millisecond,
		},
		"pool cannot be read": {
			reason: "the last known interval holds",
			asks:   func(time.Duration) time.Duration { return heartbeat },
			reads: func(at time.Duration) error {
				if at > 0 {
					return away
				}
				return nil
			},
			silence: heartbeat/beatsPerHeartbeat + time.Millisecond,
		},
		"pool can never be read": {
			reason:  "what is not known may be asked for",
			asks:    func(time.Duration) time.Duration { return heartbeat },
			reads:   func(time.Duration) error { return away },
			silence: heartbeat / beatsPerHeartbeat,
		},
		"read fails once": {
			reason: "the next one is soon",
			asks:   func(time.Duration) time.Duration { return heartbeat },
			reads: func(at time.Duration) error {
				if at < time.Second {
					return away
				}
				return nil
			},
			silence: heartbeat/beatsPerHeartbeat + time.Millisecond,
		},
		"asked for later": {
			reason: "it is noticed within seconds",
			asks: func(at time.Duration) time.Duration {
				if at < 61*time.Second {
					return 0
				}
				return heartbeat
			},
			from: 61 * time.Second, silence: heartbeat / beatsPerHeartbeat,
		},
		"made shorter": {
			reason: "it is noticed within seconds",
			asks: func(at time.Duration) time.Duration {
				if at < 61*time.Second {
					return time.Hour
				}
				return heartbeat
			},
			from: 61 * time.Second, silence: heartbeat / beatsPerHeartbeat,
		},
		"server is away": {
			reason: "it is tried again soon, and complained of once",
			asks:   func(time.Duration) time.Duration { return heartbeat },
			writes: func(at time.Duration) error {
				if at > 30*time.Second && at < 45*time.Second {
					return away
				}
				return nil
			},
			silence: 16 * time.Second, complaints: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, _ := world(t)
				c := claimed("mine", func(*v1alpha1.Claim) {})
				term := newTerminal(t, p, c)
				start := time.Now()
				var beats []time.Duration
				term.client = interceptor.NewClient(term.client, interceptor.Funcs{
					Get: func(ctx context.Context, server client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
						at := time.Since(start)
						if tt.reads != nil && tt.reads(at) != nil {
							return tt.reads(at)
						}
						err := server.Get(ctx, key, o, options...)
						if p, ok := o.(*v1alpha1.Pool); ok && tt.asks(at) > 0 {
							p.Spec.Claims = &v1alpha1.Claims{Heartbeat: &metav1.Duration{Duration: tt.asks(at)}}
						}
						return err
					},
					Patch: func(ctx context.Context, server client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
						at := time.Since(start)
						if tt.writes != nil && tt.writes(at) != nil {
							return tt.writes(at)
						}
						beats = append(beats, at)
						return server.Patch(ctx, o, patch, options...)
					},
				})
				complaints := 0
				term.ErrOut = said(func(string) { complaints++ })
				k, err := term.connect()
				if err != nil {
					t.Fatal(err)
				}
				const end = 3 * time.Minute
				ctx, stop := context.WithTimeout(t.Context(), end)
				defer stop()
				(&claim{program: term.program}).renewing(ctx, k, c)
				last := tt.from
				for _, at := range append(slices.Clone(beats), end) {
					if at-last > tt.silence {
						t.Errorf("%s: nothing for %s, until %s: %v", tt.reason, at-last, at, beats)
					}
					last = max(last, at)
				}
				if most := int(end / (4 * time.Second)); len(beats) > most {
					t.Errorf("%s: %d renewals, of %d at most", tt.reason, len(beats), most)
				}
				if complaints != tt.complaints {
					t.Errorf("%s: %d complaints, want %d", tt.reason, complaints, tt.complaints)
				}
			})
		})
	}
}

// TestClaim_command_there: what was there before its command is there after it.
func TestClaim_command_there(t *testing.T) {
	t.Parallel()
	p, _ := world(t)
	const stays = "claim mine was there before, and stays; `pawl release mine` releases it\n"
	for name, tt := range map[string]struct {
		reason  string
		command string
		status  int
		says    string
	}{
		"runs":           {"others may rely on it", "true", 0, stays},
		"cannot be run":  {"nobody has even used it", "/no/such/command", 1, stays + "error: run /no/such/command: fork/exec /no/such/command: no such file or directory\n"},
		"fails somewhat": {"what it came to does not matter", "false", 1, stays},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, p, claimed("mine", func(*v1alpha1.Claim) {}))
			term.client = stamping(term.client, nil)
			if got := term.do(t.Context(), "claim", "web", "--name", "mine", "--", tt.command); got != tt.status || term.err.String() != tt.says {
				t.Errorf("%s: exit status %d, it says %q", tt.reason, got, &term.err)
			}
			if !term.claimThere(t.Context()) {
				t.Errorf("%s: the claim is gone", tt.reason)
			}
		})
	}
}

// TestClaim_command_farewell: whatever ends a session hands the signal on, and
// leaves no claim behind. It signals its own process, and so runs alone.
func TestClaim_command_farewell(t *testing.T) { //nolint:paralleltest // see above
	p, _ := world(t)
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			term := newTerminal(t, p)
			bound(t, term)
			term.Out = said(func(string) {
				if err := syscall.Kill(os.Getpid(), s); err != nil {
					t.Error(err)
				}
			})
			script := "trap 'exit 4' HUP QUIT TERM; echo up; sleep 60 >/dev/null 2>&1 & wait"
			if got := term.do(t.Context(), "claim", "web", "--name", "mine", "--", "sh", "-c", script); got != 4 {
				t.Errorf("exit status %d: %s", got, &term.err)
			}
			if term.claimThere(t.Context()) {
				t.Error("the claim is not released")
			}
		})
	}
}

// TestClaim_farewell: a claim that still waits is taken back.
func TestClaim_farewell(t *testing.T) { //nolint:paralleltest // it signals its own process
	p, _ := world(t)
	term := newTerminal(t, p)
	term.client = stamping(term.client, func(client.WithWatch, *v1alpha1.Claim) {
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Error(err)
		}
	})
	if got := term.do(t.Context(), "claim", "web", "--name", "mine"); got != 1 || term.err.String() != "error: interrupted; claim mine was taken back\n" {
		t.Errorf("exit status %d, it says %q", got, &term.err)
	}
}
