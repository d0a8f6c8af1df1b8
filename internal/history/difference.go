package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/pawl-dev/pawl/revision"
)

// Renderer is the difference between two revisions that the same template and
// sources are rendered to something else.
const Renderer = "renderer"

// Differences are the places in which two revisions of a pool differ, but for
// what is live: paths such as template.process.args[2], sources such as
// "ConfigMap bootstrap: install.sh", and Renderer. They hold names and no
// values.
func Differences(a, b *appsv1.ControllerRevision, live []string) ([]string, error) {
	before, err := contentAndRender(a)
	if err != nil {
		return nil, err
	}
	after, err := contentAndRender(b)
	if err != nil {
		return nil, err
	}
	places, err := templatePlaces(before, after, live)
	if err != nil {
		return nil, fmt.Errorf("ControllerRevisions %s and %s: %w", a.Name, b.Name, err)
	}
	places = append(places, sourcePlaces(before, after)...)
	if len(places) == 0 && slices.Equal(before.Live, after.Live) && before.Render != nil && after.Render != nil && *before.Render != *after.Render {
		places = append(places, Renderer)
	}
	return places, nil
}

// Few says the first of a list, and how many more there are.
func Few(list []string, most int) string {
	if n := len(list) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), n)
	}
	return strings.Join(list, ", ")
}

// contentAndRender is what a revision holds, with what it was found to be
// rendered to later.
func contentAndRender(r *appsv1.ControllerRevision) (*Content, error) {
	c, err := ReadContent(r)
	if err != nil || c.Render != nil {
		return c, err
	}
	rec, err := ReadRecord(r)
	c.Render = rec.Render
	return c, err
}

func templatePlaces(a, b *Content, live []string) ([]string, error) {
	before, err := without(a.Template, live)
	if err != nil {
		return nil, err
	}
	after, err := without(b.Template, live)
	if err != nil {
		return nil, err
	}
	changes, err := revision.Changes(before, after)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the objects
	}
	var places []string
	for i := range changes {
		places = append(places, changes[i].Path)
	}
	return places, nil
}

// sourcePlaces are the keys whose content differs, in the order of the sources'
// names. A source that only one of them has is named as a whole.
func sourcePlaces(a, b *Content) []string {
	before, after := byName(a.Sources), byName(b.Sources)
	names := maps.Clone(before)
	maps.Copy(names, after)
	var places []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, had := before[name]
		now, has := after[name]
		switch {
		case !has:
			places = append(places, old.String())
		case !had:
			places = append(places, now.String())
		default:
			places = append(places, now.places(&old)...)
		}
	}
	return places
}

func byName(list []Source) map[string]Source {
	all := make(map[string]Source, len(list))
	for _, s := range list {
		all[s.Name] = s
	}
	return all
}

// String is what people call it: its kind and name, and the path of a field.
func (s *Source) String() string {
	name := strings.TrimSpace(s.Kind + " " + s.Object)
	if name == "" {
		name = "source " + s.Name
	}
	if s.Field != "" {
		name += ": " + s.Field
	}
	return name
}

// places are the keys whose content is not what it was.
func (s *Source) places(was *Source) []string {
	keys := map[string]string{}
	maps.Copy(keys, s.Digests)
	maps.Copy(keys, was.Digests)
	var places []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch {
		case s.Digests[key] == was.Digests[key]:
		case key == "":
			places = append(places, s.String())
		default:
			places = append(places, s.String()+": "+key)
		}
	}
	return places
}
