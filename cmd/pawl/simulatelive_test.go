package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	liveplay "github.com/pawl-dev/pawl/internal/live"
	"github.com/pawl-dev/pawl/simulate"
)

func TestSimulateLive_BadFlags(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"speed":     {"time goes on", []string{"--speed", "-1"}, "--speed must be more than 0"},
		"no speed":  {"it has to be a number", []string{"--speed", "NaN"}, "--speed must be more than 0"},
		"output":    {"there are two", []string{"-o", "yaml"}, "--output must be text or json"},
		"no pawld":  {"there is none there", []string{"--pawld", "nowhere/pawld"}, "nowhere/pawld: no such file"},
		"no folder": {"an empty folder is a mistake", []string{t.TempDir()}, "there is no .yaml file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newSimulateCommand()
			c.SetArgs(append([]string{"--live", "story.yaml"}, tt.args...))
			c.SetOut(&bytes.Buffer{})
			c.SetErr(&bytes.Buffer{})
			if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", tt.reason, err, tt.want)
			}
		})
	}
}

// A file has one line if it fared well, and says what went wrong if not.
func TestPrintLive(t *testing.T) {
	t.Parallel()
	played := func(failures ...simulate.Failure) *liveplay.Report {
		return &liveplay.Report{
			File: "f", Scenario: &simulate.Scenario{Name: "story", Live: true},
			Result: &liveplay.Result{Failures: failures, End: simulate.Time(3600e9), Took: 1234e6},
		}
	}
	broken := simulate.Failure{At: simulate.Time(60e9), Kind: "always", Expression: "free > 0", Line: 7, State: "pool: free 0\n  0 Failed"}
	tests := map[string]struct {
		report *liveplay.Report
		want   string
	}{
		"passed":   {played(), "ok    story, 1h0m0s in 1.2s\n"},
		"failed":   {played(broken), "FAIL  story\n      1m0s: always: free > 0 (f:7)\n        pool: free 0\n          0 Failed\n"},
		"aborted":  {&liveplay.Report{Scenario: &simulate.Scenario{Name: "story", Live: true}, Err: errors.New("no server")}, "FAIL  story\n      no server\n"},
		"waiting":  {&liveplay.Report{Scenario: &simulate.Scenario{Name: "story", Needs: []string{"groups"}}}, "wait  story: needs groups\n"},
		"left out": {&liveplay.Report{Scenario: &simulate.Scenario{Name: "story"}}, "skip  story: it says live: false\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, problems bytes.Buffer
			if err := printLive(&out, &problems, tt.report); err != nil || out.String() != tt.want || problems.Len() > 0 {
				t.Errorf("got %q, %q, %v; want %q", out.String(), problems.String(), err, tt.want)
			}
		})
	}
}
