//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// Kind implements body.Kind with processes of this machine.
type Kind struct {
	dir     string
	render  Render
	notify  body.Notify
	options Options
	world   string
	lock    *os.File
	ports   *portBook
	// reached is called at the points where a test may want the end of it all.
	reached func(point string)

	ctx    context.Context //nolint:containedctx // the life of the goroutines
	cancel context.CancelFunc
	lives  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	slots  map[slotKey]*slot
}

// slotKey names a slot.
type slotKey struct{ namespace, member string }

var (
	_ body.Kind      = (*Kind)(nil)
	_ body.Forgetter = (*Kind)(nil)
	_ body.Validator = (*Kind)(nil)
	_ body.Updater   = (*Kind)(nil)
	_ body.Liver     = (*Kind)(nil)
)

var errClosed = errors.New("the process kind is closed")

// New gives the kind that keeps its bodies below dir, which is made if it is
// not there, and follows again those that an earlier one has left there. Only
// one at a time has a directory. What New gives is to be closed. It may notify
// before it returns.
func New(dir string, render Render, notify body.Notify, o Options) (*Kind, error) {
	k := &Kind{
		render: render, notify: notify, options: o.withDefaults(),
		ports: newPortBook(), slots: map[slotKey]*slot{}, reached: func(string) {},
	}
	if err := k.open(dir); err != nil {
		return nil, fmt.Errorf("process bodies in %s: %w", dir, err)
	}
	return k, nil
}

func (k *Kind) open(dir string) (err error) {
	if k.dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if k.world, err = world(); err != nil {
		return err
	}
	self, _, err := openPID(os.Getpid())
	if err != nil {
		return fmt.Errorf("pidfds, of Linux 5.4 or later, are needed: %w", err)
	}
	self.close()
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	if k.lock, err = lockDir(k.dir); err != nil {
		return err
	}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	if err := k.adopt(); err != nil {
		k.Close()
		return err
	}
	return nil
}

// lockDir makes sure that nobody else has the directory, until the file is
// closed or this process ends, however it ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errors.New("another process uses it")
		}
		return nil, err
	}
	return f, nil
}

// adopt takes over what the directory holds.
func (k *Kind) adopt() error {
	namespaces, err := subdirectories(k.dir)
	if err != nil {
		return err
	}
	for _, namespace := range namespaces {
		members, err := subdirectories(filepath.Join(k.dir, namespace))
		if err != nil {
			return err
		}
		for _, member := range members {
			s := k.add(slotKey{namespace, member})
			s.record, s.damage = load(s.dir)
			k.ports.hold(s.key, s.record.Ports)
		}
	}
	for _, s := range k.slots {
		if s.record.Body == nil {
			continue
		}
		leader, err := openIdentity(s.record.Body.Leader)
		if err != nil && !gone(err) {
			return err
		}
		for leader != nil && !s.ran() && !leader.ended() {
			// Its starter died this moment. It runs, or it ends.
			time.Sleep(time.Millisecond)
		}
		s.settle()
		if err := k.follow(s, leader); err != nil {
			return err
		}
	}
	return nil
}

func subdirectories(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// begin lets Close wait for what changes things, until lives.Done is called.
func (k *Kind) begin() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return errClosed
	}
	k.lives.Add(1)
	return nil
}

// Close stops following the bodies, which live on as they are.
func (k *Kind) Close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.cancel()
	k.lives.Wait()
	_ = k.lock.Close()
}

