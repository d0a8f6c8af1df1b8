package simulate

import (
	"bytes"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// StatusMap returns a pool's status for expressions: its JSON form, with integers,
// and including fields that JSON omits.
func StatusMap(st *v1alpha1.PoolStatus) map[string]any {
	full := map[string]any{
		"observedGeneration": int64(0), "selector": "", "currentRevision": "", "targetRevision": "",
		"conditions": []any{}, "rollout": map[string]any{},
	}
	decoded := map[string]any{}
	data, err := json.Marshal(st)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		err = d.Decode(&decoded)
	}
	if err != nil {
		return full // cannot happen: every status can be encoded
	}
	for k, v := range decoded {
		full[k] = whole(v)
	}
	if ro, ok := full["rollout"].(map[string]any); ok {
		for k, v := range map[string]any{"revision": "", "updated": int64(0), "total": int64(0), "next": "", "blockers": []any{}} {
			if _, given := ro[k]; !given {
				ro[k] = v
			}
		}
	}
	return full
}

// whole converts the numbers in a JSON value to integers.
func whole(v any) any {
	switch v := v.(type) {
	case json.Number:
		i, err := v.Int64()
		if err != nil {
			return v.String()
		}
		return i
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	}
	return v
}

// statusMap returns the pool's status for expressions.
func (p *pool) statusMap() map[string]any {
	if p.statusCache == nil {
		p.statusCache = StatusMap(p.apiStatus())
	}
	return p.statusCache
}

// apiStatus converts the status to the API's type.
func (p *pool) apiStatus() *v1alpha1.PoolStatus {
	st := &p.status
	if st.generation == 0 {
		return &v1alpha1.PoolStatus{}
	}
	c := &st.counts
	out := &v1alpha1.PoolStatus{
		ObservedGeneration: st.generation, Selector: v1alpha1.LabelPool + "=" + p.name,
		CurrentRevision: string(st.current), TargetRevision: string(st.target),
		Rollout: &v1alpha1.RolloutStatus{Revision: string(st.aim), Updated: int32(c.Updated), Total: int32(c.Members), Next: st.next},
	}
	for _, n := range []struct {
		field *int32
		count int
	}{
		{&out.Replicas, c.Members}, {&out.Free, c.Free}, {&out.Claimed, c.Claimed}, {&out.Provisioning, c.Provisioning},
		{&out.Updated, c.Updated}, {&out.Stale, c.Stale}, {&out.Unknown, c.Unknown}, {&out.Rolling, c.Rolling},
		{&out.Surge, st.surge}, {&out.Failed, c.Failed}, {&out.WaitingClaims, st.waiting},
	} {
		*n.field = int32(n.count)
	}
	for _, t := range st.blockers {
		out.Rollout.Blockers = append(out.Rollout.Blockers, v1alpha1.Blocker{
			Reason: string(t.Reason), Count: int32(t.Count), Example: p.member(t.Example), Since: second(st.since[t.Reason]),
		})
	}
	for i, is := range st.conditions {
		if is.Status != "" {
			out.Conditions = append(out.Conditions, metav1.Condition{
				Type: conditionNames[i], Status: metav1.ConditionStatus(is.Status), Reason: is.Reason, Message: is.Message,
				ObservedGeneration: st.generation,
			})
		}
	}
	return out
}

func second(t time.Time) *metav1.Time {
	s := metav1.NewTime(t.Truncate(time.Second))
	return &s
}

// sinceOf returns since when each reason has kept members: now for new reasons, and
// the old time for others.
func sinceOf(old map[rollout.Reason]time.Time, blockers []rollout.Tally, now time.Time) map[rollout.Reason]time.Time {
	since := make(map[rollout.Reason]time.Time, len(blockers))
	for _, t := range blockers {
		since[t.Reason] = now
		if was, ok := old[t.Reason]; ok {
			since[t.Reason] = was
		}
	}
	return since
}
