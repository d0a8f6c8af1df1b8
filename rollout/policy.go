package rollout

import (
	"cmp"
	"math"
	"math/bits"
	"time"
)

// Share is a number of members, or a percentage of the desired number.
type Share struct {
	// N is the number, or the percentage.
	N       int
	Percent bool
	// Written: the field is set in the spec, not a default.
	Written bool
}

// zero reports whether the share is written as 0 or 0 %.
func (s Share) zero() bool { return s.Written && s.N == 0 }

// Up returns the share of n, rounded up.
func (s Share) Up(n int) int {
	if !s.Percent {
		return s.N
	}
	return percent(s.N, n, 99)
}

// percent returns (p × n + add) / 100, rounded down, from 0 to the largest int.
func percent(p, n, add int) int {
	if p <= 0 || n <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(p), uint64(n))
	low, carry := bits.Add64(low, uint64(add), 0)
	if high += carry; high >= 100 {
		return math.MaxInt
	}
	share, _ := bits.Div64(high, low, 100)
	return int(min(share, math.MaxInt))
}

// Budget resolves maxUnavailable (rounded down) and maxSurge (rounded up) of n members. If
// both result in 0 and neither is written as 0, one member may be unavailable. Zero reports
// that both are written as 0, which pauses a rollout.
func Budget(unavailable, surge Share, n int) (maxUnavailable, maxSurge int, zero bool) {
	u, s := unavailable.Down(n), surge.Up(n)
	if u == 0 && s == 0 && !unavailable.zero() && !surge.zero() {
		u = 1
	}
	return u, s, unavailable.zero() && surge.zero()
}

// The defaults of policy fields for which 0 has no meaning.
const (
	UsualFailureLimit     = 3
	UsualProgressDeadline = 10 * time.Minute
)

// Usual returns the policy with defaults for fields that cannot be 0: MaxInFlight is
// max(MaxUnavailable, MaxSurge, 1), FailureLimit 3, ProgressDeadline ten minutes.
// [Snapshot.Plan] uses it. MaxUnavailable and MaxSurge may both stay 0: such a policy can
// never take a member, and the plan says FloorUnreachable.
func (p Policy) Usual() Policy {
	p.MaxInFlight = cmp.Or(p.MaxInFlight, max(p.MaxUnavailable, p.MaxSurge, 1))
	p.FailureLimit = cmp.Or(p.FailureLimit, UsualFailureLimit)
	p.ProgressDeadline = cmp.Or(p.ProgressDeadline, UsualProgressDeadline)
	return p
}

// usual returns the snapshot with the usual policy.
func (s *Snapshot) usual() *Snapshot {
	p := s.Policy.Usual()
	if p == s.Policy {
		return s
	}
	out := *s
	out.Policy = p
	return &out
}
