package operator

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// inbox takes what is noticed of objects, without making anybody wait, and
// hands it to their controller, each object once however often it was told of.
type inbox struct {
	events chan event.GenericEvent
	// empty makes an object of their kind.
	empty func() client.Object

	mu      sync.Mutex
	pending []types.NamespacedName
	known   map[types.NamespacedName]bool
	wake    chan struct{}
}

func newInbox(empty func() client.Object) *inbox {
	return &inbox{
		events: make(chan event.GenericEvent),
		empty:  empty,
		known:  map[types.NamespacedName]bool{},
		wake:   make(chan struct{}, 1),
	}
}

// notify is a body.Notify.
func (b *inbox) notify(namespace, member string) {
	b.tell(types.NamespacedName{Namespace: namespace, Name: member})
}

// tell takes the name of an object that may have to be looked at.
func (b *inbox) tell(key types.NamespacedName) {
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
			o := b.empty()
			o.SetNamespace(key.Namespace)
			o.SetName(key.Name)
			select {
			case <-ctx.Done():
				return nil
			case b.events <- event.GenericEvent{Object: o}:
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
