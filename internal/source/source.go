package source

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Source is where a source's content is from, and what it is by digests. It
// holds nothing of the content itself.
type Source struct {
	// Name names it in the pool. Two sources with one name and equal digests
	// have the same content, wherever that is from.
	Name string `json:"name"`
	// Kind, Object and, for a field of an object, Field say where it is from:
	// "ConfigMap", "bootstrap".
	Kind   string `json:"kind"`
	Object string `json:"object"`
	Field  string `json:"field,omitempty"`
	// Secret: its digests are keyed, and its copies are Secrets.
	Secret bool `json:"secret,omitempty"`
	// Digests are by key; that of a field has the key "".
	Digests map[string]string `json:"digests,omitempty"`
}

// Content is what all sources of a pool say at one time. It is not changed by
// anybody.
type Content struct {
	// Sources are in the order of the pool's.
	Sources []Source
	// Values are what expressions see.
	Values *Values
	// Sample is the same, except for secrets: each text of one is a digest, each
	// number 0, each bool false.
	Sample map[string]any

	parts []part
}

// ErrMissing is wrapped where a copy of a revision's content is gone, so that
// nothing can be made of that revision any more.
var ErrMissing = errors.New("what the revision was made from is gone")

// Options are what a Resolver needs. All are required.
type Options struct {
	// Config is Pawl's own access to the API server. It needs the right to
	// impersonate service accounts.
	Config *rest.Config
	// Mapper knows the kinds that the API server serves, and looks again when
	// asked for one that it does not know.
	Mapper meta.RESTMapper
	// Client writes copies and the keys of digests; Reader reads them, and
	// ControllerRevisions, from the API server itself.
	Client client.Client
	Reader client.Reader
	// Notify is told of a pool whose sources may have changed. It never blocks.
	Notify func(pool types.NamespacedName)
}

// cached is how many revisions' values are kept in memory.
const cached = 256

// Resolver reads sources and keeps copies of what they say. It is safe for
// concurrent use; calls about one pool do not overlap, but for Frozen.
type Resolver struct {
	options Options
	watches *watches

	mu    sync.Mutex
	pools map[types.NamespacedName]*memory
	// copies are all there are, once they were listed.
	copies inventory
	// values are those of frozen revisions, by frozenKey.
	values *lru.Cache
}

// memory is what is remembered of a pool.
type memory struct {
	// key is that of its digests; nil until it was read.
	key []byte
	// content is what was resolved last, and from what.
	from    []seen
	content *Content
}

// New returns a Resolver. Close ends its watches.
func New(o Options) *Resolver {
	return &Resolver{
		options: o, watches: newWatches(dialer(o.Config), o.Mapper, o.Notify),
		pools: map[types.NamespacedName]*memory{}, values: lru.New(cached),
	}
}

// Close ends all watches and waits until they have ended.
func (r *Resolver) Close() { r.watches.close() }

// Forget ends the watches of a pool that is gone, and drops what is remembered
// of it.
func (r *Resolver) Forget(pool types.NamespacedName) {
	r.watches.use(pool, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pools, pool)
}

// of is what is remembered of a pool.
func (r *Resolver) of(pool types.NamespacedName) *memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.pools[pool]
	if m == nil {
		m = &memory{}
		r.pools[pool] = m
	}
	return m
}
