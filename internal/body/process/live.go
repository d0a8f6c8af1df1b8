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
	was := *b
	changed, err := t.apply(b)
	if err != nil || !changed {
		return err
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

// apply notes in the body's record what it has written. Where it fails, some of
// the files may have been.
func (t *tuner) apply(b *bodyRecord) (changed bool, err error) {
	files, err := t.files(b)
	if err != nil {
		return false, err
	}
	if !slices.Equal(files, b.Files) {
		b.Files, changed = files, true
	}
	if t.live("readiness") && !equality.Semantic.DeepEqual(b.Readiness, t.spec.readiness) {
		b.Readiness, changed = t.spec.readiness, true
		if b.Down = false; b.Readiness == nil {
			b.Ready = true
		}
		t.slot.life.failed, t.slot.note = 0, ""
	}
	if t.live("stop") && !equality.Semantic.DeepEqual(b.Stop, t.spec.stop) {
		b.Stop, changed = t.spec.stop, true
	}
	return changed, nil
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

// files writes the live files that are not as they should be, removes those
// that are not to be any more, and says which there are.
func (t *tuner) files(b *bodyRecord) ([]written, error) {
	if !t.live("files") {
		return b.Files, nil
	}
	root, err := os.OpenRoot(t.slot.work(b))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	var are []written
	for i, f := range t.spec.files {
		is := f.written()
		switch {
		case !t.liveFile(i) && i < len(b.Files):
			is = b.Files[i]
		case t.liveFile(i) && !slices.Contains(b.Files, is):
			if err := f.write(root, i); err != nil {
				return nil, err
			}
		}
		are = append(are, is)
	}
	removeFiles(root, b.Files, are)
	return are, nil
}
