package revision_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/revision"
)

// rewrite is for adding inputs. An id that is in the file must not change: that
// would rename every revision in every cluster.
var rewrite = flag.Bool("rewrite", false, "rewrite testdata/golden.txt")

func TestHash_golden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	var got strings.Builder
	for _, file := range files {
		in, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		canonical, err := revision.Canonical(in)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		fmt.Fprintf(&got, "%s\n", filepath.Base(file))
		for _, version := range revision.Versions() {
			fmt.Fprintf(&got, "  %d %s\n", version, hash(t, version, canonical))
		}
		fmt.Fprintf(&got, "  %s\n", canonical)
	}
	const golden = "testdata/golden.txt"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("an id must never change: (-want +got)\n%s", diff)
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[bcdfghjklmnpqrstvwxz2456789]{12}$`)
	seen := map[string]string{}
	for _, version := range revision.Versions() {
		for i := range 2000 {
			in := fmt.Sprintf(`{"i":%d}`, i)
			id := hash(t, version, []byte(in))
			if !form.MatchString(id) {
				t.Fatalf("%q does not have the form of an id", id)
			}
			name := fmt.Sprintf("%s in version %d", in, version)
			if other, ok := seen[id]; ok {
				t.Fatalf("%s and %s have the same id, %s", other, name, id)
			}
			seen[id] = name
		}
	}
}

func TestHash_unknownVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []int{-1, 0, slices.Max(revision.Versions()) + 1} {
		if id, err := revision.Hash(version, []byte(`{}`)); err == nil {
			t.Errorf("unknown version %d: got id %s, want an error", version, id)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	versions := revision.Versions()
	if !slices.Contains(versions, revision.Current) {
		t.Errorf("versions %v lack the current one, %d", versions, revision.Current)
	}
	if len(versions) < 2 {
		t.Errorf("got versions %v, want at least two to test a change of version", versions)
	}
	versions[0] = 99
	if revision.Versions()[0] == 99 {
		t.Error("a caller can change the result of later calls")
	}
}

func hash(t *testing.T, version int, canonical []byte) string {
	t.Helper()
	id, err := revision.Hash(version, canonical)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
