package objects

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// maxMessage is the length of an observation's message in bytes.
const maxMessage = 1024

// readiness judges a body of which all objects are there.
func (k *Kind) readiness(ctx context.Context, template *v1alpha1.Template, objects []*unstructured.Unstructured) (body.State, string, error) {
	end := podEnd(objects)
	if job := jobEnd(objects); job != "" && !end.failed {
		end = ended{message: job, failed: true}
	}
	if end.failed {
		return body.Exited, end.message, nil
	}
	ready, why, err := k.isReady(ctx, template, objects)
	switch {
	case err != nil:
		return "", "", err
	case end.message != "" && (!ready || len(template.Ready) == 0):
		return body.Exited, end.message, nil
	case ready:
		return body.Ready, "", nil
	}
	if waits := podWaits(objects); waits != "" {
		why = waits
	} else if trouble := conditions(objects); trouble != "" {
		why = trouble
	}
	return body.Booting, why, nil
}

// isReady says whether a body is, and if not, why.
func (k *Kind) isReady(ctx context.Context, template *v1alpha1.Template, objects []*unstructured.Unstructured) (bool, string, error) {
	if len(template.Ready) == 0 {
		return isCurrent(objects)
	}
	list := make([]any, len(objects))
	for i, o := range objects {
		list[i] = o.Object
	}
	for i, expression := range template.Ready {
		ok, why, err := k.ready(ctx, expression, list)
		if err != nil {
			return false, "", fmt.Errorf("template.ready[%d]: %w", i, err)
		}
		if !ok {
			message := "not yet: " + expression
			if why != "" {
				message += " (" + why + ")"
			}
			return false, message, nil
		}
	}
	return true, "", nil
}

// isCurrent asks kstatus of each object. One whose status it cannot make sense
// of is not ready.
func isCurrent(objects []*unstructured.Unstructured) (bool, string, error) {
	var problems []string
	for _, o := range objects {
		result, err := status.Compute(o)
		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("%s: its status makes no sense: %s", nameOf(o), err))
		case result.Status != status.CurrentStatus:
			problems = append(problems, fmt.Sprintf("%s: %s", nameOf(o), result.Message))
		}
	}
	return len(problems) == 0, strings.Join(problems, "; "), nil
}

// isPod: Pods are the one kind that Pawl knows more of than kstatus, for which
// a Pod that has succeeded is as good as one that runs.
func isPod(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Pod" && o.GetAPIVersion() == "v1"
}

// ended is how the Pods among a body's objects have ended; its message is empty
// if none has.
type ended struct {
	message string
	failed  bool
}

func podEnd(objects []*unstructured.Unstructured) ended {
	var result ended
	for _, o := range objects {
		if !isPod(o) || result.failed {
			continue
		}
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		if phase == "Failed" || phase == "Succeeded" && result.message == "" {
			result = ended{failed: phase == "Failed", message: nameOf(o) + " has " + strings.ToLower(phase) + describeEnd(o)}
		}
	}
	return result
}

// hasEnded tells whether an object of the parts has ended and does not come back.
// A Pod that has succeeded has, unless that is what the template waits for.
func (k *Kind) hasEnded(ctx context.Context, template *v1alpha1.Template, p parts, o *unstructured.Unstructured) bool {
	alone := []*unstructured.Unstructured{o}
	end := podEnd(alone)
	switch {
	case end.failed || jobEnd(alone) != "":
		return true
	case end.message == "" || len(template.Ready) > 0 && len(p.missing()) > 0:
		return false
	case len(template.Ready) == 0:
		return true
	}
	ready, _, err := k.isReady(ctx, template, p.objects)
	return err == nil && !ready
}

