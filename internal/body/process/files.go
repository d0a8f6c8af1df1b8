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

// removeFiles removes the files that were written and are not to be any more.
// What cannot be removed stays, as if the body had made it.
func removeFiles(root *os.Root, were, are []written) {
	for _, was := range were {
		if !slices.ContainsFunc(are, func(w written) bool { return w.Path == was.Path }) {
			_ = root.Remove(was.Path)
		}
	}
}
