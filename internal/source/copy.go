package source

import (
	"maps"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// valueField is where a copy has the value of a field, in JSON.
const valueField = "value.json"

// copyRef is a copy, as the API server knows it.
type copyRef struct {
	secret bool
	name   string
}

// CopyName is the name of the ConfigMap or Secret that holds what a pool's source
// said for a revision.
func CopyName(pool, id, source string) string {
	return pool + "-" + id + "-" + strings.ReplaceAll(source, "_", "-")
}

// refOf is the copy of a source for a revision.
func refOf(pool, id string, s *Source) copyRef {
	return copyRef{s.Secret, CopyName(pool, id, s.Name)}
}

// String is, for example, "Secret web-4b8kd2-tls".
func (c copyRef) String() string { return what(c.kind(), "", c.name) }

func (c copyRef) kind() string {
	if c.secret {
		return kindSecret
	}
	return kindConfigMap
}

// object is an empty one of its kind.
func (c copyRef) object() client.Object {
	if c.secret {
		return &corev1.Secret{}
	}
	return &corev1.ConfigMap{}
}

// freeze is the copy of a part.
func (p *part) freeze(pool types.NamespacedName, id string, s *Source) client.Object {
	meta := metav1.ObjectMeta{
		Name: refOf(pool.Name, id, s).name, Namespace: pool.Namespace, Finalizers: []string{v1alpha1.FinalizerRevision},
		Labels: map[string]string{v1alpha1.LabelPool: pool.Name, v1alpha1.LabelRevision: id, v1alpha1.LabelSource: s.Name},
	}
	data := p.keys
	if data == nil {
		data = map[string][]byte{valueField: p.text}
	}
	if s.Secret {
		return &corev1.Secret{ObjectMeta: meta, Immutable: new(true), Data: data}
	}
	c := &corev1.ConfigMap{ObjectMeta: meta, Immutable: new(true)}
	for key, content := range data {
		if utf8.Valid(content) {
			c.Data = with(c.Data, key, string(content))
		} else {
			c.BinaryData = with(c.BinaryData, key, content)
		}
	}
	return c
}

func with[V any](m map[string]V, key string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = value
	return m
}

// thaw is the part that a copy holds, and whether it is what was frozen of the
// source: marked as that, with every key that has a digest, and, where anybody
// can tell, the content of that digest. What has none is left out.
func thaw(o client.Object, pool, id string, s *Source) (part, bool) {
	p := part{name: s.Name, kind: s.Kind, object: s.Object, field: s.Field, secret: s.Secret}
	labels := o.GetLabels()
	if labels[v1alpha1.LabelPool] != pool || labels[v1alpha1.LabelRevision] != id || labels[v1alpha1.LabelSource] != s.Name {
		return p, false
	}
	data := dataOf(o)
	if s.Field != "" {
		text, ok := data[valueField]
		p.text = text
		if !ok || json.Unmarshal(text, &p.value) != nil {
			return p, false
		}
		is, err := p.digest(nil)
		return p, err == nil && (s.Secret || is.Digests[""] == s.Digests[""])
	}
	p.keys = make(map[string][]byte, len(s.Digests))
	for key, digest := range s.Digests {
		content, ok := data[key]
		if !ok || !s.Secret && p.sum(nil, key, content) != digest {
			return p, false
		}
		p.keys[key] = content
	}
	return p, true
}

func dataOf(o client.Object) map[string][]byte {
	data := map[string][]byte{}
	switch o := o.(type) {
	case *corev1.Secret:
		maps.Copy(data, o.Data)
	case *corev1.ConfigMap:
		maps.Copy(data, o.BinaryData)
		for key, text := range o.Data {
			data[key] = []byte(text)
		}
	}
	return data
}
