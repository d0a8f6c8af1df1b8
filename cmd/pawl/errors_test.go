package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// call runs a command line with the real connection, and returns what it
// printed.
func call(t *testing.T, name string, args ...string) (status int, out, problems string) {
	t.Helper()
	var o, e bytes.Buffer
	p := newProgram(name, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &o, ErrOut: &e})
	status = p.run(t.Context(), args)
	return status, o.String(), e.String()
}

func TestRun_usage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		called string
		args   []string
		says   string
	}{
		"unknown command": {"it says which one was meant", "pawl", []string{"stauts"}, "error: there is no command \"stauts\"; did you mean \"status\"?\nsee `pawl --help`\n"},
		"like nothing":    {"and nothing where it cannot tell", "pawl", []string{"frobnicate"}, "error: there is no command \"frobnicate\"\nsee `pawl --help`\n"},
		"as a plugin":     {"advice is what a person can type", "/usr/bin/kubectl-pawl", []string{"status"}, "error: POOL is missing\nsee `kubectl pawl status --help`\n"},
		"two pools":       {"status shows one", "pawl", []string{"status", "a", "b"}, "error: one POOL at a time, not 2: a b\nsee `pawl status --help`\n"},
		"unknown flag":    {"the flag is named", "pawl", []string{"get", "--wide"}, "error: unknown flag: --wide\nsee `pawl get --help`\n"},
		"bad output":      {"what it may be is said", "pawl", []string{"get", "-o", "xml"}, "error: invalid argument \"xml\" for \"-o, --output\" flag: must be one of json, yaml, wide, name\nsee `pawl get --help`\n"},
		"bad index":       {"how to write it is said", "pawl", []string{"explain", "web/x"}, "error: web/x: \"x\" is no index; write POOL/INDEX, such as web/0\nsee `pawl explain --help`\n"},
		"bad wait":        {"nobody waits for less than no time", "pawl", []string{"claim", "web", "--wait", "-1s"}, "error: --wait and --ttl must not be negative\nsee `pawl claim --help`\n"},
		"all, and one":    {"they contradict each other", "pawl", []string{"get", "-A", "web"}, "error: --all-namespaces lists all pools; leave web out, or say in which --namespace\nsee `pawl get --help`\n"},
		"watch as json":   {"a watch is for people", "pawl", []string{"status", "web", "-w", "-o", "json"}, "error: --watch is for people; leave out --output json\nsee `pawl status --help`\n"},
		"timeout alone":   {"nothing would time out", "pawl", []string{"status", "web", "--timeout", "1s"}, "error: --timeout 1s: needs --watch, and must not be negative\nsee `pawl status --help`\n"},
		"nothing to do":   {"release takes names", "pawl", []string{"release"}, "error: CLAIM is missing\nsee `pawl release --help`\n"},
		"log format":      {"what it may be is said", "pawl", []string{"controller", "--log-format", "xml"}, "error: --log-format \"xml\": must be json or text\nsee `pawl controller --help`\n"},
		"no arguments":    {"version takes none", "pawl", []string{"version", "1"}, "error: unknown command \"1\" for \"pawl version\"\nsee `pawl version --help`\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, out, problems := call(t, tt.called, tt.args...)
			if status != 2 || problems != tt.says || out != "" {
				t.Errorf("%s: exit status %d\n%s%s", tt.reason, status, out, problems)
			}
		})
	}
}

func TestRun_help(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"help.txt": {"--help"}, "help-claim.txt": {"claim", "--help"}} {
		status, out, problems := call(t, "pawl", args...)
		if status != 0 || problems != "" {
			t.Errorf("%v: exit status %d, %s", args, status, problems)
		}
		golden(t, name, out)
	}
	if _, out, _ := call(t, "kubectl-pawl", "get", "--help"); !strings.Contains(out, "  kubectl pawl get [POOL...]") {
		t.Errorf("as a plugin it shows\n%s", out)
	}
	if _, out, _ := call(t, "pawl", "options"); !strings.Contains(out, "--kubeconfig") || !strings.Contains(out, "--context") {
		t.Errorf("the options are\n%s", out)
	}
}

