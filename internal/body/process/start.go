//go:build linux

package process

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/body/process/gate"
)

// start makes the body, or, of one that has ended to start anew, the next one in
// its directories. The order is what makes it safe to die anywhere: the
// process waits at the gate; the record says which process it is; only then
// the program runs. What dies before the record is written takes the process
// with it, and what dies after it is found by the next one.
func (k *Kind) start(s *slot, slot body.Slot, sp *spec) (err error) {
	before := s.record
	b := &bodyRecord{
		UID: rand.Text(), MemberUID: slot.UID, Incarnation: slot.Incarnation, Revision: slot.Revision,
		BornAt: time.Now().UTC().Round(0), Address: sp.address, Readiness: sp.readiness, Stop: sp.stop,
		// Without a probe it is ready as soon as it runs.
		Ready: sp.readiness == nil,
		Files: sp.written(),
	}
	was := before.Body
	if was != nil {
		b.Home, b.UpdateAt = was.home(), was.UpdateAt
		b.Before = &formerly{was.UID, was.Incarnation, was.Revision}
	}
	defer func() {
		if err != nil && was == nil {
			_ = s.removeBodyDirs()
		}
	}()
	b.Env = sp.environ(b.UID, s.work(b), s.tmp(b))
	if err := s.prepare(b, was, sp.files); err != nil {
		return err
	}
	k.reached("prepared")
	held, leader, err := s.hold(b, sp)
	if err != nil {
		return classify(err, "start the process")
	}
	k.reached("held")
	s.record = record{Ports: sp.ports, Body: b}
	err = s.record.save(s.dir)
	if err != nil {
		held.Drop()
		err = classify(err, "record the process")
	} else {
		k.reached("recorded")
		err = s.run(held)
	}
	if err == nil {
		k.reached("running")
		s.settle()
		err = k.follow(s, leader)
	}
	if err != nil {
		_ = leader.signal(unix.SIGKILL)
		_ = leader.wait()
		leader.reap()
		leader.close()
		// If this cannot be written, the next one finds that it never ran.
		s.record = before
		_ = s.record.save(s.dir)
	}
	return err
}

// run lets the program run.
func (s *slot) run(held *gate.Held) error {
	err := notRun(held.Go())
	if err == nil && !s.ran() {
		err = errors.New("run the program: its process ended before it began")
	}
	return err
}

// prepare makes the body's directories and files. One that starts anew has its
// directories, and what is in them but for the files that were the template's.
func (s *slot) prepare(b, was *bodyRecord, files []file) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return classify(err, "make the slot's directory")
	}
	// What is there is of bodies that are gone, or never came to be.
	err := s.removeLogs()
	if was == nil {
		err = errors.Join(err, s.removeBodyDirs())
	}
	if err != nil {
		return classify(err, "clear the slot's directory")
	}
	if err := errors.Join(os.MkdirAll(s.work(b), 0o700), os.MkdirAll(s.tmp(b), 0o700)); err != nil {
		return classify(err, "make the working directory")
	}
	root, err := os.OpenRoot(s.work(b))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	c := change{are: b.Files}
	for i, f := range files {
		c.write = append(c.write, placed{f, i})
	}
	if was != nil {
		c.remove = was.besides(c.are)
	}
	if was != nil && c.any() {
		if err := s.unsettle(c); err != nil {
			return err
		}
	}
	c.removeIn(root)
	return c.writeIn(root)
}

// hold makes the body's process wait at the gate.
func (s *slot) hold(b *bodyRecord, sp *spec) (*gate.Held, *handle, error) {
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	open := func(name string, flag int) (*os.File, error) {
		f, err := os.OpenFile(name, flag, 0o600)
		if err == nil {
			files = append(files, f)
		}
		return f, err
	}
	const writeNew = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	in, err1 := open(os.DevNull, os.O_RDONLY)
	stdout, err2 := open(filepath.Join(s.dir, stdoutFile), writeNew|os.O_APPEND)
	stderr, err3 := open(filepath.Join(s.dir, stderrFile), writeNew|os.O_APPEND)
	mark, err4 := open(filepath.Join(s.dir, markFile), writeNew)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, nil, err
	}
	held, err := gate.Start(gate.Command{
		Path: sp.path, Args: sp.args, Env: b.Env, Dir: s.work(b),
		Stdin: in, Stdout: stdout, Stderr: stderr, Mark: mark,
	})
	if err != nil {
		return nil, nil, err
	}
	leader, err := identify(held)
	if err != nil {
		held.Drop()
		_, _ = unix.Wait4(held.PID, nil, 0, nil)
		return nil, nil, err
	}
	b.Leader = leader.identity
	return held, leader, nil
}

// identify gives a hold on the process at the gate. It is our child and not
// reaped, so its pid is its own.
func identify(held *gate.Held) (*handle, error) {
	h, err := newHandle(identity{PID: held.PID}, held.PIDFD)
	if err != nil {
		return nil, err
	}
	st, err := readStat(held.PID)
	if err == nil {
		h.Start = st.start
		h.World, err = world()
	}
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// notRun says why the system did not run the program. Something may have
// changed since it was checked.
func notRun(err error) error {
	if err == nil {
		return nil
	}
	switch {
	case isAny(err, unix.ENOENT, unix.EACCES, unix.EPERM, unix.ENOEXEC, unix.ENOTDIR, unix.ELOOP,
		unix.EINVAL, unix.EISDIR, unix.ENAMETOOLONG):
		return refuse(".command", err)
	case errors.Is(err, unix.E2BIG):
		return refuse("", fmt.Errorf("args and env are too long for this system: %w", err))
	}
	return classify(err, "run the program")
}

// classify tells whether err says that there is no room now.
func classify(err error, doing string) error {
	if isAny(err, unix.EAGAIN, unix.ENOMEM, unix.ENOSPC, unix.EDQUOT, unix.EMFILE, unix.ENFILE) {
		return fmt.Errorf("%s: %w: %w", doing, body.ErrNoRoom, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func isAny(err error, of ...unix.Errno) bool {
	return slices.ContainsFunc(of, func(n unix.Errno) bool { return errors.Is(err, n) })
}

// work and tmp are a body's own directories.
func (s *slot) work(b *bodyRecord) string { return s.bodyDir(workPrefix, b) }
func (s *slot) tmp(b *bodyRecord) string  { return s.bodyDir(tmpPrefix, b) }

func (s *slot) bodyDir(prefix string, b *bodyRecord) string {
	return filepath.Join(s.dir, prefix+strconv.FormatInt(b.home(), 10))
}

// home is the incarnation whose directories the body has.
func (b *bodyRecord) home() int64 {
	if b.Home != 0 {
		return b.Home
	}
	return b.Incarnation
}

// removeBodyDirs removes the directories of all bodies.
func (s *slot) removeBodyDirs() error {
	return s.remove(func(name string) bool {
		return strings.HasPrefix(name, workPrefix) || strings.HasPrefix(name, tmpPrefix)
	})
}

// removeLogs removes what the last body wrote.
func (s *slot) removeLogs() error {
	return s.remove(func(name string) bool {
		return strings.HasPrefix(name, stdoutFile) || strings.HasPrefix(name, stderrFile)
	})
}

func (s *slot) remove(which func(name string) bool) error {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if which(e.Name()) {
			err = errors.Join(err, removeAll(filepath.Join(s.dir, e.Name())))
		}
	}
	return err
}

// removeAll is os.RemoveAll also where directories were made unwritable.
func removeAll(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(p string, d os.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) //nolint:gosec // a directory, about to go
		}
		return nil
	})
	return os.RemoveAll(path)
}
