package pki

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// files reads the certificates and keys in dir.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", e.Name(), info.Mode().Perm())
		}
		if all[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestLoad_Renews(t *testing.T) {
	const day = 24 * time.Hour
	everything := []string{"ca.crt", "ca.key", "server.crt", "server.key", "admin.crt", "admin.key"}
	cases := map[string]struct {
		reason string
		after  time.Duration
		damage func(dir string) error
		// want are the files that are new; the others must be the old ones.
		want []string
	}{
		"at once":      {"nothing is made twice", 0, nil, nil},
		"in a year":    {"three years last for a year and longer", 365 * day, nil, nil},
		"in two years": {"a year before they expire they are renewed", 2*365*day + day, nil, everything[2:]},
		"in ten years": {"five years before it expires the authority is renewed, and what it signed", 10*365*day + day, nil, everything},
		"in the past":  {"a certificate of the future is none", -2 * time.Hour, nil, everything},
		"no server": {"what is missing is made", 0, func(dir string) error {
			return os.Remove(filepath.Join(dir, "server.crt"))
		}, []string{"server.crt", "server.key"}},
		"cut key": {"what is damaged is made again", 0, func(dir string) error {
			return os.Truncate(filepath.Join(dir, "admin.key"), 20)
		}, []string{"admin.crt", "admin.key"}},
		"other key": {"a key fits its certificate", 0, func(dir string) error {
			return os.Rename(filepath.Join(dir, "admin.key"), filepath.Join(dir, "server.key"))
		}, everything[2:]},
		"no authority": {"without the authority's key nothing lasts", 0, func(dir string) error {
			return os.Remove(filepath.Join(dir, "ca.key"))
		}, everything},
		"no account key": {"tokens are signed by something", 0, func(dir string) error {
			return os.Truncate(filepath.Join(dir, "service-accounts.key"), 0)
		}, []string{"service-accounts.key"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "pki")
			if _, err := Load(dir, start); err != nil {
				t.Fatal(err)
			}
			before := files(t, dir)
			if c.damage != nil {
				if err := c.damage(dir); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Load(dir, start.Add(c.after)); err != nil {
				t.Fatal(err)
			}
			after := files(t, dir)
			want := map[string]bool{}
			for _, f := range c.want {
				want[f] = true
			}
			for f := range before {
				if renewed := !bytes.Equal(before[f], after[f]); renewed != want[f] {
					t.Errorf("%s: %s renewed: %t, want %t", c.reason, f, renewed, want[f])
				}
			}
		})
	}
}

func TestLoad_Verifies(t *testing.T) {
	p, err := Load(filepath.Join(t.TempDir(), "pki"), start)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.Authority.CertPEM)
	cases := map[string]struct {
		pair  *Pair
		usage x509.ExtKeyUsage
		host  string
	}{
		"server": {p.Server, x509.ExtKeyUsageServerAuth, "127.0.0.1"},
		"admin":  {p.Admin, x509.ExtKeyUsageClientAuth, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.pair.cert.Verify(x509.VerifyOptions{
				Roots: roots, CurrentTime: start, DNSName: c.host, KeyUsages: []x509.ExtKeyUsage{c.usage},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	if got := p.Admin.cert.Subject.Organization; len(got) != 1 || got[0] != "system:masters" {
		t.Errorf("the administrator's groups are %v", got)
	}
}
