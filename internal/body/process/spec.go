//go:build linux

package process

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// Render fills ${…} in a string of a template in. The variables are member
// (name, index, incarnation, namespace), pool (name, namespace), ports (numbers
// by name), whole numbers as int64, and sources.
type Render func(s string, vars map[string]any) (string, error)

// spec is a process to be started, with nothing left to fill in.
type spec struct {
	path      string
	args      []string
	env       map[string]string
	files     []file
	address   string
	ports     map[string]int
	readiness *v1alpha1.Readiness
	stop      *v1alpha1.Stop
}

// refuse says that the template cannot become a process, and for which field.
func refuse(field string, err error) error {
	return fmt.Errorf("%w: template.process%s: %w", body.ErrRefused, field, err)
}

// newSpec renders and checks a template. It touches nothing; its errors wrap
// body.ErrRefused and name the field.
func newSpec(slot body.Slot, template *v1alpha1.Template, ports map[string]int, render Render) (*spec, error) {
	s, err := renderSpec(slot, template, ports, render)
	if err != nil {
		return nil, err
	}
	return s, s.check()
}

// renderSpec is newSpec without a look at what the machine has.
func renderSpec(slot body.Slot, template *v1alpha1.Template, ports map[string]int, render Render) (*spec, error) {
	if template == nil || template.Process == nil {
		return nil, refuse("", errors.New("is missing"))
	}
	p := template.Process
	r := renderer{render: render, vars: variables(slot, ports)}
	s := &spec{env: map[string]string{}, ports: ports, stop: p.Stop.DeepCopy()}
	command := r.text(".command", p.Command)
	s.args = append([]string{command}, r.texts(".args", p.Args)...)
	for _, name := range sortedKeys(p.Env) {
		s.env[name] = r.text(".env."+name, p.Env[name])
	}
	for i, f := range p.Files {
		s.files = append(s.files, r.file(".files["+strconv.Itoa(i)+"]", f))
	}
	s.readiness = r.readiness(p)
	if r.err != nil {
		return nil, r.err
	}
	if len(p.Ports) > 0 {
		s.address = loopback(ports[p.Ports[0]])
	}
	return s, nil
}

// check finds what can be known to fail before it is tried.
func (s *spec) check() (err error) {
	if s.path, err = lookPath(s.args[0], s.searchPath()); err != nil {
		return refuse(".command", err)
	}
	for _, name := range sortedKeys(s.env) {
		if name == "" || name == markVariable || strings.ContainsAny(name, "=\x00") {
			return refuse(".env", fmt.Errorf("%q cannot be set", name))
		}
	}
	return s.checkEnd()
}

// checkEnd checks how the process is judged and ended.
func (s *spec) checkEnd() error {
	if s.stop != nil {
		if _, err := stopSignal(s.stop); err != nil {
			return refuse(".stop.signal", err)
		}
	}
	if r := s.readiness; r != nil && r.Exec != nil {
		if _, err := lookPath(r.Exec.Command[0], s.searchPath()); err != nil {
			return refuse(".readiness.exec.command[0]", err)
		}
	}
	return nil
}

// searchPath is the PATH in which the process finds programs.
func (s *spec) searchPath() string {
	if path, ok := s.env["PATH"]; ok {
		return path
	}
	return defaultPath()
}

