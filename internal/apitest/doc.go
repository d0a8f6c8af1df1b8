// Package apitest holds tests of Pawl's definitions and admission policies on
// a real API server: what it accepts, what it refuses and with which words,
// whoever writes, on the main and on the status endpoint.
package apitest
