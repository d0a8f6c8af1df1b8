//go:build linux

package process

import (
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

func TestPortRange(t *testing.T) {
	for name, c := range map[string]struct{ low, high, wantLow, wantHigh int }{
		"the kernel's default": {32768, 60999, 20000, 32767},
		"from low on":          {1024, 60999, 61000, 65535},
		"everything":           {1024, 65535, 20000, 65535},
		"just below":           {20500, 65000, 20000, 65535},
	} {
		if low, high := portRange(c.low, c.high); low != c.wantLow || high != c.wantHigh {
			t.Errorf("%s: %d to %d, want %d to %d", name, low, high, c.wantLow, c.wantHigh)
		}
	}
	if low, high := ephemeralPorts(); low <= 0 || high <= low {
		t.Errorf("the system's range is %d to %d", low, high)
	}
}

func TestPortBook_Assign(t *testing.T) {
	p := newPortBook()
	a, b := slotKey{"ns", "a"}, slotKey{"ns", "b"}
	got := func(key slotKey, names ...string) map[string]int {
		ports, err := p.assign(key, names)
		if err != nil {
			t.Fatal(err)
		}
		return ports
	}
	first := got(a, "web", "admin")
	if first["web"] == first["admin"] {
		t.Errorf("two names have one port: %v", first)
	}
	if again := got(a, "web", "admin"); !cmp.Equal(first, again) {
		t.Errorf("asked again: %v, want %v kept", again, first)
	}
	fewer := got(a, "admin", "more")
	if fewer["admin"] != first["admin"] || len(fewer) != 2 || len(p.taken) != 2 {
		t.Errorf("other names: %v of %v; %v taken", fewer, first, p.taken)
	}
	// Somebody else takes one while the slot has no body.
	l, err := net.Listen("tcp4", loopback(fewer["admin"]))
	if err != nil {
		t.Fatal(err)
	}
	moved := got(a, "admin", "more")
	if moved["admin"] == fewer["admin"] || moved["more"] != fewer["more"] {
		t.Errorf("with port %d taken: %v of %v", fewer["admin"], moved, fewer)
	}
	// Not a slot's any more, but still not free.
	p.next = fewer["admin"]
	if other := got(b, "x"); other["x"] == fewer["admin"] {
		t.Error("a port in use was given out")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// What two records have, only one keeps.
	p.hold(b, map[string]int{"x": moved["more"]})
	if x, m := got(b, "x"), got(a, "more"); x["x"] == m["more"] {
		t.Error("two slots have one port")
	}
	p.hold(a, nil)
	p.hold(b, nil)
	if len(p.taken) != 0 || len(p.bySlot) != 0 {
		t.Errorf("still taken: %v, %v", p.taken, p.bySlot)
	}
}

func TestPortBook_Exhausted(t *testing.T) {
	p := newPortBook()
	p.high = p.low + 1
	p.next = p.low
	a := slotKey{"ns", "a"}
	if _, err := p.assign(a, []string{"x", "y", "z"}); !errors.Is(err, body.ErrNoRoom) {
		t.Errorf("three ports of two: %v, want ErrNoRoom", err)
	}
	if len(p.taken) != 0 {
		t.Errorf("still taken: %v", p.taken)
	}
}

func TestPortBook_Concurrent(t *testing.T) {
	p := newPortBook()
	var mu sync.Mutex
	seen := map[int]bool{}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			ports, err := p.assign(slotKey{"ns", strconv.Itoa(i)}, []string{"a", "b", "c"})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, port := range ports {
				if seen[port] {
					t.Errorf("port %d was given out twice", port)
				}
				seen[port] = true
			}
		})
	}
	all.Wait()
}

func TestBindable_UDP(t *testing.T) {
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if bindable(c.LocalAddr().(*net.UDPAddr).Port) {
		t.Error("a port that UDP has is bindable")
	}
}

func TestKind_PortsStayWithTheSlot(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := helperProcess("serve", "${ports.web}")
	p.Ports = []string{"web"}
	p.Readiness = &v1alpha1.Readiness{Period: seconds(0.02), TCP: &v1alpha1.TCPProbe{Port: "web"}}
	address := ""
	for slot.Incarnation = 1; slot.Incarnation <= 3; slot.Incarnation++ {
		o := r.create(slot, p)
		if address != "" && o.Address != address {
			t.Errorf("incarnation %d is at %s, want %s", slot.Incarnation, o.Address, address)
		}
		address = o.Address
		r.wait(slot, body.Ready)
		r.delete(slot, o.UID)
		r.wait(slot, body.Absent)
		r.restart()
	}
	l, err := net.Listen("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	o := r.create(slot, p)
	if o.Address == address {
		t.Errorf("it is at %s, which somebody else has", address)
	}
	r.wait(slot, body.Ready)
}
