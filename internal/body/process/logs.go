//go:build linux

package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// output is what a body writes. Its processes append to the two files by
// themselves, so that nothing has to run for them to go on, and nothing of
// them is lost or blocked while pawld is away.
type output struct {
	files []*logFile
	size  int64
	keep  int
}

func newOutput(dir string, size int64, keep int) *output {
	return &output{size: size, keep: keep, files: []*logFile{
		{path: filepath.Join(dir, stderrFile)},
		{path: filepath.Join(dir, stdoutFile)},
	}}
}

// rotate keeps the files small until ctx ends.
func (o *output) rotate(ctx context.Context, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			for _, f := range o.files {
				// The next time is soon, and a body does not end for its log.
				_ = f.rotate(o.size, o.keep)
			}
		}
	}
}

// watch has found called, once or more, when a line of what is there, or is
// written from now on, matches; nil for no more.
func (o *output) watch(match func(line []byte) bool, found func()) {
	for _, f := range o.files {
		f.mu.Lock()
		f.match, f.found = match, found
		f.matched, f.told, f.offset, f.partial = false, false, 0, nil
		f.mu.Unlock()
	}
}

// look reads what is new and tells whether any line has matched yet.
func (o *output) look() (bool, error) {
	for _, f := range o.files {
		f.mu.Lock()
		err := f.scan()
		matched := f.matched
		f.mu.Unlock()
		if matched || err != nil {
			return matched, err
		}
	}
	return false, nil
}

// lastLine is the last line that the body wrote, to the file that it wrote to
// last; standard error if that cannot be told. At most 512 bytes.
func (o *output) lastLine() string {
	var line string
	var latest time.Time
	for _, f := range o.files {
		info, err := os.Stat(f.path)
		if err != nil || line != "" && !info.ModTime().After(latest) {
			continue
		}
		if l := lastLine(f.path); l != "" {
			line, latest = l, info.ModTime()
		}
	}
	return line
}

// logFile is a file that a process appends to while it is rotated.
type logFile struct {
	path string

	mu      sync.Mutex
	match   func(line []byte) bool
	found   func()
	matched bool
	told    bool   // found was, or is being, called
	offset  int64  // up to here it was looked at
	partial []byte // of the line that is not ended there
}

// maxLine is how long a line may be until it is looked at in pieces.
const maxLine = 64 << 10

// scan looks at what is new, as long as somebody waits for a line.
func (f *logFile) scan() error {
	if f.match == nil || f.matched {
		return nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < f.offset { // somebody emptied it
		f.offset, f.partial = 0, nil
	}
	r := bufio.NewReaderSize(io.NewSectionReader(file, f.offset, info.Size()-f.offset), maxLine)
	for {
		piece, err := r.ReadSlice('\n')
		f.offset += int64(len(piece))
		f.partial = append(f.partial, piece...)
		if errors.Is(err, io.EOF) && len(f.partial) < maxLine {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		f.matched = f.match(bytes.TrimRight(f.partial, "\r\n"))
		f.partial = f.partial[:0]
		if f.matched || errors.Is(err, io.EOF) {
			return nil
		}
	}
}

// rotate moves all but the end of the file to generation 1, and those before
// it one further, once it is longer than size. Where the file system can cut a
// file's head off (ext4, xfs), no byte is lost; elsewhere those are that are
// written between the copying and the cut. Of what is written so fast that it
// comes to more than twice the size, the oldest goes, and so it does on a full
// disk.
func (f *logFile) rotate(size int64, keep int) error {
	for {
		found, err := f.cut(size, keep)
		if found == nil {
			return err
		}
		found() // which takes its time, and locks of its own
	}
}

// cut rotates unless a line that somebody waits for would be moved out of sight:
// then it returns what is to be called before, so that what the line means is
// recorded before it may be lost.
func (f *logFile) cut(size int64, keep int) (found func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	file, err := os.OpenFile(f.path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil || info.Size() <= size {
		return nil, err
	}
	if err := f.scan(); err == nil && f.matched && !f.told {
		f.told = true
		return f.found, nil
	}
	block := int64(4096)
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Blksize > 0 {
		block = int64(s.Blksize) //nolint:unconvert // not an int64 everywhere
	}
	cut := (info.Size() - 1) / block * block
	errCopy := f.archive(file, max(0, cut-2*size), cut, keep)
	if cut > 0 && unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_COLLAPSE_RANGE, 0, cut) == nil {
		f.offset = max(0, f.offset-cut)
		return nil, errCopy
	}
	return nil, errors.Join(errCopy, f.empty(file, cut))
}

// archive makes the bytes from one offset to another generation 1.
func (f *logFile) archive(file *os.File, from, to int64, keep int) error {
	if keep < 1 {
		return nil
	}
	// The oldest first: it makes room.
	_ = os.Remove(f.generation(keep))
	part := f.generation(0)
	defer func() { _ = os.Remove(part) }()
	if err := copyTo(part, os.O_TRUNC, io.NewSectionReader(file, from, to-from)); err != nil {
		return err
	}
	for n := keep - 1; n >= 1; n-- {
		_ = os.Rename(f.generation(n), f.generation(n+1))
	}
	return os.Rename(part, f.generation(1))
}

// empty moves what is left from the offset on to generation 1 and empties the
// file.
func (f *logFile) empty(file *os.File, from int64) error {
	const toTheEnd = 1 << 62
	err := copyTo(f.generation(1), os.O_APPEND, io.NewSectionReader(file, from, toTheEnd))
	f.offset, f.partial = 0, nil
	return errors.Join(err, file.Truncate(0))
}

func copyTo(path string, flag int, r io.Reader) error {
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

func (f *logFile) generation(n int) string { return f.path + "." + strconv.Itoa(n) }

// lastLine is the last line of a file that is not blank, as text that can be
// shown.
func lastLine(path string) string {
	const tail, longest = 4096, 512
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	b := make([]byte, tail)
	n, _ := file.ReadAt(b, max(0, info.Size()-tail))
	lines := strings.Split(strings.TrimSpace(printable(string(b[:n]))), "\n")
	return clip(strings.TrimSpace(lines[len(lines)-1]), longest)
}

// printable replaces what would disturb a terminal or a JSON reader.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) && r != utf8.RuneError {
			return r
		}
		return ' '
	}, s)
}

// clip shortens s to at most n bytes of whole characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const dots = "…"
	s = s[:n-len(dots)]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + dots
}
