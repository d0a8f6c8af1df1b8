// Package revision gives a pool's template its identity: a canonical form, a
// versioned hash of that form, and the paths at which two templates differ. It
// uses only the standard library and works on JSON, not on the API's types.
//
// # Use
//
// Give [Canonical] the JSON of the part of the template that decides a body:
// objects, process or sim, whichever it has. Leave out fields that are applied
// to a running body without replacing it, and defaults that an API server fills
// in. Hash the result:
//
//	canonical, err := revision.Canonical(template)
//	…
//	id, err := revision.Hash(revision.Current, canonical)
//
// The id is the revision's name. Two templates with the same id are the same
// revision, and going back to an earlier template gives the earlier id.
//
// # Which documents are the same
//
// Two documents have the same canonical form exactly if they differ only in:
//
//   - the order of an object's keys, white space, and how a string or a number
//     is spelled ("A" and "\u0041"; 1, 1.0 and 10e-1; 0 and -0);
//   - whether an object's member is absent, null, an empty list or an empty
//     object. An object with only such members is itself empty. Most of
//     Kubernetes reads manifests this way, and a program that decodes and
//     encodes a manifest may turn one of these into another.
//
// Every other difference counts. In particular:
//
//   - Numbers are compared by value and exactly: 9007199254740993 is not
//     9007199254740992, and 1.5 is not 1.
//   - A list's order, its length and its duplicates count. An element that is
//     null, an empty list or an empty object keeps its place: [{}] is not [].
//   - "", 0 and false are values and differ from an absent member: an empty
//     environment variable differs from an absent one.
//   - The number 1 is not the string "1".
//   - Strings are compared code point by code point, never normalized.
//
// Some programs do not read an empty object as an absent one: a selector {} may
// select everything. Therefore a body is made from the template as it was
// written, which is stored beside its id; the canonical form only serves
// comparison. An edit that only adds or drops an empty object makes no new
// revision.
//
// # What is refused
//
// A document is refused if programs could disagree about its meaning: two
// members of one object with the same key, invalid UTF-8, half a surrogate
// pair, a number beyond 10^±[MaxExponent], nesting deeper than [MaxDepth], or
// anything that is not one JSON value. The error names the path.
//
// # Versions
//
// Ids of different versions of the algorithm cannot be compared. Therefore store
// the hashed input, and find a revision by hashing the stored input again with
// the running version. An id then stays a stable name, and a new version names
// only new revisions: an upgrade alone replaces nothing. The id that a version
// gives to an input never changes; the test of testdata/golden.txt checks this.
package revision
