//go:build linux

package process

import (
	"testing"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// A whole life: made, ready, told to go, gone.
func BenchmarkKind_Life(b *testing.B) {
	gone := make(chan struct{}, 1)
	k, err := New(b.TempDir(), testRender, func(string, string) { gone <- struct{}{} }, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	slot := slotNamed("web-0")
	template := &v1alpha1.Template{Process: process("sleep", "1000")}
	for b.Loop() {
		slot.Incarnation++
		o, err := k.Create(b.Context(), slot, template)
		if err != nil || o.State != body.Ready {
			b.Fatal(o, err)
		}
		if err := k.Delete(b.Context(), slot, o.UID); err != nil {
			b.Fatal(err)
		}
		<-gone
	}
}
