//go:build integration

package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/operator"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// TestClaim_outage: while the controllers cannot reach the API server no
// heartbeat runs out, whether the server refuses connections or says nothing.
func TestClaim_outage(t *testing.T) {
	server := pawldtest.Start(t, pawldtest.WithSim(), pawldtest.WithoutControllers())
	w := newWorld(t, server.Config)
	link := newLink(t, server.Config)
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.Discard()))
	done := make(chan error, 1)
	go func() {
		done <- operator.Run(ctx, link.config(server.Config), operator.Options{Sim: true, MetricsAddr: "0", HealthAddr: "0"})
	}()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the controllers: %v", err)
		}
	}()
	const heartbeat = 3 * time.Second
	pool := w.simPool("web", 2)
	pool.Spec.Claims = &v1alpha1.Claims{Heartbeat: ttl(heartbeat)}
	w.create(pool)
	w.updated("web", 2)
	for name, cut := range map[string]func(){"refused": link.refuse, "silent": link.freeze} {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			c := w.claim(name, "web")
			time.Sleep(heartbeat / 2) // nothing renews it
			cut()
			time.Sleep(2 * heartbeat)
			link.restore()
			time.Sleep(heartbeat / 2)
			w.stands(c)
			w.eventually("its holder is dead", func() error { return w.bound(c, v1alpha1.ClaimExpired, "NotRenewed", "") })
		})
	}
}

// link is what lies between the controllers and the API server.
type link struct {
	t        *testing.T
	listener net.Listener
	server   string

	mu      sync.Mutex
	refused bool
	open    map[net.Conn]bool
	// flows is closed while bytes flow.
	flows chan struct{}
}

func newLink(t *testing.T, c *rest.Config) *link {
	t.Helper()
	at, err := url.Parse(c.Host)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{t: t, server: at.Host, open: map[net.Conn]bool{}, flows: make(chan struct{})}
	close(l.flows)
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	go l.accept()
	t.Cleanup(func() {
		l.restore()
		_ = l.listener.Close()
		l.refuse()
	})
	return l
}

// config reaches the API server over the link.
func (l *link) config(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.Host = "https://" + l.listener.Addr().String()
	return c
}

func (l *link) accept() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		refused := l.refused
		l.mu.Unlock()
		if refused {
			_ = from.Close()
			continue
		}
		to, err := net.Dial("tcp", l.server)
		if err != nil {
			_ = from.Close()
			continue
		}
		l.mu.Lock()
		l.open[from], l.open[to] = true, true
		l.mu.Unlock()
		go l.copy(from, to)
		go l.copy(to, from)
	}
}

// copy passes bytes on while they flow.
func (l *link) copy(from, to net.Conn) {
	defer func() {
		_, _ = from.Close(), to.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, from)
		delete(l.open, to)
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		flows := l.flows
		l.mu.Unlock()
		<-flows
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				l.t.Logf("link: %v", err)
			}
			return
		}
	}
}

// refuse closes all connections, and every new one.
func (l *link) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = true
	for c := range l.open {
		_ = c.Close()
	}
}

// freeze keeps all connections open and passes nothing on.
func (l *link) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flows = make(chan struct{})
}

func (l *link) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = false
	select {
	case <-l.flows:
	default:
		close(l.flows)
	}
}
