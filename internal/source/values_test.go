package source

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func secretValues(contents map[string]string) *Values {
	p := part{name: "s", kind: kindSecret, secret: true, keys: map[string][]byte{}}
	for key, content := range contents {
		p.keys[key] = []byte(content)
	}
	return newValues([]part{p})
}

func TestValues_Redact(t *testing.T) {
	v := secretValues(map[string]string{
		"password": "hunter2\n", "short": "abc", "quoted": `a"b\c`, "pem": "-----BEGIN-----\nMIIBszCCAVmgAwIBAgIU\n-----END-----\n", "part": "hunter2 and more", "wide": " a  b  c \n",
	})
	cases := map[string]struct{ reason, in, want string }{
		"Nothing":   {"a message without secrets is left alone", "exit status 1", "exit status 1"},
		"Whole":     {"a secret is taken out", "got hunter2\n!", "got [secret]!"},
		"Trimmed":   {"without its line's end too", `password "hunter2" is wrong, hunter2`, `password "[secret]" is wrong, [secret]`},
		"Longest":   {"the longest first", "hunter2 and more", "[secret]"},
		"Line":      {"so is a line of it", "near MIIBszCCAVmgAwIBAgIU, line 2", "near [secret], line 2"},
		"One line":  {"and all of it on one line", "-----BEGIN----- MIIBszCCAVmgAwIBAgIU -----END-----", "[secret]"},
		"Quoted":    {"and in quotes", strconv.Quote(`a"b\c`) + ` a"b\c`, `"[secret]" [secret]`},
		"Base64":    {"and in base64", base64.StdEncoding.EncodeToString([]byte("hunter2\n")), "[secret]"},
		"Wide":      {"with its own white space and with less", "a  b  c, a b c", "[secret], [secret]"},
		"Cut":       {"what a cut leaves of a long one", "near MIIBszCCAVmgAw…, and CCAVmgAwIBAgIU", "near[secret]…, and [secret]"},
		"Too short": {"what is shorter than 4 bytes is not looked for", "abc", "abc"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := v.Redact(c.in); got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
	plain := newValues([]part{{name: "c", kind: kindConfigMap, keys: map[string][]byte{"k": []byte("plain text")}}, {name: "f", kind: "Widget", secret: true, value: "image:1"}})
	for want, values := range map[string][]*Values{"plain text image:1": {nil, {}}, "plain text [secret]": {plain}} {
		for _, v := range values {
			if got := v.Redact("plain text image:1"); got != want {
				t.Errorf("what is treated as secret is taken out of messages, and nothing else: got %q, want %q", got, want)
			}
		}
	}
	field := newValues([]part{{name: "f", kind: kindSecret, secret: true, value: map[string]any{"password": base64.StdEncoding.EncodeToString([]byte("hunter2"))}}})
	if got := field.Redact("hunter2"); got != redacted {
		t.Errorf("a field of a Secret is base64: got %q", got)
	}
}

// TestValues_Redact_property: whatever the secret, and however it is quoted in
// a message, it is not there afterwards.
func TestValues_Redact_property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringN(minSecret, 40, 80).Filter(func(s string) bool { return len(strings.TrimSpace(s)) >= minSecret }).Draw(t, "secret")
		before, after := rapid.StringN(0, 10, -1).Draw(t, "before"), rapid.StringN(0, 10, -1).Draw(t, "after")
		v := secretValues(map[string]string{"k": secret})
		for _, form := range []string{"%s", "%q"} {
			message := before + fmt.Sprintf(form, secret) + after
			got := v.Redact(message)
			if strings.Contains(got, secret) && !strings.Contains(before+redacted+after, secret) {
				t.Fatalf("%q is left in %q", secret, got)
			}
			if !strings.Contains(got, redacted) {
				t.Fatalf("nothing was taken out of %q", message)
			}
		}
	})
}
