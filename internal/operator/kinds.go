package operator

import (
	"errors"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/body/objects"
	"github.com/pawl-dev/pawl/internal/body/process"
	"github.com/pawl-dev/pawl/internal/body/sim"
	"github.com/pawl-dev/pawl/internal/controller/member"
	"github.com/pawl-dev/pawl/internal/render"
	"github.com/pawl-dev/pawl/internal/source"
)

// newKinds makes the kinds of bodies that are switched on. What it returns
// stops following them; the bodies live on.
func newKinds(c *rest.Config, mgr manager.Manager, o Options, notify body.Notify) (member.Kinds, func() error, error) {
	var closers []func() error
	closeAll := func() error {
		var errs []error
		for _, c := range closers {
			errs = append(errs, c())
		}
		return errors.Join(errs...)
	}
	onObjects := objects.New(objects.Options{
		Config: c, Mapper: mgr.GetRESTMapper(), Render: render.Manifests, Ready: render.Ready, Notify: notify,
	})
	closers = append(closers, func() error { onObjects.Close(); return nil })
	kinds := member.Kinds{Objects: onObjects}
	if o.ProcessDir != "" {
		k, err := process.New(o.ProcessDir, render.Text, notify, process.Options{})
		if err != nil {
			return kinds, closeAll, err
		}
		closers = append(closers, func() error { k.Close(); return nil })
		kinds.Process = k
	}
	kinds.NoSim = !o.Sim
	switch w := o.Setting.World; {
	case w != nil:
		w.Notify(notify)
		closers = append(closers, func() error { w.Notify(nil); return nil })
		kinds.Sim = w
	case o.Sim || o.SimFile != "":
		w, err := sim.New(sim.Options{File: o.SimFile}, notify)
		if err != nil {
			return kinds, closeAll, err
		}
		closers = append(closers, w.Close)
		kinds.Sim = w
	}
	return kinds, closeAll, nil
}

// check says what is wrong with a pool's template and sources as they are
// written.
func check(kinds member.Kinds, p *v1alpha1.Pool) error {
	if err := render.Check(&p.Spec); err != nil {
		return err
	}
	if err := kinds.CheckLive(&p.Spec.Template); err != nil {
		return err
	}
	return source.Check(&p.Spec)
}

// validate says why a body can never be made of a pool's template as things
// are, before anything is touched. It asks for the first member; what holds
// for another one only, harms that one only.
func validate(kinds member.Kinds, p *v1alpha1.Pool, sources map[string]any) error {
	if err := kinds.Bears(&p.Spec.Template); err != nil {
		return err
	}
	k, err := kinds.Of(&p.Spec.Template)
	if err != nil {
		return err
	}
	v, ok := k.(body.Validator)
	if !ok {
		return nil
	}
	slot := body.Slot{Namespace: p.Namespace, Pool: p.Name, Member: p.Name + "-0", Incarnation: 1, Sources: sources}
	if a := p.Spec.ServiceAccountName; a != nil {
		slot.ServiceAccount = *a
	}
	return v.Validate(slot, &p.Spec.Template)
}
