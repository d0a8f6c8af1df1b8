package objects

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// TestAccounts: every request says whose rights it is made with, whatever else
// is cached or evicted.
func TestAccounts(t *testing.T) {
	seen := make(chan string, 4)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Impersonate-User") + fmt.Sprint(r.Header["Impersonate-Group"])
	}))
	t.Cleanup(server.Close)
	a := newAccounts(&rest.Config{Host: server.URL, Impersonate: rest.ImpersonationConfig{Groups: []string{"system:masters"}}})
	for range 2 {
		for i := range maxAccounts + 1 {
			name := fmt.Sprintf("a%d", i)
			acc, err := a.get("shop", name)
			if err != nil {
				t.Fatal(err)
			}
			want := "system:serviceaccount:shop:" + name + "[]"
			_, _ = acc.client(schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "shop").Get(context.Background(), "p", metav1.GetOptions{})
			if got := <-seen; got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			_, _ = acc.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).List(context.Background(), metav1.ListOptions{})
			if got := <-seen; got != want {
				t.Fatalf("metadata: got %s, want %s", got, want)
			}
		}
	}
	if n := a.cache.Len(); n > maxAccounts {
		t.Errorf("%d accounts are kept, want at most %d", n, maxAccounts)
	}
}
