// Package source reads what the sources of Pools say, keyed digests of what is
// secret included, and keeps a copy of it for each revision.
//
// # Reading
//
// Each object that a source names is watched, alone, with the rights of the
// Pool's service account: it needs list and watch on it, and no more. Pools that
// name the same object with the same account share a watch; it ends when no Pool
// needs it. A change of what counts for a Pool, and of nothing else of the
// object, is notified of. Nothing is polled; a read that fails is tried again
// with backoff.
//
// What cannot be read is an error of type *Unresolved that says which source,
// which object and key, and what to do. It is never taken for empty.
//
// # What counts
//
// Content, and not where it is from: a digest of each key's bytes, or of a
// field's value. That of a Secret's content is an HMAC. Its key is random, is
// kept in the Secret POOL-source-key, and goes with the Pool: whoever may read
// it may read Secrets, and nobody else can try what a digest stands for. A lost
// key is said, and never taken for changed content. A field of any object but a
// ConfigMap is treated as a Secret's content is: who may read it is not known.
//
// A key whose content is not UTF-8 counts like any other; for expressions it is
// bytes, which are written as base64, as Secret.data wants them.
//
// # Frozen copies
//
// Freeze keeps the content of a revision in immutable ConfigMaps and Secrets,
// one for each source, POOL-REVISION-SOURCE with dashes for underscores, before
// the revision is stored. From then on, Frozen gives what was frozen, whatever
// the sources say meanwhile. Copies carry a finalizer, and an admission policy
// (config/policies/revision-guard.yaml) keeps others from writing or deleting
// what carries the label pawl.dev/source. Drop removes the copies of revisions
// that are no more, among them those whose revision was never stored.
package source
