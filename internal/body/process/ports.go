//go:build linux

package process

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/pawl-dev/pawl/internal/body"
)

// portBook gives out loopback ports, never one to two slots. A slot keeps its
// ports from body to body, unless something else has taken one meanwhile.
type portBook struct {
	low, high int // the range, both included

	mu     sync.Mutex
	taken  map[int]slotKey
	bySlot map[slotKey]map[string]int
	next   int
}

func newPortBook() *portBook {
	low, high := portRange(ephemeralPorts())
	return &portBook{
		low: low, high: high,
		taken: map[int]slotKey{}, bySlot: map[slotKey]map[string]int{},
		// Not always the same one first: others may look for ports likewise.
		next: low + rand.IntN(high-low+1), //nolint:gosec // no secret
	}
}

// portRange is where ports are taken from: outside of those that the system
// gives to whoever connects, where it leaves room; no port of such a
// connection is ever found taken then.
func portRange(ephemeralLow, ephemeralHigh int) (low, high int) {
	const first, last, enough = 20000, 65535, 1000
	switch {
	case ephemeralLow-first >= enough:
		return first, ephemeralLow - 1
	case last-ephemeralHigh >= enough:
		return ephemeralHigh + 1, last
	}
	return first, last
}

// ephemeralPorts is the system's range for outgoing connections.
func ephemeralPorts() (low, high int) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		_, err = fmt.Sscan(string(b), &low, &high)
	}
	if err != nil {
		return 32768, 60999 // the kernel's default
	}
	return low, high
}

// hold notes ports that a slot has from earlier.
func (p *portBook) hold(key slotKey, ports map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(key, ports)
}

// held gives the ports of a slot.
func (p *portBook) held(key slotKey) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.bySlot[key])
}

func (p *portBook) set(key slotKey, ports map[string]int) {
	for _, port := range p.bySlot[key] {
		if p.taken[port] == key {
			delete(p.taken, port)
		}
	}
	delete(p.bySlot, key)
	for _, port := range ports {
		p.taken[port] = key
	}
	if len(ports) > 0 {
		p.bySlot[key] = maps.Clone(ports)
	}
}

// assign gives the slot a port for each name, all of which can be bound now:
// those it has, and new ones where it has none or somebody else took it. The
// error wraps body.ErrNoRoom when there are no more.
func (p *portBook) assign(key slotKey, names []string) (map[string]int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	had := p.bySlot[key]
	got := map[string]int{}
	for _, name := range names {
		port, ok := had[name]
		if !ok || p.taken[port] != key || !bindable(port) {
			if port = p.find(); port == 0 {
				for _, port := range got {
					delete(p.taken, port)
				}
				p.set(key, had)
				return nil, fmt.Errorf("%w: no free port from %d to %d", body.ErrNoRoom, p.low, p.high)
			}
		}
		got[name] = port
		p.taken[port] = key
	}
	p.set(key, got)
	return got, nil
}

// find gives a port that no slot has and that can be bound, or 0.
func (p *portBook) find() int {
	for range p.high - p.low + 1 {
		port := p.next
		if p.next++; p.next > p.high {
			p.next = p.low
		}
		if _, ok := p.taken[port]; !ok && bindable(port) {
			return port
		}
	}
	return 0
}

// bindable tells whether a port of the loopback interface is free, for TCP and
// for UDP.
func bindable(port int) bool {
	l, err := net.Listen("tcp4", loopback(port)) //nolint:noctx // nothing to wait for
	if err != nil {
		return false
	}
	c, err := net.ListenPacket("udp4", loopback(port)) //nolint:noctx // nothing to wait for
	if err == nil {
		err = c.Close()
	}
	return l.Close() == nil && err == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
