package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSimulation_Run(t *testing.T) {
	dir := t.TempDir()
	write := func(name, rest string) string {
		path := filepath.Join(dir, name+".yaml")
		text := "name: " + name + "\npool: {replicas: 1}\n" + rest
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good", "expect: {finally: [\"free == 1\"]}\n")
	bad := write("bad", "expect:\n  finally: [\"free == 2\"]\n")
	waits := write("waits", "expect: {grants: 1}\n")
	wrong := write("wrong", "expekt: {}\n")
	cases := map[string]struct {
		reason        string
		s             simulation
		args          []string
		want          error
		out, problems string
	}{
		"passes": {"all hold", simulation{seed: 1, seeds: 2, output: "text"}, []string{good}, nil,
			"ok    good\nscenarios: 1 passed, 0 failed, 0 waiting\n", ""},
		"fails": {"the line and the state are told", simulation{seed: 1, seeds: 2, output: "text"}, []string{good, bad}, errSomeFailed,
			"seed 1, 0s: finally: free == 2 (" + bad + ":4)\n        pool: target A", ""},
		"waits": {"it neither passes nor fails", simulation{seed: 1, seeds: 1, output: "text"}, []string{good, waits}, errSomeWait,
			"wait  waits: needs expect.grants\nscenarios: 1 passed, 0 failed, 1 waiting\n", ""},
		"may wait": {"somebody knows that it waits", simulation{seed: 1, seeds: 1, output: "text", allowWaiting: true}, []string{good, waits}, nil,
			"scenarios: 1 passed, 0 failed, 1 waiting\n", ""},
		"waits and fails": {"a failure outweighs what waits", simulation{seed: 1, seeds: 1, output: "text"}, []string{bad, waits}, errSomeFailed,
			"scenarios: 0 passed, 1 failed, 1 waiting\n", ""},
		"wrong": {"a wrong file outweighs a failure", simulation{seed: 1, seeds: 1, output: "text"}, []string{bad, wrong}, errSomeWrong,
			"FAIL  bad", wrong + `:3: scenario: unknown field "expekt"`},
		"narrates": {"the story comes before the verdict", simulation{seed: 4, seeds: 1, narrate: true, output: "text"}, []string{good}, nil,
			"good, seed 4\n", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out, problems bytes.Buffer
			if err := c.s.run(c.args, &out, &problems); !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", c.reason, err, c.want)
			}
			if !strings.Contains(out.String(), c.out) {
				t.Errorf("%s: printed\n%s\nwant\n%s", c.reason, out.String(), c.out)
			}
			if !strings.Contains(problems.String(), c.problems) {
				t.Errorf("%s: complained\n%s\nwant\n%s", c.reason, problems.String(), c.problems)
			}
		})
	}
	t.Run("json", func(t *testing.T) {
		var out bytes.Buffer
		s := simulation{seed: 1, seeds: 1, output: "json"}
		if err := s.run([]string{dir}, &out, &out); !errors.Is(err, errSomeWrong) {
			t.Fatalf("a directory stands for its files: %v", err)
		}
		var doc struct {
			Scenarios []struct{ Verdict string }
			Passed    int
		}
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Scenarios) != 4 || doc.Passed != 1 || doc.Scenarios[0].Verdict != "failed" {
			t.Errorf("got %+v", doc)
		}
	})
}

func TestSimulation_Run_BadFlags(t *testing.T) {
	for name, s := range map[string]simulation{
		"output": {seeds: 1, output: "yaml"},
		"seeds":  {seeds: 0, output: "text"},
	} {
		if err := s.run([]string{"x.yaml"}, nil, nil); err == nil || !strings.Contains(err.Error(), "--"+name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
