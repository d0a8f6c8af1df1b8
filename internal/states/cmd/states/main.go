// Command states explores every state that small pools can come to.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/pawl-dev/pawl/internal/states"
)

func main() {
	var b states.Bounds
	flag.IntVar(&b.Slots, "slots", 2, "")
	flag.IntVar(&b.Users, "users", 1, "")
	flag.IntVar(&b.Faults, "faults", 1, "")
	flag.IntVar(&b.States, "states", 0, "")
	only := flag.Int("policy", -1, "")
	flag.Parse()
	list := states.Policies()
	fmt.Println(len(list), "policies")
	for i, p := range list {
		if *only >= 0 && i != *only {
			continue
		}
		for _, fresh := range []bool{false, true} {
			x := states.Exploration{Policy: p, Fresh: fresh, Bounds: b}
			start := time.Now()
			r := x.Run()
			fmt.Fprintf(os.Stdout, "%d %s fresh=%t: %d states, %d edges, complete %t, %.1f s\n", i, p, fresh, r.States, r.Edges, r.Complete, time.Since(start).Seconds())
			for _, f := range r.Findings {
				fmt.Println(f)
			}
		}
	}
}