func defaultPath() string {
	if path := os.Getenv("PATH"); path != "" {
		return path
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

// environ is the environment of the body: a minimal one, then the template's,
// sorted, and the mark by which its processes are known.
func (s *spec) environ(uid, work, tmp string) []string {
	all := map[string]string{"PATH": defaultPath(), "HOME": work, "TMPDIR": tmp, "LANG": "C.UTF-8"}
	maps.Copy(all, s.env)
	all[markVariable] = uid
	env := make([]string, 0, len(all))
	for _, name := range sortedKeys(all) {
		env = append(env, name+"="+all[name])
	}
	return env
}

func variables(slot body.Slot, ports map[string]int) map[string]any {
	sources := slot.Sources
	if sources == nil {
		sources = map[string]any{}
	}
	numbers := map[string]any{}
	for name, port := range ports {
		numbers[name] = int64(port)
	}
	return map[string]any{
		"member": map[string]any{
			"name": slot.Member, "namespace": slot.Namespace,
			"index": int64(slot.Index), "incarnation": slot.Incarnation,
		},
		"pool":    map[string]any{"name": slot.Pool, "namespace": slot.Namespace},
		"ports":   numbers,
		"sources": sources,
	}
}

// renderer renders one field after the other and keeps the first error.
type renderer struct {
	render Render
	vars   map[string]any
	err    error
}

func (r *renderer) text(field, s string) string {
	out, err := r.render(s, r.vars)
	if err == nil && strings.ContainsRune(out, 0) {
		err = errors.New("holds a NUL byte")
	}
	if err != nil {
		r.fail(field, err)
	}
	return out
}

func (r *renderer) texts(field string, list []string) []string {
	out := make([]string, 0, len(list))
	for i, s := range list {
		out = append(out, r.text(field+"["+strconv.Itoa(i)+"]", s))
	}
	return out
}

func (r *renderer) fail(field string, err error) {
	if r.err == nil {
		r.err = refuse(field, err)
	}
}

func (r *renderer) file(field string, f v1alpha1.File) file {
	out := file{path: f.Path, mode: 0o644}
	if !filepath.IsLocal(f.Path) || filepath.Clean(f.Path) != f.Path || f.Path == "." {
		r.fail(field+".path", fmt.Errorf("%q is not a path below the working directory", f.Path))
	}
	if f.Mode != nil {
		mode, err := strconv.ParseUint(*f.Mode, 8, 32)
		if err != nil || mode > 0o777 {
			r.fail(field+".mode", fmt.Errorf("%q is not an octal number up to 777", *f.Mode))
		}
		out.mode = os.FileMode(mode)
	}
	if f.Content != nil {
		// Files may hold NUL bytes, so this is not text.
		content, err := r.render(*f.Content, r.vars)
		if err != nil {
			r.fail(field+".content", err)
		}
		out.content = content
	}
	return out
}

// readiness gives the template's, rendered.
func (r *renderer) readiness(p *v1alpha1.Process) *v1alpha1.Readiness {
	if p.Readiness == nil {
		return nil
	}
	const field = ".readiness"
	out := p.Readiness.DeepCopy()
	n := 0
	if out.TCP != nil {
		n++
		r.port(field+".tcp.port", p, out.TCP.Port)
	}
	if out.HTTP != nil {
		n++
		r.port(field+".http.port", p, out.HTTP.Port)
		r.path(field+".http.path", out.HTTP)
	}
	if out.Exec != nil {
		n++
		out.Exec.Command = r.texts(field+".exec.command", out.Exec.Command)
		if len(out.Exec.Command) == 0 {
			r.fail(field+".exec.command", errors.New("is empty"))
		}
	}
	if out.Output != nil {
		n++
		out.Output.Match = r.text(field+".output.match", out.Output.Match)
		if _, err := regexp.Compile(out.Output.Match); err != nil {
			r.fail(field+".output.match", err)
		}
	}
	if n != 1 {
		r.fail(field, errors.New("exactly one of tcp, http, exec and output must be set"))
	}
	return out
}

func (r *renderer) port(field string, p *v1alpha1.Process, name string) {
	if slices.Contains(p.Ports, name) {
		return
	}
	has := strings.Join(p.Ports, ", ")
	if has == "" {
		has = "none"
	}
	r.fail(field, fmt.Errorf("the process has no port %q; template.process.ports has %s", name, has))
}

func (r *renderer) path(field string, probe *v1alpha1.HTTPProbe) {
	path := "/"
	if probe.Path != nil {
		path = r.text(field, *probe.Path)
	}
	if _, err := probeURL(1, path); err != nil {
		r.fail(field, err)
	}
	probe.Path = &path
}

// lookPath finds a program: an absolute path, or a name without slashes in the
// absolute directories of a PATH.
func lookPath(name, path string) (string, error) {
	switch {
	case filepath.IsAbs(name):
		return name, executable(name)
	case name == "":
		return "", errors.New("is empty")
	case strings.Contains(name, "/"):
		return "", fmt.Errorf("%q must be an absolute path or a name that is found in PATH", name)
	}
	for _, dir := range filepath.SplitList(path) {
		if full := filepath.Join(dir, name); filepath.IsAbs(full) && executable(full) == nil {
			return full, nil
		}
	}
	return "", fmt.Errorf("%q is not found in PATH (%s)", name, path)
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("%s is not executable: %w", path, err)
	}
	return nil
}

// stopSignal is what a body is told first to go with.
func stopSignal(s *v1alpha1.Stop) (unix.Signal, error) {
	if s == nil || s.Signal == nil {
		return unix.SIGTERM, nil
	}
	switch *s.Signal {
	case "TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "KILL":
		return unix.SignalNum("SIG" + *s.Signal), nil
	}
	return 0, fmt.Errorf("%q is not one of TERM, INT, QUIT, HUP, USR1, USR2, KILL", *s.Signal)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
