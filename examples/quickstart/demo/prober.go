package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// pollInterval is how often every member is asked over HTTP.
const pollInterval = 50 * time.Millisecond

// body is a process that answered.
type body struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	Member  string `json:"member"`
}

// prober asks the processes themselves, whatever the API says of them: never
// more than one of the unclaimed ones may be out of service, and the claimed
// one must stay as it is.
//
// A member is taken to be out of service only when it fails two rounds in a
// row. Two that do so in the same rounds were out of service together, at
// least from the end of the first round to the beginning of the second.
type prober struct {
	addresses func() map[string]string
	client    *http.Client

	mu     sync.Mutex
	failed map[string]bool // in the last round
	seen   map[string][]body
	// judging: all members were in service once. While the pool is filled, none is.
	judging       bool
	rounds, worst int
	// held is the member that must stay as it is, and as what.
	held   string
	asHeld body
}

func newProber(addresses func() map[string]string) *prober {
	return &prober{
		addresses: addresses, failed: map[string]bool{}, seen: map[string][]body{},
		client: &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// run asks until ctx ends. It calls fail when a promise is broken.
func (p *prober) run(ctx context.Context, fail context.CancelCauseFunc) {
	t := time.NewTicker(pollInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := p.round(ctx); err != nil {
			fail(err)
		}
	}
}

// round asks every member once, all at the same time.
func (p *prober) round(ctx context.Context) error {
	addresses := p.addresses()
	p.mu.Lock()
	held := p.held // as it was before anybody was asked
	p.mu.Unlock()
	answers := make(map[string]body, len(addresses))
	var mu sync.Mutex
	var wait sync.WaitGroup
	for name, address := range addresses {
		wait.Go(func() {
			if b, err := p.ask(ctx, address); err == nil && b.Member == name {
				mu.Lock()
				answers[name] = b
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.judge(addresses, answers, held)
}

// judge notes what a round found.
func (p *prober) judge(addresses map[string]string, answers map[string]body, held string) error {
	if p.judging {
		p.rounds++
	}
	var out []string
	for name := range addresses {
		b, ok := answers[name]
		if ok && !slices.Contains(p.seen[name], b) {
			p.seen[name] = append(p.seen[name], b)
		}
		if held == name && p.held == name && b != p.asHeld {
			return fmt.Errorf("promise broken: the claimed member %s is left alone: it was %+v and is %+v (answered: %t)", name, p.asHeld, b, ok)
		}
		if p.judging && !ok && p.failed[name] && name != held {
			out = append(out, name)
		}
		p.failed[name] = !ok
	}
	p.worst = max(p.worst, len(out))
	if len(out) > 1 {
		slices.Sort(out)
		return fmt.Errorf("promise broken: never more than one of the unclaimed members out of service: %v were together", out)
	}
	return nil
}

// ask asks a process who it is.
func (p *prober) ask(ctx context.Context, address string) (b body, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return b, err
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return b, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return b, fmt.Errorf("status %s", answer.Status)
	}
	return b, json.NewDecoder(answer.Body).Decode(&b)
}

// hold has the member watched for staying as it is, until letGo.
func (p *prober) hold(member string, as body) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.asHeld = member, as
}

func (p *prober) letGo() { p.hold("", body{}) }

// judgeFromNow has the promises hold from now on.
func (p *prober) judgeFromNow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judging = true
	clear(p.failed)
}

// bodies are the processes that answered for the member, in their order.
func (p *prober) bodies(member string) []body {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen[member])
}

// polls is how many rounds there were and how many members were out of service
// together at most.
func (p *prober) polls() (rounds, worst int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rounds, p.worst
}
