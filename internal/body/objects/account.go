package objects

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
)

// maxAccounts is the number of accounts whose clients are kept.
const maxAccounts = 256

// account is access with the rights of a service account.
type account struct {
	namespace, name string
	dynamic         dynamic.Interface
	metadata        metadata.Interface
}

// client reaches the objects of a kind, in a namespace unless that is empty.
func (a *account) client(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return a.dynamic.Resource(resource)
	}
	return a.dynamic.Resource(resource).Namespace(namespace)
}

// accounts makes clients that impersonate service accounts.
type accounts struct {
	config *rest.Config
	cache  *lru.Cache
}

func newAccounts(config *rest.Config) *accounts {
	c := rest.CopyConfig(config)
	if c.QPS == 0 {
		// The API server's own priority and fairness paces each account; the
		// client's default of 5 a second would pace all of a pool's members.
		c.QPS = -1
	}
	return &accounts{config: c, cache: lru.New(maxAccounts)}
}

// get returns access as the service account. Whether there is one, and what it
// may do, the API server says at each request.
func (a *accounts) get(namespace, name string) (*account, error) {
	user := "system:serviceaccount:" + namespace + ":" + name
	if cached, ok := a.cache.Get(user); ok {
		if result, ok := cached.(*account); ok {
			return result, nil
		}
	}
	config := rest.CopyConfig(a.config)
	// The API server adds the groups that the account's own token would have
	// (system:serviceaccounts, the same of its namespace, system:authenticated).
	// Naming them here would change nothing, but would take the right to
	// impersonate groups, among them system:masters.
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	result := &account{namespace: namespace, name: name}
	var err error
	if result.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("set up access as %s: %w", user, err)
	}
	if result.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("set up access as %s: %w", user, err)
	}
	a.cache.Add(user, result)
	return result, nil
}
