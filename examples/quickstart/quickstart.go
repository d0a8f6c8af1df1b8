// Package quickstart holds the manifests of the quickstart, for the programs
// that apply them.
package quickstart

import _ "embed"

// Pool is the manifest of the pool.
//
//go:embed pool.yaml
var Pool []byte
