package revision

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
)

// Current is the version of the algorithm with which new revisions are named.
const Current = 1

// latest is the newest version that Hash knows. Version 2 differs from 1 only in
// its ids: it lets tests cover a change of version before one is needed.
const latest = 2

// length is the number of characters of an id: 57 bits, more than any pool
// needs. Revisions are found by their stored template, not by id alone.
const length = 12

// alphabet has no vowels and none of 0, 1 and 3, so that no id is a word. It is
// the alphabet of k8s.io/apimachinery/pkg/util/rand.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// Versions returns the versions that Hash knows, in ascending order.
func Versions() []int {
	versions := make([]int, latest)
	for i := range versions {
		versions[i] = i + 1
	}
	return versions
}

// Hash returns the id that a version of the algorithm gives to a canonical form:
// 12 characters, valid as a DNS label and as a label value. Pass the result of
// [Canonical]: Hash does not normalize. An unknown version is an error.
func Hash(version int, canonical []byte) (string, error) {
	if version < 1 || version > latest {
		return "", fmt.Errorf("hash template: unknown version %d (known: 1 to %d)", version, latest)
	}
	h := sha256.New()
	// The version is hashed first, so that two versions give different ids.
	h.Write([]byte("pawl.dev/revision/v" + strconv.Itoa(version) + "\n"))
	h.Write(canonical)
	return encode(binary.BigEndian.Uint64(h.Sum(nil))), nil
}

// encode writes the lowest digits of n in base 27, the lowest first.
func encode(n uint64) string {
	var id [length]byte
	for i := range id {
		id[i] = alphabet[n%uint64(len(alphabet))]
		n /= uint64(len(alphabet))
	}
	return string(id[:])
}
