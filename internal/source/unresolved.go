package source

import (
	"errors"
	"fmt"
	"strings"
)

// Reasons why sources cannot be read.
const (
	// NotFound: the object is not there.
	NotFound = "NotFound"
	// KeyNotFound: the object has no such key.
	KeyNotFound = "KeyNotFound"
	// FieldNotFound: the object has no such field.
	FieldNotFound = "FieldNotFound"
	// Forbidden: the pool's account may not read it.
	Forbidden = "Forbidden"
	// KindNotServed: the API server does not serve its kind.
	KindNotServed = "KindNotServed"
	// TooLarge: there is more than a source may have.
	TooLarge = "TooLarge"
	// NotRead: it has not been read yet.
	NotRead = "NotRead"
	// Unreachable: an API server does not answer as it should.
	Unreachable = "Unreachable"
	// DigestKeyLost: what is secret cannot be told from what it was.
	DigestKeyLost = "DigestKeyLost"
)

// Unresolved says why sources cannot be read: one line, with what to do. It
// holds nothing of their content.
type Unresolved struct { //nolint:errname // it is what the condition says that shows it
	// Reason is one of the constants: of several, the first that is known.
	Reason string
	// Known: it is so, and stays so until somebody acts; otherwise it cannot be
	// told what the sources say, and may pass.
	Known bool

	text string
	err  error
}

// Error implements error.
func (u *Unresolved) Error() string { return u.text }

// Unwrap gives the cause, where there is one.
func (u *Unresolved) Unwrap() error { return u.err }

func known(reason, format string, args ...any) *Unresolved {
	return &Unresolved{Reason: reason, Known: true, text: fmt.Sprintf(format, args...)}
}

func unknown(reason string, err error, format string, args ...any) *Unresolved {
	return &Unresolved{Reason: reason, text: fmt.Sprintf(format, args...), err: err}
}

// of says which source it is about.
func (u *Unresolved) of(source string) *Unresolved {
	named := *u
	named.text = "source " + source + ": " + u.text
	return &named
}

// join makes one of several; nil of none.
func join(list []*Unresolved) error {
	if len(list) == 0 {
		return nil
	}
	all := &Unresolved{Reason: list[0].Reason}
	var texts []string
	var causes []error
	for _, u := range list {
		if u.Known && !all.Known {
			all.Reason, all.Known = u.Reason, true
		}
		texts, causes = append(texts, u.text), append(causes, u.err)
	}
	all.text, all.err = strings.Join(texts, "; "), errors.Join(causes...)
	return all
}
