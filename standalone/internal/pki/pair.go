package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"time"

	"github.com/pawl-dev/pawl/standalone/internal/datadir"
)

// Pair is a certificate and its key.
type Pair struct {
	// CertPEM and KeyPEM are how they are written.
	CertPEM, KeyPEM []byte

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newPair makes a pair that is signed by issuer, or by itself if that is nil.
func newPair(template x509.Certificate, issuer *Pair, now time.Time) (*Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, err
	}
	// Still valid for who has a clock that is an hour late.
	template.NotBefore = now.Add(-time.Hour)
	template.NotAfter = now.Add(leafLifetime)
	parent, signer := &template, key
	if issuer == nil {
		template.NotAfter = now.Add(authorityLifetime)
	} else {
		parent, signer = issuer.cert, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	keyPEM, err := encodeKey(key)
	return &Pair{
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:  keyPEM,
		cert:    cert,
		key:     key,
	}, err
}

// write writes the key first: a certificate without its key is made again.
func (p *Pair) write(certFile, keyFile string) error {
	if err := datadir.WriteFile(keyFile, p.KeyPEM); err != nil {
		return err
	}
	return datadir.WriteFile(certFile, p.CertPEM)
}

// readPair fails on anything but a certificate and the key that belongs to it.
func readPair(certFile, keyFile string) (*Pair, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(certPEM)
	if block == nil {
		return nil, errors.New("no PEM data")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	keyPEM, key, err := readKey(keyFile)
	if err != nil {
		return nil, err
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, errors.New("the key is another certificate's")
	}
	return &Pair{CertPEM: certPEM, KeyPEM: keyPEM, cert: cert, key: key}, nil
}

// good says that p is signed by issuer (nil: by itself), valid now, and for a
// third of its time to come.
func (p *Pair) good(issuer *Pair, now time.Time) bool {
	if issuer == nil {
		issuer = p
	}
	third := p.cert.NotAfter.Sub(p.cert.NotBefore) / 3
	return now.After(p.cert.NotBefore) && now.Before(p.cert.NotAfter.Add(-third)) &&
		bytes.Equal(p.cert.RawIssuer, issuer.cert.RawSubject) && p.cert.CheckSignatureFrom(issuer.cert) == nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func readKey(path string) ([]byte, *ecdsa.PrivateKey, error) {
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
	return datadir.WriteFile(path, data)
}
