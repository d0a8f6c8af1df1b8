package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-dev/pawl/rollout"
)

// Scenario is one file, checked and compiled. Runs do not change it and may share
// it.
type Scenario struct {
	// File is the path of the file.
	File string
	// Name and Why are fields of the file.
	Name, Why string
	// Needs lists the features that the file uses and the simulator does not have
	// yet. A scenario with needs is not played; it waits.
	Needs []string
	// Live is false for a scenario that is too long for real time.
	Live bool

	pools []poolSetup // by name
	// groups and budgets are the names of the file's groups and budgets, which are
	// not played yet.
	groups, budgets []string
	// several: the file has more than one pool or group.
	several bool
	// date is the time at t=0.
	date     time.Time
	world    nature
	timeline []entry
	run      time.Duration
	expect   expectations
}

// poolSetup is the start of a pool.
type poolSetup struct {
	name            string
	spec            spec
	target, current rollout.Revision
	members         []memberSetup // by index
}

// memberSetup is the start of a member.
type memberSetup struct {
	index              int
	revision           rollout.Revision
	state              string
	claim, role, shard string
	occupancy          rollout.Occupancy
	held               bool
	holdUntil          time.Duration
	cost               int
}

// Limits of a file.
const (
	maxFileSize = 1 << 20
	maxMembers  = 100_000
	maxRepeat   = 1_000_000
	defaultRun  = time.Hour
)

// Load reads the scenario in the file. The error consists of one or more errors of
// type [Error], joined.
func Load(path string) (*Scenario, error) {
	data, err := read(path)
	if err != nil {
		return nil, &Error{File: path, Text: reading(err)}
	}
	return Parse(path, data)
}

// read reads at most maxFileSize+1 bytes of a file, so that Parse can refuse larger
// files.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	return data, errors.Join(err, f.Close())
}

// reading returns the error without the path, which Error has.
func reading(err error) string {
	if pe := new(os.PathError); errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// Parse checks and compiles a scenario. file is the path for messages; unless it is
// empty, the scenario must have the file's name. Errors are as from [Load].
func Parse(file string, data []byte) (*Scenario, error) {
	p := &parser{file: file}
	if len(data) > maxFileSize {
		return nil, &Error{File: file, Text: fmt.Sprintf("more than %d bytes", maxFileSize)}
	}
	root, err := document(data)
	if err != nil {
		line, text := yamlError(err)
		return nil, &Error{File: file, Line: line, Text: text}
	}
	if n := findAlias(root); n != nil {
		p.fail(n, "aliases and merge keys are not allowed")
		return nil, p.err()
	}
	s := p.scenario(root)
	if err := p.err(); err != nil {
		return nil, err
	}
	s.Needs = p.needs
	return s, nil
}

// document returns the only YAML document in the data.
func document(data []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var n, more yaml.Node
	switch err := d.Decode(&n); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the file is empty")
	case err != nil:
		return nil, err
	case !errors.Is(d.Decode(&more), io.EOF):
		return nil, errors.New("more than one YAML document")
	}
	return n.Content[0], nil
}

var atLine = regexp.MustCompile(`^yaml: line (\d+): `)

// yamlError splits the YAML parser's message into line and text.
func yamlError(err error) (line int, text string) {
	text = err.Error()
	m := atLine.FindStringSubmatch(text)
	if m == nil {
		return 0, strings.TrimPrefix(text, "yaml: ")
	}
	line, err = strconv.Atoi(m[1])
	if err != nil {
		return 0, text
	}
	return line, text[len(m[0]):]
}

// findAlias finds an alias or merge key, which could make a small file large.
func findAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode || n.Tag == "!!merge" {
		return n
	}
	for _, c := range n.Content {
		if o := findAlias(c); o != nil {
			return o
		}
	}
	return nil
}

var kebab = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// topLevel has the parts of a file that are parsed after the others.
type topLevel struct {
	pool, pools, groups, start, timeline, expect *yaml.Node
}

func (p *parser) scenario(root *yaml.Node) *Scenario {
	s := &Scenario{File: p.file, Live: true, run: defaultRun, date: epoch, world: defaultNature}
	var t topLevel
	p.fields(root, "scenario", map[string]func(*yaml.Node){
		"name":       func(n *yaml.Node) { s.Name = p.name(n) },
		"why":        func(n *yaml.Node) { s.Why = p.word(n, "why") },
		"seen":       func(n *yaml.Node) { p.seen(n) },
		"pool":       func(n *yaml.Node) { t.pool = n },
		"pools":      func(n *yaml.Node) { t.pools = n },
		"groups":     func(n *yaml.Node) { t.groups = n },
		"budgets":    func(n *yaml.Node) { s.budgets = p.budgets(n) },
		"namespaces": func(n *yaml.Node) { p.namespaces(n) },
		"world":      func(n *yaml.Node) { p.world(n, s) },
		"start":      func(n *yaml.Node) { t.start = n },
		"timeline":   func(n *yaml.Node) { t.timeline = n },
		"live":       func(n *yaml.Node) { s.Live = p.truth(n, "live") },
		"run":        func(n *yaml.Node) { s.run = p.duration(n, "run") },
		"expect":     func(n *yaml.Node) { t.expect = n },
	})
	if s.Name == "" {
		p.fail(root, "scenario: name is missing")
	}
	p.subjects(root, s, t)
	p.start(t.start, s)
	if t.timeline != nil {
		p.timeline(t.timeline, s)
	}
	if t.expect != nil {
		p.expect(t.expect, s)
	}
	return s
}

// name reads the name, which must be that of the file.
func (p *parser) name(n *yaml.Node) string {
	s := p.word(n, "name")
	base := strings.TrimSuffix(filepath.Base(p.file), filepath.Ext(p.file))
	switch {
	case s != "" && !kebab.MatchString(s):
		p.fail(n, "name must be in kebab-case, not %q", s)
	case p.file != "" && s != "" && s != base:
		p.fail(n, "name %q differs from the file's name", s)
	}
	return s
}

func (p *parser) seen(n *yaml.Node) {
	for _, c := range p.list(n, "seen") {
		p.word(c, "seen")
	}
}

// subjects reads the pools or groups of the scenario. A single group without a pool
// is the default subject of entries, as a single pool is.
func (p *parser) subjects(root *yaml.Node, s *Scenario, t topLevel) {
	switch {
	case t.pool != nil && t.pools != nil:
		p.fail(t.pools, "pool and pools exclude one another")
	case t.pool == nil && t.pools == nil && t.groups == nil:
		p.fail(root, "scenario: pool, pools or groups is missing")
	}
	if t.pool != nil {
		s.pools = []poolSetup{{name: "pool", spec: p.spec(t.pool)}}
	}
	if t.pools != nil {
		s.several = true
		for _, f := range p.mapping(t.pools, "pools") {
			s.pools = append(s.pools, poolSetup{name: f.name, spec: p.spec(f.value)})
		}
		if len(s.pools) == 0 {
			p.fail(t.pools, "pools must not be empty")
		}
	}
	if t.groups != nil {
		s.groups = p.groups(t.groups)
		s.several = len(s.pools) > 0 || len(s.groups) != 1
	}
}

// pool returns the setup by name; nil if there is none.
func (s *Scenario) pool(name string) *poolSetup {
	for i := range s.pools {
		if s.pools[i].name == name {
			return &s.pools[i]
		}
	}
	return nil
}
