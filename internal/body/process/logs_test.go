//go:build linux

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/body"
)

// appender writes numbered lines to a file as a process does.
func appender(t *testing.T, path string) func(n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	line := 0
	return func(n int) {
		for range n {
			if _, err := fmt.Fprintf(f, "line %09d\n", line); err != nil {
				t.Error(err)
			}
			line++
		}
	}
}

// rotated is what is in the file and its earlier generations, oldest first.
func rotated(path string) []byte {
	var all []byte
	for n := 9; n >= 1; n-- {
		b, _ := os.ReadFile(fmt.Sprintf("%s.%d", path, n))
		all = append(all, b...)
	}
	b, _ := os.ReadFile(path)
	return append(all, b...)
}

func TestLogFile_Rotate(t *testing.T) {
	// Both where the head of a file can be cut off and where it cannot.
	dirs := map[string]string{"disk": t.TempDir()}
	if dir, err := os.MkdirTemp("/dev/shm", "pawl"); err == nil { //nolint:usetesting // in memory
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		dirs["memory"] = dir
	}
	for name, dir := range dirs {
		t.Run(name, func(t *testing.T) {
			const size, keep = 100 << 10, 2
			f := &logFile{path: filepath.Join(dir, "out.log")}
			write := appender(t, f.path)
			var want bytes.Buffer
			for i := range 40 * 500 {
				fmt.Fprintf(&want, "line %09d\n", i)
			}
			for range 40 {
				write(500) // 7,500 bytes
				if err := f.rotate(size, keep); err != nil {
					t.Fatal(err)
				}
				if info, err := os.Stat(f.path); err != nil || info.Size() > size {
					t.Fatalf("the file is too long: %v, %v", info, err)
				}
			}
			got := rotated(f.path)
			if !bytes.HasSuffix(want.Bytes(), got) {
				t.Error("what is kept is not the end of what was written")
			}
			if len(got) < 2*size || len(got) > 4*size {
				t.Errorf("%d bytes are kept, want about %d", len(got), 3*size)
			}
			names, _ := filepath.Glob(f.path + "*")
			if len(names) != keep+1 {
				t.Errorf("there are %q, want %d files", names, keep+1)
			}
		})
	}
}

// What is written faster than it is rotated loses its oldest part only.
func TestLogFile_RotateFlood(t *testing.T) {
	f := &logFile{path: filepath.Join(t.TempDir(), "out.log")}
	write := appender(t, f.path)
	write(50_000)
	if err := f.rotate(64<<10, 2); err != nil {
		t.Fatal(err)
	}
	got := rotated(f.path)
	if !bytes.HasSuffix(got, []byte("line 000049999\n")) || len(got) < 2*64<<10 || len(got) > 2*64<<10+4096 {
		t.Errorf("%d bytes are kept, ending in %q", len(got), got[max(0, len(got)-20):])
	}
}

// A disk that is full costs the log and nothing else.
func TestLogFile_RotateWithoutRoom(t *testing.T) {
	f := &logFile{path: filepath.Join(t.TempDir(), "out.log")}
	// A directory where the copy would be stands for a disk that takes none.
	if err := os.MkdirAll(filepath.Join(f.generation(0), "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	appender(t, f.path)(50_000)
	if err := f.rotate(64<<10, 2); err == nil {
		t.Error("no error")
	}
	if info, err := os.Stat(f.path); err != nil || info.Size() > 64<<10 {
		t.Errorf("the file is as long as before: %v, %v", info, err)
	}
}

// A line is found however it is cut up by writes, looks and rotations.
func TestOutput_Look(t *testing.T) {
	for name, pieces := range map[string][]string{
		"at once":       {"a\nready now\nb\n"},
		"in two":        {"a\nrea", "dy now\nb\n"},
		"after a flood": {strings.Repeat("x\n", 50_000), "ready now\n"},
		"in a flood":    {strings.Repeat("x\n", 50_000) + "ready now\n" + strings.Repeat("x\n", 50_000)},
		"long lines":    {strings.Repeat("x", 200_000) + "\nready now\n"},
		"carriage":      {"ready now\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := newOutput(dir, 16<<10, 2)
			found := 0
			o.watch(func(line []byte) bool { return string(line) == "ready now" }, func() { found++ })
			file, err := os.OpenFile(filepath.Join(dir, stdoutFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			if err := os.WriteFile(filepath.Join(dir, stderrFile), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for i, piece := range pieces {
				if _, err := file.WriteString(piece); err != nil {
					t.Fatal(err)
				}
				if i%2 == 1 || len(pieces) == 1 {
					for _, f := range o.files {
						if err := f.rotate(o.size, o.keep); err != nil {
							t.Fatal(err)
						}
					}
				}
				matched, err := o.look()
				if want := i == len(pieces)-1; matched != want || err != nil {
					t.Errorf("after piece %d: matched %t, %v; want %t", i, matched, err, want)
				}
			}
			if strings.Contains(name, "in a flood") && found == 0 {
				t.Error("nobody was told before the line was moved away")
			}
		})
	}
}

func TestOutput_LastLine(t *testing.T) {
	dir := t.TempDir()
	o := newOutput(dir, 1, 1)
	if l := o.lastLine(); l != "" {
		t.Errorf("of no files: %q", l)
	}
	now := time.Now()
	write := func(name, content string, age time.Duration) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ out, err, want, reason string }{
		{"out\n", "", "out", "standard error is empty"},
		{"out\n", "first\nerr\n", "err", "both at once: the error tells more"},
		{"out", "err\n\n  \n", "err", "blank lines say nothing"},
		{"\x1b[31mred\x00\xff\n", "", "[31mred", "what a terminal would obey is no text"},
		{strings.Repeat("é", 5000) + "\n", "", "", "longer than what is read"},
	} {
		write(stdoutFile, c.out, time.Second)
		write(stderrFile, c.err, time.Second)
		l := o.lastLine()
		if c.want != "" && l != c.want || !utf8.ValidString(l) || len(l) > 512 {
			t.Errorf("last line of %.20q and %.20q is %q, want %q: %s", c.out, c.err, l, c.want, c.reason)
		}
	}
	write(stdoutFile, "later\n", 0)
	write(stderrFile, "earlier\n", time.Second)
	if l := o.lastLine(); l != "later" {
		t.Errorf("last line is %q, want that of the file written last", l)
	}
}

// A body that floods its output goes on, and so does its log, over the end of
// whoever looks after it.
func TestKind_Flood(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	r.create(slot, shell("i=0; while :; do echo line $i; i=$((i+1)); done"))
	pid := r.leader(slot)
	rotations := func() error {
		if r.log(slot, stdoutFile+".2") == "" {
			return errors.New("no second generation")
		}
		return nil
	}
	eventually(t, "two rotations", rotations)
	r.kind.Close()
	before := r.log(slot, stdoutFile)
	eventually(t, "more output", func() error {
		if len(r.log(slot, stdoutFile)) <= len(before) {
			return errors.New("none")
		}
		return nil
	})
	r.open()
	if err := os.Remove(filepath.Join(r.dir, "default", "web-0", stdoutFile+".2")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two more rotations", rotations)
	if !alive(pid) || r.observe(slot).State != body.Ready {
		t.Error("the body has ended")
	}
}

func TestOutput_RotateEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	newOutput(t.TempDir(), 1, 1).rotate(ctx, time.Hour)
}
