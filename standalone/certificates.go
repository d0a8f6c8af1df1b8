package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// A certificate is replaced at start once it has less than a third of its
// time left, so that a pawld that is restarted once a year never serves an
// expired one.
const (
	authorityLifetime = 15 * 365 * 24 * time.Hour
	leafLifetime      = 3 * 365 * 24 * time.Hour
)

// certificates are pawld's own: an authority that signs nothing else, and what
// it signed. Each is kept as NAME.crt and NAME.key.
type certificates struct {
	dir       string
	authority *pair
	server    *pair
	admin     *pair
}

// pair is a certificate and its key, in PEM.
type pair struct {
	certPEM, keyPEM []byte
	cert            *x509.Certificate
	key             crypto.Signer
}

// loadCertificates reads the certificates in dir, and makes those that are
// missing, damaged, expired, or to expire too soon after now.
func loadCertificates(dir string, now time.Time) (*certificates, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	c := &certificates{dir: dir}
	var err error
	if c.authority, err = c.ensure("ca", authorityTemplate(), nil, now); err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	if c.server, err = c.ensure("server", serverTemplate(), c.authority, now); err != nil {
		return nil, fmt.Errorf("server certificate: %w", err)
	}
	if c.admin, err = c.ensure("admin", adminTemplate(), c.authority, now); err != nil {
		return nil, fmt.Errorf("admin certificate: %w", err)
	}
	if err := ensureKey(c.accountKey()); err != nil {
		return nil, fmt.Errorf("service account key: %w", err)
	}
	return c, nil
}

func (c *certificates) certFile(name string) string { return filepath.Join(c.dir, name+".crt") }
func (c *certificates) keyFile(name string) string  { return filepath.Join(c.dir, name+".key") }

// accountKey is the file of the key that signs service accounts' tokens.
func (c *certificates) accountKey() string { return c.keyFile("service-accounts") }

func authorityTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: "pawld"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
}

func serverTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "pawld-server"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
	}
}

func adminTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "pawl-admin", Organization: []string{"system:masters"}},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// ensure returns the pair called name if it still does, and makes it anew
// otherwise. It is signed by issuer, or by itself if that is nil.
func (c *certificates) ensure(name string, template *x509.Certificate, issuer *pair, now time.Time) (*pair, error) {
	if p, err := c.read(name); err == nil && p.good(issuer, now) {
		return p, nil
	}
	p, err := makePair(template, issuer, now)
	if err != nil {
		return nil, err
	}
	// The key goes first: a certificate without its key is made again.
	if err := writeFile(c.keyFile(name), p.keyPEM); err != nil {
		return nil, err
	}
	return p, writeFile(c.certFile(name), p.certPEM)
}

// read fails on anything but a certificate and the key that belongs to it.
func (c *certificates) read(name string) (*pair, error) {
	var p pair
	var err error
	if p.certPEM, err = os.ReadFile(c.certFile(name)); err != nil {
		return nil, err
	}
	block, _ := pem.Decode(p.certPEM)
	if block == nil {
		return nil, errors.New("no PEM data")
	}
	if p.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		return nil, err
	}
	if p.keyPEM, p.key, err = readKey(c.keyFile(name)); err != nil {
		return nil, err
	}
	if k, ok := p.cert.PublicKey.(*ecdsa.PublicKey); !ok || !k.Equal(p.key.Public()) {
		return nil, errors.New("the key is another certificate's")
	}
	return &p, nil
}

// good says that p was signed by issuer, is valid now, and for a while.
func (p *pair) good(issuer *pair, now time.Time) bool {
	third := p.cert.NotAfter.Sub(p.cert.NotBefore) / 3
	if now.Before(p.cert.NotBefore) || now.After(p.cert.NotAfter.Add(-third)) {
		return false
	}
	return issuer == nil || bytes.Equal(p.cert.RawIssuer, issuer.cert.RawSubject) && p.cert.CheckSignatureFrom(issuer.cert) == nil
}

func makePair(template *x509.Certificate, issuer *pair, now time.Time) (*pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	// A clock that is set back by an hour still accepts it.
	template.NotBefore = now.Add(-time.Hour)
	template.NotAfter = now.Add(leafLifetime)
	parent, signer := template, crypto.Signer(key)
	if issuer == nil {
		template.NotAfter = now.Add(authorityLifetime)
	} else {
		parent, signer = issuer.cert, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	p := &pair{key: key, certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	if p.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	p.keyPEM, err = encodeKey(key)
	return p, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func readKey(path string) ([]byte, crypto.Signer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, nil, errors.New("no PEM data")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	return data, key, err
}

// ensureKey makes the key at path unless there is one.
func ensureKey(path string) error {
	if _, _, err := readKey(path); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	data, err := encodeKey(key)
	if err != nil {
		return err
	}
	return writeFile(path, data)
}
