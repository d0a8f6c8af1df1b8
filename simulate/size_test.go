package simulate

import (
	"fmt"
	"testing"
)

// many is a pool of so many members that is edited twice.
func many(n int) string {
	return fmt.Sprintf(`name: many
why: a large pool
pool: {replicas: %[1]d, update: {type: RollingUpdate, maxUnavailable: 10%%}}
world: {boot: 30s, stop: 10s}
timeline:
  - {at: 10s, revise: B}
  - {at: 60s, revise: C}
run: 2h
expect:
  always: ["inService >= 1"]
  within: {2h: ["updated == %[1]d && free == %[1]d"]}
`, n)
}

func BenchmarkScenario_Large(b *testing.B) {
	for _, n := range []int{1250, 5000, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, err := Parse("", []byte(many(n)))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if r := s.Run(1, false); !r.Passed() {
					b.Fatal(r.Failures[0].short())
				}
			}
		})
	}
}
