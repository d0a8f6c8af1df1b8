// Package pace says what controllers have in common in how they wait.
package pace

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// NewQueue makes the queue of the named controller, which waits by the clock
// that the controller goes by. Nil is real time.
type NewQueue func(controller string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]
