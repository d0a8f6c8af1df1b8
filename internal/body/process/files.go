//go:build linux

package process

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// file is a file of a template, with nothing left to fill in.
type file struct {
	path    string
	content string
	mode    os.FileMode
}

// written is the file as it is remembered.
func (f file) written() written {
	sum := sha256.Sum256(fmt.Appendf(nil, "%o %s", f.mode, f.content))
	return written{f.path, hex.EncodeToString(sum[:8])}
}

func (s *spec) written() []written {
	var list []written
	for _, f := range s.files {
		list = append(list, f.written())
	}
	return list
}

// write makes the file below root what it says, whatever is there, at once:
// whoever reads it finds all of it or what was there before. It is the i-th of
// its template.
func (f file) write(root *os.Root, i int) error {
	err := f.replace(root)
	switch {
	case err == nil:
		return nil
	case isAny(err, unix.ENOTDIR, unix.EISDIR, unix.EEXIST, unix.ENAMETOOLONG):
		return refuse(".files["+strconv.Itoa(i)+"].path", err)
	}
	return classify(err, "write "+f.path)
}

func (f file) replace(root *os.Root) error {
	dir := filepath.Dir(f.path)
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	part := filepath.Join(dir, ".pawl-"+rand.Text())
	w, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = w.WriteString(f.content)
	// The mode as it is written, whatever the umask.
	err = errors.Join(err, w.Chmod(f.mode), w.Close())
	if err == nil {
		err = root.Rename(part, f.path)
	}
	if err != nil {
		_ = root.Remove(part)
	}
	return err
}

// change is how a body's files become others.
type change struct {
	// are is what there is afterwards, in the template's order.
	are    []written
	write  []placed
	remove []string
}

// placed is a file and its place in the template.
type placed struct {
	file
	i int
}

func (c change) any() bool { return len(c.write)+len(c.remove) > 0 }

// removeIn removes what is to go. What cannot be removed stays, as if the body
// had made it.
func (c change) removeIn(root *os.Root) {
	for _, path := range c.remove {
		_ = root.Remove(path)
	}
}

// writeIn writes. Where it fails, some of the files may have been written.
func (c change) writeIn(root *os.Root) error {
	for _, f := range c.write {
		if err := f.write(root, f.i); err != nil {
			return err
		}
	}
	return nil
}

// besides are the paths of what was, or may have been, written, but for these.
func (b *bodyRecord) besides(are []written) []string {
	paths := slices.Clone(b.Strays)
	for _, f := range b.Files {
		paths = append(paths, f.Path)
	}
	return slices.DeleteFunc(paths, func(path string) bool { return named(are, path) })
}

func named(files []written, path string) bool {
	return slices.ContainsFunc(files, func(w written) bool { return w.Path == path })
}

// unsettle records, before it happens, what the change is about to touch:
// nobody knows what these files hold until the change is recorded as done, and
// the new ones may be there. So whatever interrupts it, the next one, be it to
// what was before, writes and removes them all.
func (s *slot) unsettle(c change) error {
	b := s.record.Body
	was := *b
	b.Files, b.Strays = slices.Clone(b.Files), slices.Clone(b.Strays)
	touched := slices.Clone(c.remove)
	for _, f := range c.write {
		touched = append(touched, f.path)
	}
	for i := range b.Files {
		if slices.Contains(touched, b.Files[i].Path) {
			b.Files[i].Digest = ""
		}
	}
	for _, path := range touched {
		if !named(b.Files, path) && !slices.Contains(b.Strays, path) {
			b.Strays = append(b.Strays, path)
		}
	}
	if err := s.record.save(s.dir); err != nil {
		*b = was
		return classify(err, "record which files are to change")
	}
	return nil
}
