//go:build integration

package pawldtest

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

func TestServer_Restart(t *testing.T) {
	s := Start(t, WithoutControllers())
	host := s.Config.Host
	pid := s.PID()
	s.Kill()
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if s.PID() == pid {
		t.Error("a restarted pawld has the same process id")
	}
	if s.Config.Host != host {
		t.Errorf("host = %s after a restart, want %s", s.Config.Host, host)
	}
	d, err := discovery.NewDiscoveryClientForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := d.ServerResourcesForGroupVersion("pawl.dev/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]metav1.APIResource{}
	for _, r := range list.APIResources {
		served[r.Name] = r
	}
	for _, name := range []string{"pools", "pools/scale", "members", "claims"} {
		if _, ok := served[name]; !ok {
			t.Errorf("%s is not served", name)
		}
	}
}

func TestServer_Cleanup(t *testing.T) {
	var dir string
	t.Run("server", func(t *testing.T) {
		dir = Start(t, WithoutControllers()).Dir
	})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory is still there: %v", err)
	}
}