// describeEnd says how a Pod ended, as ": …": by its own reason, or by that of
// the first container that did not exit with 0.
func describeEnd(pod *unstructured.Unstructured) string {
	var parts []string
	add := func(o map[string]any, fields ...string) {
		for _, field := range fields {
			if s, _, _ := unstructured.NestedString(o, field); s != "" {
				parts = append(parts, s)
			}
		}
	}
	podStatus, _, _ := unstructured.NestedMap(pod.Object, "status")
	add(podStatus, "reason", "message")
	for _, c := range containers(pod) {
		terminated, _, _ := unstructured.NestedMap(c, "state", "terminated")
		code, ok := terminated["exitCode"].(int64)
		if !ok || code == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("container %v exited with %d", c["name"], code))
		add(terminated, "reason", "message")
		break
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ": ")
}

// jobEnd says how the first Job has failed, if one has: it is not tried again.
func jobEnd(objects []*unstructured.Unstructured) string {
	for _, o := range objects {
		if o.GetKind() != "Job" || o.GroupVersionKind().Group != "batch" {
			continue
		}
		if c := condition(o, func(kind, state string) bool { return kind == "Failed" && state == "True" }); c != "" {
			return nameOf(o) + " has failed" + c
		}
	}
	return ""
}

// conditions say what is wrong with the first object that says so itself, as
// kinds with conditions do: a Deployment whose Pods cannot be made, say.
func conditions(objects []*unstructured.Unstructured) string {
	for _, o := range objects {
		c := condition(o, func(kind, state string) bool {
			switch kind {
			case "Failed", "ReplicaFailure", "Stalled", "Degraded":
				return state == "True"
			case "Progressing", "PodScheduled":
				return state == "False"
			}
			return false
		})
		if c != "" {
			return nameOf(o) + c
		}
	}
	return ""
}

// condition says, as ": …", the reason and the message of the first of an
// object's conditions that is meant.
func condition(o *unstructured.Unstructured, is func(kind, state string) bool) string {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		m, _ := c.(map[string]any)
		kind, _, _ := unstructured.NestedString(m, "type")
		state, _, _ := unstructured.NestedString(m, "status")
		if !is(kind, state) {
			continue
		}
		return strings.Replace(": "+kind+reasons(m), ": Failed: ", ": ", 1)
	}
	return ""
}

// podWaits says what the first container that waits, waits for: an image that
// cannot be pulled, say, or another start after it has ended, and how.
func podWaits(objects []*unstructured.Unstructured) string {
	for _, o := range objects {
		if !isPod(o) {
			continue
		}
		for _, c := range containers(o) {
			reason, _, _ := unstructured.NestedString(c, "state", "waiting", "reason")
			if reason == "" {
				continue
			}
			message, _, _ := unstructured.NestedString(c, "state", "waiting", "message")
			said := strings.TrimSuffix(fmt.Sprintf("%s: container %v: %s: %s", nameOf(o), c["name"], reason, message), ": ")
			return said + describeLast(c)
		}
	}
	return ""
}

// describeLast says, as "; …", how a container ended before it was started anew.
func describeLast(container map[string]any) string {
	last, _, _ := unstructured.NestedMap(container, "lastState", "terminated")
	code, ok := last["exitCode"].(int64)
	if !ok {
		return ""
	}
	return fmt.Sprintf("; it exited with %d before", code) + reasons(last)
}

// reasons returns an object's reason and message, each behind a colon.
func reasons(object map[string]any) string {
	reason, _, _ := unstructured.NestedString(object, "reason")
	message, _, _ := unstructured.NestedString(object, "message")
	var said strings.Builder
	for _, s := range []string{reason, message} {
		if s != "" {
			said.WriteString(": " + s)
		}
	}
	return said.String()
}

// containers returns the statuses of a Pod's containers, the init ones first.
func containers(pod *unstructured.Unstructured) []map[string]any {
	var result []map[string]any
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		list, _, _ := unstructured.NestedSlice(pod.Object, "status", field)
		for _, c := range list {
			if m, ok := c.(map[string]any); ok {
				result = append(result, m)
			}
		}
	}
	return result
}

// oneLine makes a message one line of at most maxMessage bytes.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "�")), " ")
	if len(s) <= maxMessage {
		return s
	}
	const more = "…"
	end := maxMessage - len(more)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + more
}
