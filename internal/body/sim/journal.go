package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/body"
)

// journal keeps the bodies in a file: a line for each change, the last one of a
// slot being what counts. It is written anew once most of it is of the past. A
// nil journal keeps nothing.
type journal struct {
	path  string
	file  *os.File
	lines int
	size  int64
}

// entry is a line of a journal. Without a body there is none any more.
type entry struct {
	key
	Body *script `json:"body,omitempty"`
}

// openJournal reads the file and writes it anew with what still counts.
func openJournal(path string, now time.Time) (*journal, map[key]*script, error) {
	bodies, err := readJournal(path)
	if err != nil {
		return nil, nil, err
	}
	for k, s := range bodies {
		if s.at(now) == body.Absent {
			delete(bodies, k)
		}
	}
	j := &journal{path: path}
	if err := j.renew(bodies, now); err != nil {
		return nil, nil, err
	}
	return j, bodies, nil
}

func readJournal(path string) (map[key]*script, error) {
	bodies := map[key]*script{}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return bodies, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			// A line without an end is one whose writer died in the middle: it
			// never counted.
			return bodies, nil
		}
		if err != nil {
			return nil, err
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s is damaged in line %d: %w", path, n, err)
		}
		bodies[e.key] = e.Body
		if e.Body == nil {
			delete(bodies, e.key)
		}
	}
}

// write notes that s is the body of the slot now, or that there is none. The
// bodies are those from before; they serve to write the file anew.
func (j *journal) write(k key, s *script, bodies map[key]*script, now time.Time) error {
	if j == nil {
		return nil
	}
	if j.lines > 1000+4*len(bodies) {
		if err := j.renew(bodies, now); err != nil {
			return err
		}
	}
	line, err := json.Marshal(entry{k, s})
	if err != nil {
		return err
	}
	n, err := j.file.Write(append(line, '\n'))
	if err != nil {
		// Half a line would spoil the next.
		return errors.Join(err, j.file.Truncate(j.size))
	}
	j.size += int64(n)
	j.lines++
	return nil
}

// renew writes the file anew, so that it is there as it was or as it is to be.
func (j *journal) renew(bodies map[key]*script, now time.Time) error {
	var b bytes.Buffer
	lines := 0
	for _, k := range sortedKeys(bodies) {
		if bodies[k].at(now) == body.Absent {
			continue
		}
		line, err := json.Marshal(entry{k, bodies[k]})
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
		lines++
	}
	f, err := os.OpenFile(j.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(j.path+".new", j.path)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	old := j.file
	j.file, j.lines, j.size = f, lines, int64(b.Len())
	if old != nil {
		return old.Close()
	}
	return nil
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}

func sortedKeys(bodies map[key]*script) []key {
	keys := make([]key, 0, len(bodies))
	for k := range bodies {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
			return c
		}
		return strings.Compare(a.Member, b.Member)
	})
	return keys
}
