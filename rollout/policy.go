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
	// Written: somebody wrote it down. Otherwise it is a default.
	Written bool
}

// zero tells whether it was written down as 0 or 0 %.
func (s Share) zero() bool { return s.Written && s.N == 0 }

// Up is the share of n, rounded up.
func (s Share) Up(n int) int {
	if !s.Percent {
		return s.N
	}
	return percent(s.N, n, 99)
}

// percent is p percent of n, with so many hundredths added before it is rounded
// down; no larger than an int holds, and not below 0.
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

// Budget resolves maxUnavailable (rounded down) and maxSurge (rounded up) of n
// members. If both come out 0 and neither was written as 0, one member may be
// unavailable. Zero is true if both were written as 0, which pauses a rollout.
func Budget(unavailable, surge Share, n int) (maxUnavailable, maxSurge int, zero bool) {
	u, s := unavailable.Down(n), surge.Up(n)
	if u == 0 && s == 0 && !unavailable.zero() && !surge.zero() {
		u = 1
	}
	return u, s, unavailable.zero() && surge.zero()
}

// The usual values of a policy's fields where 0 means nothing.
const (
	UsualFailureLimit     = 3
	UsualProgressDeadline = 10 * time.Minute
)

// Usual is the policy with the usual values where a field is 0 that cannot be:
// MaxInFlight as many as may be out of service or made above the size, 1 at least,
// FailureLimit 3, ProgressDeadline ten minutes. [Snapshot.Plan] goes by it. That
// both MaxUnavailable and MaxSurge are 0 stays so: such a policy can never take a
// member, and the plan says FloorUnreachable.
func (p Policy) Usual() Policy {
	p.MaxInFlight = cmp.Or(p.MaxInFlight, max(p.MaxUnavailable, p.MaxSurge, 1))
	p.FailureLimit = cmp.Or(p.FailureLimit, UsualFailureLimit)
	p.ProgressDeadline = cmp.Or(p.ProgressDeadline, UsualProgressDeadline)
	return p
}

// usual is the snapshot with the usual policy.
func (s *Snapshot) usual() *Snapshot {
	p := s.Policy.Usual()
	if p == s.Policy {
		return s
	}
	out := *s
	out.Policy = p
	return &out
}
