package objects

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// callTimeout bounds one call of a method, however many objects there are.
const callTimeout = 30 * time.Second

// Options are what a Kind needs. All are required.
type Options struct {
	// Config is Pawl's own access to the API server. It needs the right to
	// impersonate service accounts, and no other.
	Config *rest.Config
	// Mapper knows the kinds that the API server serves, and looks again when
	// asked for one that it does not know.
	Mapper meta.RESTMapper
	Render Render
	Ready  Ready
	Notify body.Notify
}

// Render fills in the ${…} of a JSON value. The variables are member (name,
// namespace, index, incarnation), pool (name, namespace), whole numbers as
// int64, and sources. The field is the path of the value in the template; errors begin with
// the path of the string that they are about. An error that wraps one of
// package context says nothing about the template.
type Render func(ctx context.Context, field string, tree any, vars map[string]any) (any, error)

// Ready evaluates an expression over objects, JSON values in the order of the
// template. Where it is false, why may say so in words. An error means that it
// cannot be told.
type Ready func(ctx context.Context, expression string, objects []any) (ok bool, why string, err error)

// Kind makes bodies of Kubernetes objects. It implements body.Kind,
// body.Validator, body.Updater and body.Liver.
type Kind struct {
	mapper   meta.RESTMapper
	render   Render
	ready    Ready
	discover discover
	now      func() time.Time
	accounts *accounts
	watches  *watches
	unserved absences
}

var (
	_ body.Kind      = (*Kind)(nil)
	_ body.Validator = (*Kind)(nil)
	_ body.Updater   = (*Kind)(nil)
	_ body.Liver     = (*Kind)(nil)
)

// New returns a Kind. Close ends its watches.
func New(o Options) *Kind {
	accounts := newAccounts(o.Config)
	return &Kind{
		mapper:   o.Mapper,
		render:   o.Render,
		ready:    o.Ready,
		discover: newDiscover(accounts.config),
		now:      time.Now,
		accounts: accounts,
		watches:  newWatches(o.Notify),
	}
}

// Close ends all watches and waits until they have ended. Nothing is notified
// of afterwards; the other methods still work, and ask to be called again.
func (k *Kind) Close() { k.watches.close() }

// Validate implements body.Validator: it renders the template for the slot and
// looks at the manifests, without asking the API server.
func (k *Kind) Validate(slot body.Slot, template *v1alpha1.Template) error {
	if slot.ServiceAccount == "" {
		return errNoAccount
	}
	_, err := k.manifests(context.Background(), slot, template)
	return err
}

// Drain implements body.Kind: nothing comes before the end.
func (k *Kind) Drain(context.Context, body.Slot, *v1alpha1.Template) (bool, error) { return true, nil }

// Undrain implements body.Kind.
func (k *Kind) Undrain(context.Context, body.Slot, *v1alpha1.Template) error { return nil }

var errNoAccount = fmt.Errorf("%w: spec.serviceAccountName is not set; objects are made with the rights of an account", body.ErrRefused)
