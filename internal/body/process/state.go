//go:build linux

package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// record is what the disk keeps of a slot, in slotFile.
type record struct {
	// Ports are the slot's, by name. They outlive bodies.
	Ports map[string]int `json:"ports,omitempty"`
	// Body is what the slot holds; nil when it holds none.
	Body *bodyRecord `json:"body,omitempty"`
}

// bodyRecord is what the disk keeps of a body.
type bodyRecord struct {
	UID         string    `json:"uid"`
	MemberUID   string    `json:"memberUID"`
	Incarnation int64     `json:"incarnation"`
	Revision    string    `json:"revision,omitempty"`
	BornAt      time.Time `json:"bornAt"`
	Address     string    `json:"address,omitempty"`
	// Leader is the process. It is written here before the program is let go
	// (see package gate), so that no program runs of which the disk does not
	// know; one that never was let go left markFile empty.
	Leader identity `json:"leader"`
	// Ready is true once it has been ready, and Down while it is not any more.
	Ready bool `json:"ready,omitempty"`
	Down  bool `json:"down,omitempty"`
	// Exit says how the leader ended by itself.
	Exit string `json:"exit,omitempty"`
	// ToldAt is when it was told to go; nil if it was not.
	ToldAt *time.Time `json:"toldAt,omitempty"`
	// UpdateAt is when it was told to end so that it starts anew, with its data,
	// as another revision; nil if it was not. It stays until that has happened.
	UpdateAt *time.Time `json:"updateAt,omitempty"`
	// Before is what it was, as long as the program that it is now was not let
	// go.
	Before *formerly `json:"before,omitempty"`
	// Home is the incarnation whose directories it has: 0 for its own.
	Home int64 `json:"home,omitempty"`

	// Readiness and Stop are the template's, rendered, and Env what an exec
	// probe needs: a body is judged and ended as it was made to be, but for what
	// is live.
	Readiness *v1alpha1.Readiness `json:"readiness,omitempty"`
	Stop      *v1alpha1.Stop      `json:"stop,omitempty"`
	Env       []string            `json:"env,omitempty"`
	// Files are what was written of the template's, in its order.
	Files []written `json:"files,omitempty"`
	// Strays are paths at which there may be files, too, of a change that came
	// to no end.
	Strays []string `json:"strays,omitempty"`
}

// formerly is what a body was before it became what it is.
type formerly struct {
	UID         string `json:"uid"`
	Incarnation int64  `json:"incarnation"`
	Revision    string `json:"revision,omitempty"`
}

// written is a file as it was written; its digest is empty where that was not
// seen to be done.
type written struct {
	Path   string `json:"path"`
	Digest string `json:"digest,omitempty"`
}

// is tells whether the body is that of the slot.
func (b *bodyRecord) is(slot body.Slot) bool {
	return b.MemberUID == slot.UID && b.Incarnation == slot.Incarnation && b.Revision == slot.Revision
}

// Names in a slot's directory. Work and temporary directories carry the
// incarnation's number.
const (
	slotFile   = "slot.json"
	markFile   = "ran"
	stdoutFile = "stdout.log"
	stderrFile = "stderr.log"
	workPrefix = "work-"
	tmpPrefix  = "tmp-"
)

// load reads a slot's record. None at all is an empty one.
func load(dir string) (r record, err error) {
	path := filepath.Join(dir, slotFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return record{}, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return record{}, fmt.Errorf("%s is damaged: %w; once none of its processes runs, remove it and start anew", path, err)
	}
	return r, nil
}

// save writes a slot's record: afterwards the disk has either all of it or
// what it had before, also after a power cut.
func (r record) save(dir string) error {
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, slotFile)
	if err := writeSynced(path+".new", b); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
