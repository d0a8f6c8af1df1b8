//go:build integration

package pawldtest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// What pawld keeps is closed to other users, and so is what it listens on.
func TestPawld_Closed(t *testing.T) {
	s := Start(t)
	err := filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		// Below a closed directory the rest follows.
		if path == s.Dir && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %o, want 700", path, info.Mode().Perm())
		}
		if (strings.HasSuffix(path, ".key") || filepath.Base(path) == "kubeconfig") && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", path, info.Mode().Perm())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := listeners(t, s.PID()); len(got) != 1 || "https://"+got[0] != s.Config.Host {
		t.Errorf("pawld listens on %v, want only %s", got, s.Config.Host)
	}

	nobody := rest.AnonymousClientConfig(s.Config)
	client, err := rest.HTTPClientFor(nobody)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/version", "/readyz", "/api", "/openapi/v3"} {
		response, err := client.Get(s.Config.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s answers %s to anybody", path, response.Status)
		}
	}
}

// listeners are the addresses of the TCP sockets on which a process listens.
func listeners(t *testing.T, pid int) []string {
	t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	inodes := map[string]bool{}
	for _, fd := range fds {
		link, err := os.Readlink(fd)
		if err == nil && strings.HasPrefix(link, "socket:[") {
			inodes[strings.Trim(link, "socket:[]")] = true
		}
	}
	var found []string
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue // no IPv6
		}
		for line := range strings.Lines(string(data)) {
			fields := strings.Fields(line)
			if len(fields) > 9 && fields[3] == "0A" && inodes[fields[9]] {
				found = append(found, address(t, fields[1]))
			}
		}
	}
	return found
}

// address reads the kernel's way of writing an address.
func address(t *testing.T, hex string) string {
	t.Helper()
	var ip [4]byte
	var port int
	if _, err := fmt.Sscanf(hex, "%02X%02X%02X%02X:%04X", &ip[3], &ip[2], &ip[1], &ip[0], &port); err != nil {
		return hex // IPv6: not the one that is wanted
	}
	return fmt.Sprintf("%d.%d.%d.%d:%d", ip[0], ip[1], ip[2], ip[3], port)
}

// An open watch does not keep pawld from stopping.
func TestPawld_StopsUnderWatch(t *testing.T) {
	s := Start(t)
	client, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	w, err := client.CoreV1().Namespaces().Watch(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	begin := time.Now()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("stopped after %s", took)
	}
}

// TestPawld_Cost holds pawld to its numbers: 6 s to serve on two cores, and 350
// MB. The time is the processor's, which a busy machine makes longer too, but
// not without bound: idle, it is under 4 s, and serving takes 3.
func TestPawld_Cost(t *testing.T) {
	s := Start(t)
	spent, resident := cost(t, s.PID())
	t.Logf("serves after %s of processor time with %d MB resident", spent, resident>>20)
	if limit := 8 * time.Second; spent > limit {
		t.Errorf("pawld took %s of processor time to serve, more than %s", spent, limit)
	}
	if limit := 350 << 20; resident > limit {
		t.Errorf("pawld has %d MB resident, more than %d", resident>>20, limit>>20)
	}
}

// cost is what a process has taken so far: processor time and memory in bytes.
func cost(t *testing.T, pid int) (spent time.Duration, resident int) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// The fields after the name, which ends in the last parenthesis.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	var user, system, pages int
	if _, err := fmt.Sscan(fields[11]+" "+fields[12]+" "+fields[21], &user, &system, &pages); err != nil {
		t.Fatal(err)
	}
	const tick = 10 * time.Millisecond
	return time.Duration(user+system) * tick, pages * os.Getpagesize()
}
