// Package render fills templates in: strings in which ${…} holds a CEL
// expression.
//
// # Strings
//
//   - Text outside of ${…} stands for itself.
//   - $${ is a literal ${, so that a shell's ${HOME} is written $${HOME}. A
//     dollar sign directly before an expression is written ${"$"}.
//   - A string that is one ${…} and nothing else takes the type of its value: a
//     number stays a number, a map a map. In any other string the value has to
//     be a string, a number or a bool, and becomes text as CEL's string() has it.
//   - Braces, quotes and comments inside of an expression are CEL's, so
//     ${ {"a": "}"}["a"] } is one expression.
//
// Only values are rendered, never the keys of a map.
//
// # Expressions
//
// They are CEL with its standard functions and macros, checked before they are
// run: what a template may refer to is known (see Scope), so a misspelt name is
// found by Check before anything is touched. Maps are walked in the order of
// their keys: equal input gives equal output.
//
// # What a change of the renderer does
//
// What a template is rendered to decides what a body is, so testdata holds the
// renderer to what it does today, for everything that an expression may use.
// Where a new version has to differ, Sample tells: pools that it concerns drift,
// and say that it is the renderer.
//
// # Limits
//
// A template is written by somebody else, so nothing in it takes the renderer
// down: the length of an expression, the number of them in a template, the cost
// of each and of all, the size of what comes out and, as a last resort, the time
// are bounded. See limit.go for the numbers.
package render
