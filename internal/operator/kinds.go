package operator

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/body/process"
	"github.com/pawl-dev/pawl/internal/controller/member"
	"github.com/pawl-dev/pawl/internal/render"
)

// newKinds makes the kinds of bodies that are switched on.
func newKinds(_ manager.Manager, o Options, notify body.Notify) (member.Kinds, func(), error) {
	var kinds member.Kinds
	closeAll := func() {}
	if o.ProcessDir != "" {
		k, err := process.New(o.ProcessDir, render.Text, notify, process.Options{})
		if err != nil {
			return kinds, closeAll, err
		}
		kinds.Process, closeAll = k, k.Close
	}
	return kinds, closeAll, nil
}
