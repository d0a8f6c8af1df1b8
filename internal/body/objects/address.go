package objects

import (
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// addressOf is where a body serves: what the annotation on its first object
// says; or else its first Service, by clusterIP or, if headless, by name, with
// its first port; or else the IP of its first Pod. Services come before Pods so
// that the address does not change once a Pod has its IP.
func addressOf(objects []*unstructured.Unstructured) string {
	if len(objects) > 0 && objects[0] != nil {
		first := objects[0]
		if address := first.GetAnnotations()[AnnotationAddress]; address != "" {
			return address
		}
	}
	for _, o := range objects {
		if o != nil && o.GetKind() == "Service" && o.GetAPIVersion() == "v1" {
			return serviceAddress(o)
		}
	}
	for _, o := range objects {
		if o == nil || !isPod(o) {
			continue
		}
		if ip, _, _ := unstructured.NestedString(o.Object, "status", "podIP"); ip != "" {
			return ip
		}
	}
	return ""
}

func serviceAddress(service *unstructured.Unstructured) string {
	host, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
	if host == "" || host == "None" {
		host = service.GetName() + "." + service.GetNamespace() + ".svc"
	}
	ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	if len(ports) == 0 {
		return host
	}
	first, _ := ports[0].(map[string]any)
	port, ok := first["port"].(int64)
	if !ok {
		return host
	}
	return net.JoinHostPort(host, strconv.FormatInt(port, 10))
}
