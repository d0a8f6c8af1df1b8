package main

import (
	"context"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestUndo_status: a controller that writes the pool's status in between is not
// in the way.
func TestUndo_status(t *testing.T) {
	t.Parallel()
	_, objects := daemons(t)
	term := newTerminal(t, objects...)
	written := 0
	term.client = interceptor.NewClient(term.client, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if written++; written < 4 {
				p := poolOf(t, term)
				p.Status.Free = int32(written)
				if err := c.Status().Update(ctx, p); err != nil {
					return err
				}
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	})
	if got := term.do(t.Context(), "undo", "web"); got != 0 || !strings.HasPrefix(term.out.String(), "pool web: the template of revision 4 (") {
		t.Fatalf("exit status %d: %s%s", got, &term.out, &term.err)
	}
	if p := poolOf(t, term); p.Spec.Template.Process.Args[1] != "one" || p.Status.Free != 3 {
		t.Errorf("after %d writes: %+v, %d free", written, p.Spec.Template.Process, p.Status.Free)
	}
}
