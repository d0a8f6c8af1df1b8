package source

import (
	"context"
	"crypto/rand"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

const (
	// keyBytes is the length of a new key, minKeyBytes that of one that
	// somebody else has made.
	keyBytes, minKeyBytes = 32, 16
	// keyField is where it stands in its Secret.
	keyField = "key"
)

// keyName is the name of the Secret with the key of a pool's digests.
func keyName(pool string) string { return pool + "-source-key" }

// key reads the key of a pool's digests. Unless there are digests already, it
// makes one where there is none.
func (r *Resolver) key(ctx context.Context, pool types.NamespacedName, keyed bool) ([]byte, error) {
	at := types.NamespacedName{Namespace: pool.Namespace, Name: keyName(pool.Name)}
	var s corev1.Secret
	err := r.options.Reader.Get(ctx, at, &s)
	if apierrors.IsNotFound(err) && !keyed {
		s = newKey(at, pool.Name)
		err = r.options.Client.Create(ctx, &s)
	}
	title := what(kindSecret, at.Namespace, at.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, unknown(DigestKeyLost, err, "%s is gone, by which the content of secrets is told from what it was: restore it; "+
			"or, to have every member count as stale, make one with a random text under %s and the labels %s=%s and %s=",
			title, keyField, v1alpha1.LabelPool, pool.Name, v1alpha1.LabelSource)
	case err != nil:
		return nil, unknown(Unreachable, err, "%s, by which the content of secrets is told from what it was: %v", title, err)
	}
	_, marked := s.Labels[v1alpha1.LabelSource]
	if !marked || s.Labels[v1alpha1.LabelPool] != pool.Name || len(s.Data[keyField]) < minKeyBytes {
		return nil, unknown(DigestKeyLost, nil, "%s is not what Pawl makes by that name: delete it, or call the pool otherwise", title)
	}
	r.note(pool, "", copyRef{true, at.Name}, true)
	return s.Data[keyField], nil
}

func newKey(at types.NamespacedName, pool string) corev1.Secret {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	return corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: at.Name, Namespace: at.Namespace, Finalizers: []string{v1alpha1.FinalizerRevision},
			Labels: map[string]string{v1alpha1.LabelPool: pool, v1alpha1.LabelSource: ""},
		},
		Immutable: new(true),
		Data:      map[string][]byte{keyField: key},
	}
}
