//go:build integration

package pawldtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// disk mounts a file system with room for size bytes, which a test needs
// privileges for.
func disk(t *testing.T, size int) string {
	t.Helper()
	// t.TempDir is too long a path for a socket in it.
	dir, err := os.MkdirTemp("", "pawld-disk-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("a small file system needs the right to mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func resize(t *testing.T, dir string, size int) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", size)); err != nil {
		t.Fatal(err)
	}
}

func TestPawld_DiskFull(t *testing.T) {
	small := disk(t, 40<<20)
	said := refuse(t, "--data-dir", filepath.Join(small, "d"))
	for _, want := range []string{"--data-dir: " + small, "MiB are free there, and 64 MiB are needed", "choose another directory"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}
}

// A disk that fills up ends pawld with a word about it, and takes nothing that
// was acknowledged.
func TestPawld_DiskFills(t *testing.T) {
	mount := disk(t, 90<<20)
	s := Start(t, WithoutControllers(), In(filepath.Join(mount, "d")))
	client, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string][]byte{}
	for n := range 1000 {
		name := fmt.Sprintf("c-%d", n)
		data := make([]byte, 500<<10)
		_, _ = rand.Read(data)
		_, err := client.CoreV1().ConfigMaps("default").Create(context.Background(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name}, BinaryData: map[string][]byte{"data": data},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Logf("stored %d MiB until %v", len(stored)/2, err)
			break
		}
		stored[name] = data
	}
	said, err := s.wait()
	if err == nil {
		t.Error("pawld ended without an error")
	}
	for _, want := range []string{"no space left on device", "free some space in " + s.Dir} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}

	resize(t, mount, 500<<20)
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	for name, data := range stored {
		o, err := client.CoreV1().ConfigMaps("default").Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(o.BinaryData["data"], data) {
			t.Errorf("%s has changed", name)
		}
	}
}
