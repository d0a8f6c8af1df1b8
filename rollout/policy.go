package rollout

import (
	"math"
	"math/bits"
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
