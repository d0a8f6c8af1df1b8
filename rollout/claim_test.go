package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestStepClaim(t *testing.T) {
	t.Parallel()
	now := epoch.Add(time.Hour)
	bound := Claim{Phase: ClaimBound, Given: true, Made: epoch}
	until := func(d time.Duration) Claim { c := bound; c.ExpiresAt = epoch.Add(d); return c }
	patient := func(d time.Duration) Claim { return Claim{Phase: ClaimPending, Made: epoch, Limited: true, Wait: d} }
	held := ClaimSight{Held: true}
	beats := ClaimRules{Heartbeat: time.Minute}
	asks := ClaimRules{Notify: true}
	type outcome struct {
		Phase ClaimPhase
		Do    ClaimEffect
		Why   ClaimReason
		Asked bool
		Wake  time.Duration
	}
	for name, tt := range map[string]struct {
		reason string
		claim  Claim
		seen   ClaimSight
		rules  ClaimRules
		want   outcome
	}{
		"waits":              {"none is free", Claim{Phase: ClaimPending}, ClaimSight{}, ClaimRules{}, outcome{ClaimPending, RestClaim, NoFreeMember, false, 0}},
		"gets one":           {"one is free", Claim{Phase: ClaimPending}, ClaimSight{Free: 1}, ClaimRules{}, outcome{ClaimPending, BindMember, "", false, 0}},
		"not its turn":       {"the free one is for a claim that was made earlier", Claim{Phase: ClaimPending}, ClaimSight{Free: 1, Ahead: 1}, ClaimRules{}, outcome{ClaimPending, RestClaim, NoFreeMember, false, 0}},
		"enough for both":    {"one is free for each", Claim{Phase: ClaimPending}, ClaimSight{Free: 2, Ahead: 1}, ClaimRules{}, outcome{ClaimPending, BindMember, "", false, 0}},
		"no pool":            {"a pool being deleted gives no member away", Claim{Phase: ClaimPending}, ClaimSight{Free: 1}, ClaimRules{Gone: true}, outcome{ClaimPending, RestClaim, PoolNotFound, false, 0}},
		"still patient":      {"it wakes when its wait is over", patient(2 * time.Hour), ClaimSight{}, ClaimRules{}, outcome{ClaimPending, RestClaim, NoFreeMember, false, 2 * time.Hour}},
		"patience over":      {"the wait ends exactly at that time", patient(time.Hour), ClaimSight{}, ClaimRules{}, outcome{ClaimFailed, RestClaim, WaitOver, false, 0}},
		"over, and one free": {"it gets the member that has just come free", patient(time.Hour), ClaimSight{Free: 1}, ClaimRules{}, outcome{ClaimPending, BindMember, "", false, 0}},
		"does not wait":      {"a wait of 0 ends at once", patient(0), ClaimSight{}, ClaimRules{}, outcome{ClaimFailed, RestClaim, WaitOver, false, 0}},
		"not served":         {"its wait was over before the controller started", patient(time.Minute), ClaimSight{Free: 1}, ClaimRules{Started: now}, outcome{ClaimFailed, RestClaim, NotServed, false, 0}},
		"becomes bound":      {"a member carries it", Claim{Phase: ClaimPending}, held, ClaimRules{}, outcome{ClaimBound, RestClaim, HoldsMember, false, 0}},
		"bound":              {"it wakes when it expires", until(2 * time.Hour), held, ClaimRules{}, outcome{ClaimBound, RestClaim, HoldsMember, false, 2 * time.Hour}},
		"time up":            {"it expires exactly at that time; the member is released after that is recorded", until(time.Hour), held, ClaimRules{}, outcome{ClaimExpired, ReleaseMember, ClaimTimeUp, false, 0}},
		"renewed":            {"it wakes when the next heartbeat is due", bound, ClaimSight{Held: true, Silent: 20 * time.Second}, beats, outcome{ClaimBound, RestClaim, HoldsMember, false, time.Hour + 40*time.Second}},
		"silent":             {"it was not renewed in time", bound, ClaimSight{Held: true, Silent: time.Minute}, beats, outcome{ClaimExpired, ReleaseMember, NotRenewed, false, 0}},
		"lost":               {"a claim that got a member gets no other", bound, ClaimSight{Free: 1}, ClaimRules{}, outcome{ClaimFailed, RestClaim, ClaimBodyGone, false, 0}},
		"lost, and time up":  {"a claim that also expired has expired", until(time.Minute), ClaimSight{Free: 1}, ClaimRules{}, outcome{ClaimExpired, RestClaim, ClaimTimeUp, false, 0}},
		"ended":              {"nothing is left to do", Claim{Phase: ClaimExpired, Given: true}, ClaimSight{Free: 1}, ClaimRules{}, outcome{ClaimExpired, RestClaim, "", false, 0}},
		"ended, still held":  {"a crash came between the two writes", Claim{Phase: ClaimExpired, Given: true}, held, ClaimRules{}, outcome{ClaimExpired, ReleaseMember, "", false, 0}},
		"deleted":            {"whatever its phase", Claim{Phase: ClaimBound, Given: true, Deleted: true}, held, ClaimRules{}, outcome{ClaimBound, RemoveClaim, "", false, 0}},
		"asked":              {"only the claim keeps the member", bound, ClaimSight{Held: true, Blocker: Claimed}, asks, outcome{ClaimBound, RestClaim, HoldsMember, true, 0}},
		"not to be asked":    {"update.onClaimed is Wait", bound, ClaimSight{Held: true, Blocker: Claimed}, ClaimRules{}, outcome{ClaimBound, RestClaim, HoldsMember, false, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := StepClaim(tt.claim, tt.seen, tt.rules, now)
			got := outcome{tr.Claim.Phase, tr.Do, tr.Why, tr.Claim.Asked, 0}
			if !tr.Wake.IsZero() {
				got.Wake = tr.Wake.Sub(epoch)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// TestStepClaim_once: a claim gets at most one member, and
// an ended claim stays ended.
func TestStepClaim_once(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := Claim{Phase: ClaimPending, Made: epoch, Limited: rapid.Bool().Draw(t, "limited"), Wait: time.Duration(rapid.IntRange(0, 3).Draw(t, "wait")) * time.Minute}
		r := ClaimRules{Heartbeat: time.Duration(rapid.IntRange(0, 2).Draw(t, "heartbeat")) * time.Minute, MaxTTL: time.Duration(rapid.IntRange(0, 4).Draw(t, "ttl")) * time.Minute}
		now, held, given, told := epoch, false, 0, 0
		for range 20 {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "later")) * time.Second)
			held = held && rapid.IntRange(0, 5).Draw(t, "lost") > 0
			was := c
			tr := StepClaim(c, ClaimSight{
				Held: held, Free: rapid.IntRange(0, 2).Draw(t, "free"), Ahead: rapid.IntRange(0, 2).Draw(t, "ahead"),
				Silent: time.Duration(rapid.IntRange(0, 150).Draw(t, "silent")) * time.Second,
			}, r, now)
			if was.Ended() && tr.Claim.Phase != was.Phase {
				t.Fatalf("%s becomes %s", was.Phase, tr.Claim.Phase)
			}
			if !tr.Wake.IsZero() && !tr.Wake.After(now) {
				t.Fatalf("wake %s is not after now, %s", tr.Wake, now)
			}
			c = tr.Claim
			switch tr.Do {
			case BindMember:
				held, given = true, given+1
				c.ExpiresAt = r.Expiry(0, now)
			case ReleaseMember:
				held = false
			}
			if c.Phase != ClaimBound || !held {
				continue
			}
			if told > 0 && told != given {
				t.Fatal("the claim gets a second member")
			}
			told = given
		}
	})
}