// kubeconfig writes one for the server.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := strings.NewReplacer("SERVER", server).Replace(`apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: SERVER}}]
contexts: [{name: here, context: {cluster: here, user: me}}]
users: [{name: me, user: {token: secret}}]
`)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRun_kubeconfig(t *testing.T) { //nolint:paralleltest // it sets the environment
	t.Setenv("KUBECONFIG", "/nowhere/config")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("clusters: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	good := kubeconfig(t, "http://127.0.0.1:1")
	for name, tt := range map[string]struct {
		args []string
		says []string
	}{
		"none":            {nil, []string{"error: no kubeconfig (looked for /nowhere/config); name one with --kubeconfig or KUBECONFIG"}},
		"missing":         {[]string{"--kubeconfig", "/nowhere/else"}, []string{"error: kubeconfig /nowhere/else: no such file; name one that exists with --kubeconfig"}},
		"broken":          {[]string{"--kubeconfig", broken}, []string{"error: kubeconfig " + broken, "yaml", "; mend it, or name another one"}},
		"no such context": {[]string{"--kubeconfig", good, "--context", "there"}, []string{"error: kubeconfig " + good, `there is no context "there" in it; it has: here`}},
		"unreachable":     {[]string{"--kubeconfig", good}, []string{"error: cannot reach http://127.0.0.1:1 (kubeconfig " + good + ")", "connection refused", "; start the server"}},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // see above
			for _, command := range [][]string{{"get"}, {"status", "web"}, {"claim", "web"}, {"pause", "web"}} {
				status, _, problems := call(t, "pawl", append(command, tt.args...)...)
				if status != 1 {
					t.Errorf("%v: exit status %d", command, status)
				}
				for _, want := range tt.says {
					if !strings.Contains(problems, want) {
						t.Errorf("%v: it says %q, want %q", command, problems, want)
					}
				}
				if strings.Count(problems, "\n") != 1 {
					t.Errorf("%v: more than a line: %s", command, problems)
				}
			}
		})
	}
}

func TestRun_server(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, tt := range map[string]struct {
		reason string
		serve  http.HandlerFunc
		args   []string
		says   string
	}{
		"no such API": {
			"the definitions are not installed", answer(http.StatusNotFound, "404 page not found"), []string{"get"},
			"does not have Pawl's API; install it with `kubectl apply --server-side -k config`",
		},
		"no such API, one": {
			"a missing definition is no missing pool", answer(http.StatusNotFound, "404 page not found"), []string{"status", "web"},
			"does not have Pawl's API; install it with `kubectl apply --server-side -k config`",
		},
		"no such pool": {
			"the object and the cure are named",
			answer(http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","details":{"name":"webb","group":"pawl.dev","kind":"pools"},"code":404}`),
			[]string{"get", "webb", "-n", "shop"}, "error: pool \"webb\" not found in namespace shop; `pawl get` lists the pools\n",
		},
		"not known": {
			"credentials expire", answer(http.StatusUnauthorized, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","message":"Unauthorized","code":401}`),
			[]string{"get"}, "error: the server does not know who you are (kubeconfig ",
		},
		"forbidden": {
			"the server's own words name the right", answer(http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"pools.pawl.dev is forbidden: User \"me\" cannot list","code":403}`),
			[]string{"get"}, `User "me" cannot list`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.serve)
			defer server.Close()
			status, _, problems := call(t, "pawl", append(tt.args, "--kubeconfig", kubeconfig(t, server.URL))...)
			if status != 1 || !strings.Contains(problems, tt.says) {
				t.Errorf("%s: exit status %d, it says %q, want %q", tt.reason, status, problems, tt.says)
			}
		})
	}
}
