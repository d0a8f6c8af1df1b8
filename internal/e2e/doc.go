// Package e2e tests Pawl from end to end: pawld, its controllers and real
// processes, as a user has them. Its tests carry the build tag "integration".
package e2e
