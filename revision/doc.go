// Package revision gives a pool's template its identity: one canonical form,
// a versioned hash of it, and the paths in which two templates differ. It uses
// the standard library only and works on JSON, not on the API's types.
//
// # Use
//
// Give [Canonical] the JSON of what decides a body, and nothing else: the one
// of objects, process and sim that the template has. What is applied to a
// running body without replacing it does not belong in it, and neither does
// anything that an API server fills in by itself. Hash the result:
//
//	canonical, err := revision.Canonical(template)
//	…
//	id, err := revision.Hash(revision.Current, canonical)
//
// The id is the revision's name. Two templates with one id are one revision,
// and going back to an earlier template gives the earlier id.
//
// # What is the same, and what is not
//
// Two documents have one canonical form exactly if they differ only in these:
//
//   - the order of an object's keys, white space, and how a string or a number
//     is spelled ("A" and "\u0041"; 1, 1.0 and 10e-1; 0 and -0);
//   - an object's member that is absent, null, an empty list or an empty
//     object. An object whose members are all so is itself empty. This is how
//     most of Kubernetes reads a manifest, and what a program that decodes and
//     encodes one may change without meaning to.
//
// Everything else counts. In particular:
//
//   - Numbers are compared by value and exactly: 9007199254740993 is not
//     9007199254740992, and 1.5 is not 1.
//   - A list's order, its length and its duplicates count. An element that is
//     null, an empty list or an empty object keeps its place: [{}] is not [].
//   - "", 0 and false are values and differ from an absent member: an
//     environment variable that is set to nothing is not one that is unset.
//   - The number 1 is not the string "1".
//   - Strings are compared code point by code point, never normalized.
//
// Not every program reads an empty object as an absent one: a selector {} may
// mean everything. Therefore a body is made from the template as it was
// written, which is stored beside its id; the canonical form is for comparing
// only. An edit that does no more than add or drop such an empty object makes
// no new revision.
//
// # What is refused
//
// A document is refused when readers could disagree about what it says: two
// members of one object with the same key, invalid UTF-8, half a surrogate
// pair, a number beyond 10^±[MaxExponent], nesting deeper than [MaxDepth], or
// anything that is not one JSON value. The error names the place.
//
// # Versions
//
// An id is only comparable with one that the same version of the algorithm
// made. Therefore keep what was hashed, and find a revision by that, hashed
// anew by the version that runs: then an id is a name that stays what it is,
// and another version names new revisions only. By itself it is never a reason
// to replace anything. What a version gives for an input never changes;
// testdata/golden.txt holds it to that.
package revision
