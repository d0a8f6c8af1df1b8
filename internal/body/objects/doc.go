// Package objects makes bodies of Kubernetes objects: the manifests of a
// template, rendered for a member, applied with the rights of an account of the
// pool's namespace.
//
// # Names and marks
//
// An object without metadata.name is named after its member; a namespaced one
// without metadata.namespace lives in the pool's namespace. Objects elsewhere,
// and cluster-scoped ones, are made as far as the account's rights go.
//
// Each object carries the labels pawl.dev/pool, member, incarnation and
// revision, and the annotation pawl.dev/member-uid. Together they are how a
// body is known; an object in its place that lacks them is not touched. No
// object has an ownerReference, neither one of Pawl's nor one of the template's:
// a cascading deletion must not reach a claimed body.
//
// # Creation
//
// An object is created only after its name was found free by a read from the
// API server itself, and only if it still is in the instant of the creation
// (see apply). What holds the name otherwise is named in the error, with
// body.ErrOccupied. A creation that was cut short goes on at the next call; one
// that is refused, or finds no room, takes back what this call has made.
//
// # Rights
//
// All access is impersonated: get, list, watch, create, patch and delete on the
// kinds of the template. Without list and watch everything works, but changes
// are noticed by looking again every few seconds (Observation.Recheck).
//
// # Updates
//
// A body is updated where it is by applying the next template to its objects, by
// UID; what that names besides is made, and what it does not name any more is
// deleted. The fields that it names become what it says, whoever has changed
// them. Live fields are applied with all else that the body's own template says,
// since only so the API server knows which element of a list is meant; but then
// what somebody else has changed or removed stays as it is.
//
// # Readiness
//
// With template.ready, a body is ready when all its expressions are true;
// otherwise when kstatus calls every object Current. A Pod that has ended makes
// the body Exited, unless ready expressions hold and the Pod has succeeded. A
// body of which an object is missing is Down; otherwise one that is not ready is
// Booting, whether or not it has served: that is known to the caller only.
//
// # Versions
//
// An object is the same in all versions of its API. It is made in that of the
// template, and refused if that is not served; it is looked for, and deleted, in
// any that is. A body is absent only where the API server says of each object
// that it is not there, or has served its kind in no version for a while: then
// the objects are gone with their CustomResourceDefinition. What an aggregated
// API that does not answer holds cannot be told.
//
// # Identity
//
// The UID of a body lists its objects, as in
//
//	services/shop/web-0/1b4e28ba-…,statefulsets.apps/shop/web-0/6fa459ea-…
//
// so that it can be ended even when its template is no longer known. Deletion
// goes by these UIDs, last object first, and leaves a namesake alone.
package objects
