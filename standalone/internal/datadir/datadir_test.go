package datadir

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d, err := Open(path, "s")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode is %o, want 700", info.Mode().Perm())
	}

	_, err = Open(path, "s")
	if err == nil {
		t.Fatal("a directory was taken twice")
	}
	for _, want := range []string{path, "in use by another pawld", strconv.Itoa(os.Getpid())} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}

	if err := WriteFile(d.File("x"), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if d, err = Open(path, "s"); err != nil {
		t.Fatalf("a directory with files of its own: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_Refused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ reason, path, want string }{
		"foreign":   {"it holds somebody's file", filepath.Dir(file), "holds files of something else (file)"},
		"file":      {"it is no directory", file, "not a directory; choose a directory that you may write to"},
		"long":      {"a socket in it could not be opened", filepath.Join(t.TempDir(), strings.Repeat("d", 100)), "too long for a socket"},
		"forbidden": {"nobody can make it", "/proc/pawl", "choose a directory that you may write to"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.path, "s")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.reason, err, c.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), lockName)); err == nil {
		t.Error("a foreign directory got a lock")
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, content := range []string{"first", "second"} {
		if err := WriteFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != content {
			t.Errorf("read %q after writing %q", got, content)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("%d files are left, want 1", len(entries))
	}
	info, err := entries[0].Info()
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %o, want 600", info.Mode().Perm())
	}
}
