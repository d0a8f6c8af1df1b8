// Package v1alpha1 is Pawl's API, group pawl.dev: Pool, Member and Claim.
//
// The types carry their own rules: everything a schema can check, the API
// server checks, whoever writes. What a schema cannot see (deletions,
// annotations) is kept by the admission policies in config/policies.
//
// Optional fields are pointers without schema defaults, so that absent and
// zero stay apart; the defaults named in the comments are applied by the
// reader, package snapshot.
//
// +kubebuilder:object:generate=true
// +groupName=pawl.dev
package v1alpha1
