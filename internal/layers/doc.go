// Package layers holds the test that keeps the direction of imports, so that
// nobody needs to remember it: cmd → internal → simulate, permit → snapshot →
// rollout, revision.
package layers
