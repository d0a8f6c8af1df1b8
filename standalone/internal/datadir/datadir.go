// Package datadir keeps a directory for one process at a time, closed to other
// users.
package datadir

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
	// MinFree is the space, in bytes, that has to be free at start on the file
	// system of a data directory.
	MinFree = 64 << 20
	// maxSocket is the longest path of a unix socket on every platform.
	maxSocket = 103
	// lockName is the file whose lock is the directory's; it also tells a data
	// directory from any other.
	lockName = "lock"
)

// Dir is a data directory that this process owns. Its errors are for whoever
// chose the directory: they name it and say what to do.
type Dir struct {
	path string
	lock *os.File
}

// Open makes path a data directory if there is nothing yet, and takes it for
// this process until Close. It refuses a directory that another process has
// taken, one that holds something else, one whose path leaves no room for the
// name of a socket, and one with less than MinFree of space.
func Open(path, socket string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if n := len(filepath.Join(path, socket)); n > maxSocket {
		return nil, fmt.Errorf("%s: the path is %d characters too long for a socket in it; choose a shorter one", path, n-maxSocket)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("%w; choose a directory that you may write to", err)
	}
	d := &Dir{path: path}
	if err := d.take(); err != nil {
		return nil, err
	}
	if err := d.prepare(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close lets another process have the directory.
func (d *Dir) Close() error { return d.lock.Close() }

// File is the path of a file in the directory.
func (d *Dir) File(name string) string { return filepath.Join(d.path, name) }

// take locks the directory. A directory that holds something else is left as
// it is.
func (d *Dir) take() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("%w; choose a directory that you may read and write", err)
	}
	if _, err := os.Lstat(d.File(lockName)); errors.Is(err, os.ErrNotExist) && len(entries) > 0 {
		return fmt.Errorf("%s: holds files of something else (%s); choose an empty directory", d.path, entries[0].Name())
	}
	lock, err := os.OpenFile(d.File(lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("%w; choose a directory that you may write to", err)
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		err = fmt.Errorf("%s: in use by another pawld%s; stop that one, or choose another directory", d.path, owner(lock))
	case err != nil:
		err = fmt.Errorf("%s: lock: %w", d.path, err)
	}
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	d.lock = lock
	return nil
}

// prepare closes the directory to other users, looks for space, and writes
// into the lock whose it is.
func (d *Dir) prepare() error {
	if err := os.Chmod(d.path, 0o700); err != nil {
		return fmt.Errorf("%w; choose a directory of your own", err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(d.path, &fs); err != nil {
		return fmt.Errorf("%s: free space: %w", d.path, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < MinFree {
		return fmt.Errorf("%s: only %d MiB are free there, and %d MiB are needed; free some, or choose another directory", d.path, free>>20, MinFree>>20)
	}
	if err := d.lock.Truncate(0); err != nil {
		return err
	}
	_, err := d.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// owner is the process that has written its id into the lock.
func owner(lock *os.File) string {
	b := make([]byte, 20)
	n, _ := lock.ReadAt(b, 0)
	pid := strings.TrimSpace(string(b[:n]))
	if pid == "" {
		return ""
	}
	return " (process " + pid + ")"
}

// WriteFile replaces the file at path at once, readable to its owner only. The
// file is on the disk when WriteFile returns.
func WriteFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename in dir last.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
