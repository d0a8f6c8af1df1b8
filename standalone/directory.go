package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// minFree is the space that has to be free on the data directory's file
	// system at start.
	minFree = 64 << 20
	// maxSocketPath is the length of a path that a unix socket still has room
	// for, on every platform.
	maxSocketPath = 103
)

// directory is a data directory that this process owns.
type directory struct {
	path string
	lock *os.File
}

// openDirectory makes path a data directory if it is none, and locks it
// against every other pawld until it is closed.
func openDirectory(path string) (*directory, error) {
	if path == "" {
		return nil, errors.New("--data-dir: there is no home directory to put it in; name one")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("--data-dir %s: %w", path, err)
	}
	d := &directory{path: path}
	if n := len(d.etcdSocket()); n > maxSocketPath {
		return nil, fmt.Errorf("--data-dir %s: the path is %d characters too long for a socket in it; choose a shorter one", path, n-maxSocketPath)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("--data-dir: %w; choose a directory that you may write to", err)
	}
	if err := d.takeLock(); err != nil {
		return nil, err
	}
	if err := d.checkSpace(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Close lets another pawld have the directory.
func (d *directory) Close() error { return d.lock.Close() }

func (d *directory) file(name string) string { return filepath.Join(d.path, name) }
func (d *directory) etcdSocket() string      { return d.file("etcd.sock") }
func (d *directory) log() string             { return d.file("pawld.log") }

// takeLock closes the directory to other users and locks it. A directory that
// holds something else is left alone.
func (d *directory) takeLock() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("--data-dir: %w; choose a directory that you may read and write", err)
	}
	if _, err := os.Stat(d.file("lock")); errors.Is(err, os.ErrNotExist) && len(entries) > 0 {
		return fmt.Errorf("--data-dir %s: holds files that are not pawld's (%s); choose an empty directory", d.path, entries[0].Name())
	}
	lock, err := os.OpenFile(d.file("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("--data-dir: %w; choose a directory that you may write to", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("--data-dir %s: in use by another pawld%s; stop that one, or choose another directory", d.path, owner(lock))
		}
		return fmt.Errorf("--data-dir %s: lock: %w", d.path, err)
	}
	if err := os.Chmod(d.path, 0o700); err != nil {
		lock.Close()
		return fmt.Errorf("--data-dir: %w; choose a directory of your own", err)
	}
	d.lock = lock
	return nil
}

// sign writes the process's id into the lock, for whoever finds it taken.
func (d *directory) sign() error {
	if err := d.lock.Truncate(0); err != nil {
		return err
	}
	_, err := d.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// owner reads what sign wrote.
func owner(lock *os.File) string {
	b := make([]byte, 20)
	n, _ := lock.ReadAt(b, 0)
	pid := strings.TrimSpace(string(b[:n]))
	if pid == "" {
		return ""
	}
	return " (process " + pid + ")"
}

func (d *directory) checkSpace() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(d.path, &fs); err != nil {
		return fmt.Errorf("--data-dir %s: free space: %w", d.path, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < minFree {
		return fmt.Errorf("--data-dir %s: only %d MiB are free there, at least %d MiB are needed; free some, or choose another directory",
			d.path, free>>20, minFree>>20)
	}
	return nil
}

// writeFile replaces the file at path at once, readable to its owner only. It
// is on the disk when writeFile returns.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
