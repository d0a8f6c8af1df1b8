package operator

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// inbox takes what the kinds of bodies notice, without making them wait, and
// hands it to the member controller, each member once however often it was
// told of.
type inbox struct {
	events chan event.GenericEvent

	mu      sync.Mutex
	pending []types.NamespacedName
	known   map[types.NamespacedName]bool
	wake    chan struct{}
}

func newInbox() *inbox {
	return &inbox{
		events: make(chan event.GenericEvent),
		known:  map[types.NamespacedName]bool{},
		wake:   make(chan struct{}, 1),
	}
}

// notify is a body.Notify.
func (b *inbox) notify(namespace, member string) {
	key := types.NamespacedName{Namespace: namespace, Name: member}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[key] {
		return
	}
	b.known[key] = true
	b.pending = append(b.pending, key)
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Start hands over until ctx ends.
func (b *inbox) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.wake:
		}
		for _, key := range b.take() {
			e := event.GenericEvent{Object: &v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}}
			select {
			case <-ctx.Done():
				return nil
			case b.events <- e:
			}
		}
	}
}

func (b *inbox) take() []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.pending
	b.pending = nil
	clear(b.known)
	return list
}
