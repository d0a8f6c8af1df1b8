package history

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/revision"
)

// Finder finds the stored revisions of a content. What it has read of them it
// remembers, since they never change. The zero value is ready for use, by
// several goroutines.
type Finder struct {
	mu    sync.Mutex
	known map[key]sums
}

// key names a revision as it is seen without some live fields.
type key struct{ namespace, pool, name, uid, live string }

func keyOf(r *appsv1.ControllerRevision, live []string) key {
	return key{r.Namespace, r.Labels[v1alpha1.LabelPool], r.Name, string(r.UID), strings.Join(live, "\n")}
}

// sums stand for a content's parts.
type sums struct {
	template, sources [sha256.Size]byte
	render            *string
	// live is what was left out when it was rendered.
	live string
	// secret: a source is a Secret.
	secret bool
}

// Question is what a Finder is asked.
type Question struct {
	// Revisions are a pool's, Records what happened to them, by id.
	Revisions []*appsv1.ControllerRevision
	Records   map[string]Record
	// Content is what is looked for. TemplateOnly: nothing but its template
	// could be read.
	Content      *Content
	TemplateOnly bool
	// Live are the paths that do not count.
	Live []string
	// Prefer is the id of the revision that is taken, of several.
	Prefer string
}

// Find returns the revision that says the same as the content, or nil. A
// revision of which nobody kept what it was rendered to, with the live fields of
// now, says the same whatever that is. Same are the ids of others that say the same too, as some do once
// that in which they differed has become live.
func (f *Finder) Find(q Question) (found *appsv1.ControllerRevision, same []string, err error) {
	want, err := sum(q.Content, q.Live)
	if err != nil {
		return nil, nil, fmt.Errorf("spec.template: %w", err)
	}
	var all []*appsv1.ControllerRevision
	says := map[*appsv1.ControllerRevision]sums{}
	for _, r := range q.Revisions {
		have, err := f.sums(r, q.Live)
		if err != nil {
			return nil, nil, err
		}
		if have.render == nil {
			have.render = q.Records[RevisionID(r)].Render
		}
		if have.live != want.live {
			have.render = nil // of more of it, or less
		}
		if have.template == want.template && (q.TemplateOnly || have.matches(&want)) {
			all = append(all, r)
			says[r] = have
		}
	}
	if len(all) == 0 {
		return nil, nil, nil
	}
	found = slices.MaxFunc(all, func(a, b *appsv1.ControllerRevision) int {
		switch q.Prefer {
		case RevisionID(a):
			return 1
		case RevisionID(b):
			return -1
		}
		return older(a, b)
	})
	want = says[found]
	for _, r := range all {
		if have := says[r]; r != found && have.template == want.template && have.matches(&want) {
			same = append(same, RevisionID(r))
		}
	}
	return found, same, nil
}

// Secret tells whether any of the revisions has a Secret as a source. One that
// cannot be read counts as that.
func (f *Finder) Secret(list []*appsv1.ControllerRevision, live []string) bool {
	return slices.ContainsFunc(list, func(r *appsv1.ControllerRevision) bool {
		s, err := f.sums(r, live)
		return err != nil || s.secret
	})
}

// matches compares what is not the template.
func (s *sums) matches(o *sums) bool {
	return s.sources == o.sources && (s.render == nil || o.render == nil || *s.render == *o.render)
}

// sums are those of a stored revision.
func (f *Finder) sums(r *appsv1.ControllerRevision, live []string) (sums, error) {
	k := keyOf(r, live)
	f.mu.Lock()
	s, ok := f.known[k]
	f.mu.Unlock()
	if ok {
		return s, nil
	}
	c, err := ReadContent(r)
	if err == nil {
		s, err = sum(c, live)
	}
	if err != nil {
		return s, fmt.Errorf("ControllerRevision %s: data: %w", r.Name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		f.known = map[key]sums{}
	}
	f.known[k] = s
	return s, nil
}

// Forget drops what is remembered of a pool's revisions, but for those in the
// list as they are seen without these live fields.
func (f *Finder) Forget(namespace, pool string, keep []*appsv1.ControllerRevision, live []string) {
	kept := make(map[key]bool, len(keep))
	for _, r := range keep {
		kept[keyOf(r, live)] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range f.known {
		if k.namespace == namespace && k.pool == pool && !kept[k] {
			delete(f.known, k)
		}
	}
}

// sum is that of a content without what is live.
func sum(c *Content, live []string) (sums, error) {
	raw, err := without(c.Template, live)
	if err != nil {
		return sums{}, fmt.Errorf("liveFields: %w", err)
	}
	template, err := revision.Canonical(raw)
	if err != nil {
		return sums{}, err //nolint:wrapcheck // the caller names the object
	}
	text, err := json.Marshal(c.digests())
	if err != nil {
		return sums{}, fmt.Errorf("encode sources: %w", err)
	}
	sources, err := revision.Canonical(text)
	if err != nil {
		return sums{}, err //nolint:wrapcheck // the caller names the object
	}
	secret := slices.ContainsFunc(c.Sources, func(s Source) bool { return s.Secret })
	return sums{sha256.Sum256(template), sha256.Sum256(sources), c.Render, strings.Join(c.Live, "\n"), secret}, nil
}
