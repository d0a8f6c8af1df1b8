package source

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/pawl-dev/pawl/revision"
)

// digest is the source with the digests of its content. The key is that of the
// pool, and asked for only of what is secret.
func (p *part) digest(key []byte) (Source, error) {
	s := Source{Name: p.name, Kind: p.kind, Object: p.object, Field: p.field, Secret: p.secret, Digests: map[string]string{}}
	if p.keys == nil {
		canonical, err := revision.Canonical(p.text)
		if err != nil {
			return s, fmt.Errorf("source %s: %s: %w", p.name, p.field, err)
		}
		s.Digests[""] = p.sum(key, "", canonical)
	}
	for name, content := range p.keys {
		s.Digests[name] = p.sum(key, name, content)
	}
	return s, nil
}

// sum is "sha256:" and what sha256sum prints of the content; of what is secret
// "hmac-sha256:" and the HMAC of the source's name, the key's and the content,
// so that it does not show where else the same stands.
func (p *part) sum(key []byte, name string, content []byte) string {
	var h hash.Hash
	prefix := "sha256:"
	if p.secret {
		prefix, h = "hmac-sha256:", hmac.New(sha256.New, key)
		fmt.Fprintf(h, "%s\n%s\n", p.name, name)
	} else {
		h = sha256.New()
	}
	h.Write(content)
	return prefix + hex.EncodeToString(h.Sum(nil))
}

// sample is what stands for the part in a rendered sample.
func (p *part) sample(s *Source) any {
	if !p.secret {
		return p.native()
	}
	if p.keys == nil {
		return standIn(p.value, s.Digests[""])
	}
	out := map[string]any{}
	for key, content := range p.keys {
		out[key] = standIn(readable(content), s.Digests[key])
	}
	return out
}

// standIn has the shape of a value and nothing of what it says.
func standIn(value any, digest string) any {
	switch v := value.(type) {
	case string:
		return digest
	case []byte:
		return []byte(digest)
	case bool:
		return false
	case int64:
		return int64(0)
	case float64:
		return float64(0)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = standIn(v[i], digest)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key := range v {
			out[key] = standIn(v[key], digest)
		}
		return out
	}
	return nil
}
