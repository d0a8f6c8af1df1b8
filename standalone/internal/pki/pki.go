// Package pki keeps the certificates of a control plane on one machine: an
// authority of its own, and what it signed.
package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// A certificate is replaced once it has less than a third of its time left.
const (
	authorityLifetime = 15 * 365 * 24 * time.Hour
	leafLifetime      = 3 * 365 * 24 * time.Hour
)

// PKI are the certificates and keys in one directory, NAME.crt and NAME.key.
type PKI struct {
	dir string
	// Authority signs the others and nothing else. Server is for the loopback
	// interface. Admin is a member of system:masters.
	Authority, Server, Admin *Pair
}

// Load reads the certificates in dir, and makes those that are missing,
// damaged, not signed by the authority that is there, expired, or about to
// expire. After a third of a certificate's life has begun, a Load renews it.
func Load(dir string, now time.Time) (*PKI, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &PKI{dir: dir}
	for _, c := range []struct {
		name     string
		template x509.Certificate
		pair     **Pair
	}{
		{"ca", authority(), &p.Authority}, // first: it signs the others
		{"server", server(), &p.Server},
		{"admin", admin(), &p.Admin},
	} {
		var err error
		if *c.pair, err = p.ensure(c.name, c.template, now); err != nil {
			return nil, fmt.Errorf("certificate %s: %w", p.CertFile(c.name), err)
		}
	}
	if err := ensureKey(p.AccountKey()); err != nil {
		return nil, fmt.Errorf("key %s: %w", p.AccountKey(), err)
	}
	return p, nil
}

// Dir is the directory.
func (p *PKI) Dir() string { return p.dir }

// CertFile and KeyFile are the files of "ca", "server" or "admin".
func (p *PKI) CertFile(name string) string { return filepath.Join(p.dir, name+".crt") }

// KeyFile is the file of a private key.
func (p *PKI) KeyFile(name string) string { return filepath.Join(p.dir, name+".key") }

// AccountKey is the file of the key that signs the tokens of service accounts.
// It is replaced only if it is missing or damaged: with it, they end.
func (p *PKI) AccountKey() string { return p.KeyFile("service-accounts") }

func authority() x509.Certificate {
	return x509.Certificate{
		Subject:               pkix.Name{CommonName: "pawld"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
}

func server() x509.Certificate {
	return x509.Certificate{
		Subject:     pkix.Name{CommonName: "pawld-server"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
}

func admin() x509.Certificate {
	return x509.Certificate{
		Subject:     pkix.Name{CommonName: "pawl-admin", Organization: []string{"system:masters"}},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// ensure returns the pair called name if it still does, and makes it anew
// otherwise.
func (p *PKI) ensure(name string, template x509.Certificate, now time.Time) (*Pair, error) {
	if old, err := readPair(p.CertFile(name), p.KeyFile(name)); err == nil && old.good(p.Authority, now) {
		return old, nil
	}
	pair, err := newPair(template, p.Authority, now)
	if err != nil {
		return nil, err
	}
	return pair, pair.write(p.CertFile(name), p.KeyFile(name))
}
