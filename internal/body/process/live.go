//go:build linux

package process

import (
	"context"
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/fieldpath"
)

// CheckLive implements body.Liver: a process that runs takes files, readiness
// and stop, and parts of them.
func (k *Kind) CheckLive(template *v1alpha1.Template) error {
	_, err := body.LiveFields(template, "process", mayLive)
	return err
}

func mayLive(p fieldpath.Path) error {
	if len(p) > 1 {
		switch p[1].Name {
		case "files", "readiness", "stop":
			return nil
		}
	}
	return fmt.Errorf("a process that runs cannot take %s: only files, readiness and stop, and what is in them, can be live", p)
}

// ApplyLive implements body.Liver: files are replaced where they are, each at
// once, and the body is judged and ended by readiness and stop as they are now.
func (k *Kind) ApplyLive(_ context.Context, slot body.Slot, template *v1alpha1.Template) error {
	if err := k.begin(); err != nil {
		return err
	}
	defer k.lives.Done()
	paths, err := body.LiveFields(template, "process", mayLive)
	s := k.find(slot)
	if err != nil || s == nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.record.Body
	if s.damage != nil || b == nil || !b.is(slot) || b.ToldAt != nil || b.UpdateAt != nil || b.Exit != "" {
		return s.damage
	}
	sp, err := renderSpec(slot, template, s.record.Ports, k.render)
	if err == nil {
		err = sp.checkEnd()
	}
	if err != nil {
		return err
	}
	t := tuner{slot: s, spec: sp, paths: paths}
	if err := k.change(s, t.files(b)); err != nil {
		return err
	}
	was := *b
	if !t.apply(b) {
		return nil
	}
	if err := s.record.save(s.dir); err != nil {
		*b = was
		return classify(err, "record the live fields")
	}
	if !equality.Semantic.DeepEqual(was.Readiness, b.Readiness) {
		return k.tune(s, s.life)
	}
	return nil
}

// tuner brings live fields to a body.
type tuner struct {
	slot  *slot
	spec  *spec
	paths []fieldpath.Path
}

// apply notes in the body's record all but its files. A body that is down stays
// so until a probe says otherwise, if there is one that can.
func (t *tuner) apply(b *bodyRecord) (changed bool) {
	if t.live("readiness") && !equality.Semantic.DeepEqual(b.Readiness, t.spec.readiness) {
		b.Readiness, changed = t.spec.readiness, true
		b.Ready = b.Ready || b.Readiness == nil
		if b.Ready && (b.Readiness == nil || b.Readiness.Output != nil) {
			b.Down, t.slot.life.failed, t.slot.note = false, 0, ""
		}
	}
	if t.live("stop") && !equality.Semantic.DeepEqual(b.Stop, t.spec.stop) {
		b.Stop, changed = t.spec.stop, true
	}
	return changed
}

// live tells whether anything of the field is.
func (t *tuner) live(field string) bool {
	return slices.ContainsFunc(t.paths, func(p fieldpath.Path) bool { return p[1].Name == field })
}

// liveFile tells whether anything of the i-th file is live.
func (t *tuner) liveFile(i int) bool {
	return slices.ContainsFunc(t.paths, func(p fieldpath.Path) bool {
		return p[1].Name == "files" && (len(p) == 2 || p[2].Index == i)
	})
}

// files are how the body's files become what they should be: live ones that are
// not are written, and those that are not to be any more removed.
func (t *tuner) files(b *bodyRecord) change {
	c := change{are: b.Files}
	if !t.live("files") {
		return c
	}
	c.are = nil
	for i, f := range t.spec.files {
		is := f.written()
		switch {
		case !t.liveFile(i) && i < len(b.Files):
			is = b.Files[i]
		case t.liveFile(i) && !slices.Contains(b.Files, is):
			c.write = append(c.write, placed{f, i})
		}
		c.are = append(c.are, is)
	}
	c.remove = b.besides(c.are)
	return c
}

// change makes the files of the slot's body others.
func (k *Kind) change(s *slot, c change) error {
	if !c.any() {
		return nil
	}
	b := s.record.Body
	if err := s.unsettle(c); err != nil {
		return err
	}
	k.reached("unsettled")
	root, err := os.OpenRoot(s.work(b))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := c.writeIn(root); err != nil {
		return err
	}
	c.removeIn(root)
	k.reached("changed")
	unsettled := *b
	b.Files, b.Strays = c.are, nil
	if err := s.record.save(s.dir); err != nil {
		*b = unsettled
		return classify(err, "record the files")
	}
	return nil
}
