package operator

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/body/objects"
	"github.com/pawl-dev/pawl/internal/body/process"
	"github.com/pawl-dev/pawl/internal/controller/member"
	"github.com/pawl-dev/pawl/internal/render"
)

// newKinds makes the kinds of bodies that are switched on. What it returns
// stops following them; the bodies live on.
func newKinds(c *rest.Config, mgr manager.Manager, o Options, notify body.Notify) (member.Kinds, func(), error) {
	onObjects := objects.New(objects.Options{
		Config: c, Mapper: mgr.GetRESTMapper(), Render: render.Manifests, Ready: render.Ready, Notify: notify,
	})
	kinds := member.Kinds{Objects: onObjects}
	if o.ProcessDir == "" {
		return kinds, onObjects.Close, nil
	}
	onProcess, err := process.New(o.ProcessDir, render.Text, notify, process.Options{})
	if err != nil {
		onObjects.Close()
		return kinds, nil, err
	}
	kinds.Process = onProcess
	return kinds, func() { onProcess.Close(); onObjects.Close() }, nil
}