// Create implements body.Kind.
func (k *Kind) Create(_ context.Context, slot body.Slot, template *v1alpha1.Template) (body.Observation, error) {
	key, err := keyOf(slot)
	if err != nil {
		return body.Observation{}, err
	}
	if err := k.begin(); err != nil {
		return body.Observation{}, err
	}
	defer k.lives.Done()
	s := k.add(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damage != nil {
		return body.Observation{}, s.damage
	}
	if b := s.record.Body; b != nil {
		if !b.is(slot) || b.UpdateAt != nil {
			return body.Observation{}, fmt.Errorf("%w: incarnation %d of revision %s, body %s, is still there", body.ErrOccupied, b.Incarnation, b.Revision, b.UID)
		}
		return s.observe(), nil
	}
	had := k.ports.held(key)
	if err := k.create(s, slot, template); err != nil {
		k.ports.hold(key, had)
		return body.Observation{}, err
	}
	return s.observe(), nil
}

// create starts the body, or starts it anew if it has ended for that.
func (k *Kind) create(s *slot, slot body.Slot, template *v1alpha1.Template) error {
	ports, err := k.ports.assign(s.key, portNames(template))
	if err != nil {
		return err
	}
	sp, err := newSpec(slot, template, ports, k.render)
	if err != nil {
		return err
	}
	return k.start(s, slot, sp)
}

func portNames(template *v1alpha1.Template) []string {
	if template == nil || template.Process == nil {
		return nil
	}
	return template.Process.Ports
}

// Observe implements body.Kind. What it tells comes from memory. The template
// does not matter: a body is judged as it was made to be, but for what is live.
func (k *Kind) Observe(_ context.Context, slot body.Slot, _ *v1alpha1.Template) (body.Observation, error) {
	s := k.find(slot)
	if s == nil {
		return body.Observation{State: body.Absent}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.observe(), s.damage
}

// Drain implements body.Kind: processes have nothing before their end.
func (k *Kind) Drain(context.Context, body.Slot, *v1alpha1.Template) (done bool, err error) {
	return true, nil
}

// Undrain implements body.Kind.
func (k *Kind) Undrain(context.Context, body.Slot, *v1alpha1.Template) error { return nil }

// Delete implements body.Kind.
func (k *Kind) Delete(_ context.Context, slot body.Slot, uid string) error {
	if err := k.begin(); err != nil {
		return err
	}
	defer k.lives.Done()
	s := k.find(slot)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.record.Body
	if s.damage != nil || b == nil || b.UID != uid || b.ToldAt != nil {
		return s.damage
	}
	now := time.Now()
	b.ToldAt, s.note = &now, ""
	// Where this cannot be recorded, on a full disk, it happens all the same:
	// to forget it means to be told again.
	_ = s.record.save(s.dir)
	k.reached("told")
	close(s.life.told)
	return nil
}

// Validate implements body.Validator.
func (k *Kind) Validate(slot body.Slot, template *v1alpha1.Template) error {
	if _, err := keyOf(slot); err != nil {
		return err
	}
	return k.validate(slot, template)
}

// validate checks the template with ports that are none of the slot's.
func (k *Kind) validate(slot body.Slot, template *v1alpha1.Template) error {
	ports := map[string]int{}
	for i, name := range portNames(template) {
		ports[name] = k.ports.low + i
	}
	_, err := newSpec(slot, template, ports, k.render)
	return err
}

// Forget implements body.Forgetter: the slot's directory goes, with the log of
// the last body, and its ports are free.
func (k *Kind) Forget(_ context.Context, slot body.Slot) error {
	if err := k.begin(); err != nil {
		return err
	}
	defer k.lives.Done()
	s := k.find(slot)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damage != nil {
		return s.damage
	}
	if b := s.record.Body; b != nil {
		return fmt.Errorf("forget: %w: incarnation %d, body %s, is still there", body.ErrOccupied, b.Incarnation, b.UID)
	}
	if err := removeAll(s.dir); err != nil {
		return err
	}
	k.ports.hold(s.key, nil)
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.slots, s.key)
	return nil
}

// keyOf names the slot by names that can be those of directories.
func keyOf(slot body.Slot) (slotKey, error) {
	for _, name := range []string{slot.Namespace, slot.Member} {
		if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\x00") {
			return slotKey{}, fmt.Errorf("%w: %q cannot be the name of a directory", body.ErrRefused, name)
		}
	}
	return slotKey{slot.Namespace, slot.Member}, nil
}

func (k *Kind) find(slot body.Slot) *slot {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.slots[slotKey{slot.Namespace, slot.Member}]
}

func (k *Kind) add(key slotKey) *slot {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.slots[key]
	if !ok {
		s = &slot{key: key, dir: filepath.Join(k.dir, key.namespace, key.member)}
		k.slots[key] = s
	}
	return s
}
