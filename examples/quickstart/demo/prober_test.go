package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestProber_judge(t *testing.T) {
	t.Parallel()
	addresses := map[string]string{"a": "1", "b": "2", "c": "3"}
	up := func(names string) map[string]body {
		m := map[string]body{}
		for _, name := range names {
			m[string(name)] = body{Version: "1", PID: int(name), Member: string(name)}
		}
		return m
	}
	for name, tt := range map[string]struct {
		reason string
		rounds []string // who answers
		held   string
		broken string
		worst  int
	}{
		"all serve":      {"nothing to say", []string{"abc", "abc"}, "", "", 0},
		"one is down":    {"that is what a rollout does", []string{"ab", "ab", "ab"}, "", "", 1},
		"one by one":     {"b went after c was back", []string{"ab", "ab", "ac", "ac"}, "", "", 1},
		"changing hands": {"between two rounds c may have come back before b went", []string{"ab", "a", "ac"}, "", "", 1},
		"two together":   {"both failed two rounds in a row, so they were down in between", []string{"a", "a"}, "", "[b c] were together", 2},
		"held, down":     {"the claimed one may not fail once", []string{"bc"}, "a", "the claimed member a is left alone", 0},
		"held, and one":  {"the claimed one is not counted", []string{"ab", "ab"}, "a", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProber(nil)
			p.judgeFromNow()
			if tt.held != "" {
				p.hold(tt.held, up(tt.held)[tt.held])
			}
			var err error
			for _, names := range tt.rounds {
				if e := p.judge(addresses, up(names), tt.held); e != nil {
					err = e
				}
			}
			if text := fmt.Sprint(err); tt.broken == "" && err != nil || !strings.Contains(text, tt.broken) {
				t.Errorf("%s: %v, want %q", tt.reason, err, tt.broken)
			}
			if _, worst := p.polls(); worst != tt.worst {
				t.Errorf("%s: %d out of service together, want %d", tt.reason, worst, tt.worst)
			}
		})
	}
}

func TestProber_judgeAnotherProcess(t *testing.T) {
	t.Parallel()
	p := newProber(nil)
	p.hold("a", body{Version: "1", PID: 1, Member: "a"})
	err := p.judge(map[string]string{"a": "1"}, map[string]body{"a": {Version: "1", PID: 2, Member: "a"}}, "a")
	if err == nil {
		t.Error("the claimed member may be replaced unnoticed")
	}
}
