//go:build integration

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

const (
	// finalizerKeep keeps an object in its end: a body Terminating, a claim
	// released.
	finalizerKeep = "example.com/keep"
	// simPrefix begins the names of pools of simulated bodies: what they do takes
	// them longest.
	simPrefix = "sim-"
	// longest is how long a boot, a drain or a stop takes that is not to end.
	longest = 10 * 365 * 24 * time.Hour
	// recovery is a bit more than how long a body has to be in service until it
	// has recovered.
	recovery = 62 * time.Second
)

// keptPool is a pool of n ConfigMaps, each ready while it says so.
func (w *world) keptPool(name string, n int32, changes ...func(*v1alpha1.PoolSpec)) {
	w.t.Helper()
	p := &v1alpha1.Pool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace},
		Spec: v1alpha1.PoolSpec{
			Replicas: &n, ServiceAccountName: new("bodies"),
			Update: &v1alpha1.Update{Type: new(v1alpha1.UpdateRollingUpdate)},
		},
	}
	version("1", "yes")(&p.Spec)
	for _, change := range changes {
		change(&p.Spec)
	}
	w.create(p)
}

// version has the bodies of a pool be of that version, and ready or not.
func version(version, ready string) func(*v1alpha1.PoolSpec) {
	return func(s *v1alpha1.PoolSpec) {
		s.Template.Objects = []runtime.RawExtension{{Raw: fmt.Appendf(nil,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${member.name}"},"data":{"version":%q,"ready":%q}}`, version, ready)}}
		s.Template.Ready = []string{`objects[0].data.ready == "yes"`}
		if s.Template.BootTimeout == nil {
			s.Template.BootTimeout = ttl(longest)
		}
	}
}

func update(change func(*v1alpha1.Update)) func(*v1alpha1.PoolSpec) {
	return func(s *v1alpha1.PoolSpec) { change(s.Update) }
}

func claims(c v1alpha1.Claims) func(*v1alpha1.PoolSpec) {
	return func(s *v1alpha1.PoolSpec) { s.Claims = &c }
}

func simulated(sim v1alpha1.Sim) func(*v1alpha1.PoolSpec) {
	return func(s *v1alpha1.PoolSpec) {
		s.ServiceAccountName, s.Template = nil, v1alpha1.Template{Sim: &sim}
	}
}

// to edits a pool.
func (w *world) to(pool string, changes ...func(*v1alpha1.PoolSpec)) {
	w.t.Helper()
	w.edit(pool, func(p *v1alpha1.Pool) {
		for _, change := range changes {
			change(&p.Spec)
		}
	})
}

// writeSet brings pools into every state that lasts, or that is made to last,
// and writes what is stored then.
func (w *world) writeSet(n int, simFile string, operate func() (stop func())) {
	dir := filepath.Join(storedDir, strconv.Itoa(n))
	if _, err := os.Stat(dir); err == nil {
		w.t.Fatalf("%s is there already: a set never changes", dir)
	}
	w.namespace = fmt.Sprintf("stored-%d", n)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	stop := operate()
	w.firstVersions()
	w.secondVersions()
	w.reached(map[string][]v1alpha1.Phase{
		"becoming":  {v1alpha1.PhaseUpdating},
		"booting":   {v1alpha1.PhaseProvisioning, v1alpha1.PhasePreparing},
		"broken":    {v1alpha1.PhaseFailed},
		"full":      {v1alpha1.PhaseAvailable, v1alpha1.PhasePending},
		"held":      {v1alpha1.PhaseAvailable, v1alpha1.PhaseAvailable},
		"inplace":   {v1alpha1.PhaseUpdating, v1alpha1.PhaseAvailable},
		"leased":    {v1alpha1.PhaseClaimed, v1alpha1.PhaseClaimed},
		"refused":   {v1alpha1.PhaseFailed},
		"rolling":   {v1alpha1.PhaseProvisioning, v1alpha1.PhaseTerminating, v1alpha1.PhaseAvailable, v1alpha1.PhaseAvailable},
		"sick":      {v1alpha1.PhaseAvailable, v1alpha1.PhaseUnready, v1alpha1.PhaseUnready},
		"sim-drain": {v1alpha1.PhaseDraining, v1alpha1.PhaseAvailable},
		"sim-less":  {v1alpha1.PhaseAvailable, v1alpha1.PhaseTerminating},
		"spent":     {v1alpha1.PhaseAvailable, v1alpha1.PhaseAvailable, v1alpha1.PhaseTerminating},
		"wanted":    {v1alpha1.PhaseTerminating, v1alpha1.PhaseAvailable},
	})
	stop()
	w.writeFiles(dir, simFile)
}

// firstVersions fills the pools, and waits until they stand.
func (w *world) firstVersions() {
	w.t.Helper()
	w.prepare()
	manual := update(func(u *v1alpha1.Update) { u.Type = new(v1alpha1.UpdateManual) })
	w.keptPool("resting", 2, func(s *v1alpha1.PoolSpec) {
		s.Sources = []v1alpha1.Source{
			{Name: "settings", ConfigMap: &v1alpha1.KeysSource{Name: "settings", Keys: []string{"mode"}}},
			{Name: "token", Secret: &v1alpha1.KeysSource{Name: "token"}},
			{Name: "size", Object: &v1alpha1.ObjectSource{APIVersion: "v1", Kind: "ConfigMap", Name: "settings", FieldPath: "data.size"}},
		}
		s.Template.Objects = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${member.name}","labels":{"tier":"one"}},
			"data":{"ready":"yes","mode":"${sources.settings.mode}","size":"${sources.size}","of":"${pool.name} ${member.index}"}}`)}}
		s.Template.LiveFields = []string{"objects[0].metadata.labels.tier"}
	})
	w.keptPool("manual", 2, manual)
	w.keptPool("wanted", 2, manual)
	w.keptPool("leased", 2, claims(v1alpha1.Claims{Heartbeat: ttl(longest), MaxTTL: ttl(longest)}), update(func(u *v1alpha1.Update) { u.OnClaimed = new(v1alpha1.ClaimedNotify) }))
	w.keptPool("spent", 3)
	w.keptPool("warm", 1, claims(v1alpha1.Claims{OnRelease: new(v1alpha1.ReleaseReuse)}), func(s *v1alpha1.PoolSpec) {
		s.Sizing, s.RefillBelow, s.MaxMembers = new(v1alpha1.SizingWarm), new(int32(1)), new(int32(3))
	})
	w.keptPool("halted", 2, update(func(u *v1alpha1.Update) { u.FailureLimit = intOrString(1) }))
	w.keptPool("back", 2, update(func(u *v1alpha1.Update) { u.FailureLimit, u.OnFailure = intOrString(1), new(v1alpha1.FailureRollback) }))
	w.keptPool("parted", 2, update(func(u *v1alpha1.Update) { u.Partition = new(int32(1)) }))
	w.keptPool("paused", 2)
	w.keptPool("held", 2)
	w.keptPool("skipped", 2, manual)
	w.keptPool("closed", 1, update(func(u *v1alpha1.Update) {
		u.Windows = []v1alpha1.Window{{Schedule: "0 0 31 2 *", Duration: ttl(time.Hour)}} // no such day
	}))
	w.keptPool("sick", 3)
	w.keptPool("booting", 2, version("1", "no"), update(func(u *v1alpha1.Update) { u.MinReadySeconds = new(int32(31536000)) }))
	w.keptPool("rolling", 4, update(func(u *v1alpha1.Update) { u.MaxUnavailable = intOrString(2) }))
	w.keptPool("inplace", 2, update(func(u *v1alpha1.Update) { u.Method = new(v1alpha1.MethodInPlace) }))
	w.keptPool("becoming", 1, update(func(u *v1alpha1.Update) { u.Method = new(v1alpha1.MethodInPlace) }))
	w.keptPool("leaving", 2)
	w.keptPool("broken", 1, version("1", "no"), func(s *v1alpha1.PoolSpec) { s.Template.BootTimeout = ttl(time.Second) })
	w.keptPool("refused", 1, func(s *v1alpha1.PoolSpec) {
		s.Template = v1alpha1.Template{Objects: []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"${member.name}"}}`)}}}
	})
	w.keptPool("full", 2, func(s *v1alpha1.PoolSpec) {
		s.Template = v1alpha1.Template{Objects: []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"${member.name}"},"spec":{"type":"ExternalName","externalName":"example.com"}}`)}}}
	})
	w.keptPool("sim-drain", 2, simulated(v1alpha1.Sim{Version: new("1"), Drain: ttl(longest)}))
	w.keptPool("sim-less", 2, simulated(v1alpha1.Sim{Version: new("1"), Stop: ttl(longest)}))

	w.setReady("booting-1", "yes")
	timed := &v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Name: "leased-timed", Namespace: w.namespace}, Spec: v1alpha1.ClaimSpec{Pool: "leased", TTL: ttl(longest)}}
	w.create(timed)
	w.eventually("claim leased-timed bound", func() error { return w.phase(timed, v1alpha1.ClaimBound) })
	for _, pool := range []string{"leased", "warm", "leaving", "manual", "sick"} {
		w.claim(pool+"-plain", pool)
	}
	w.stand("resting", "manual", "wanted", "leased", "spent", "warm", "halted", "back", "parted", "paused", "held",
		"skipped", "closed", "sick", "rolling", "inplace", "becoming", "leaving", "sim-drain", "sim-less")
}

// prepare makes what pools need: the bodies' account, sources, and a quota that
// has room for one Service.
func (w *world) prepare() {
	w.t.Helper()
	m := metav1.ObjectMeta{Name: "bodies", Namespace: w.namespace}
	w.create(&corev1.ServiceAccount{ObjectMeta: m})
	w.create(&rbacv1.Role{ObjectMeta: m, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps", "secrets", "services"}, Verbs: []string{"get", "list", "watch", "create", "patch", "update", "delete"},
	}}})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: m, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: m.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: m.Name, Namespace: w.namespace}},
	})
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: w.namespace}, Data: map[string]string{"mode": "one", "size": "1"}})
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token", Namespace: w.namespace}, StringData: map[string]string{"text": "dummy one"}})
	// Pawl would draw this key, and it would look like a secret.
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "resting-source-key", Namespace: w.namespace, Finalizers: []string{v1alpha1.FinalizerRevision},
			Labels: map[string]string{v1alpha1.LabelPool: "resting", v1alpha1.LabelSource: ""},
		},
		Immutable: new(true), StringData: map[string]string{"key": "a dummy key of a stored set"},
	})
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "services", Namespace: w.namespace},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceServices: resource.MustParse("1")}},
	}
	w.create(quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{corev1.ResourceServices: resource.MustParse("0")}}
	if err := w.c.Status().Update(w.t.Context(), quota); err != nil {
		w.t.Fatal(err)
	}
}

// secondVersions edits the pools.
func (w *world) secondVersions() {
	w.t.Helper()
	w.to("sim-drain", func(s *v1alpha1.PoolSpec) { s.Template.Sim.Version = new("2") })
	w.to("sim-less", func(s *v1alpha1.PoolSpec) { s.Replicas = new(int32(1)) })
	w.failing()
	w.patchObject("ConfigMap", "settings", `{"data":{"mode":"two","size":"2"}}`)
	w.patchObject("Secret", "token", `{"stringData":{"text":"dummy two"}}`)
	w.eventually("resting is on its second revision", func() error {
		if st := w.pool("resting").Status; st.TargetRevision == st.CurrentRevision || st.Updated != 2 || st.Free != 2 {
			return errors.New(describe(w.pool("resting")))
		}
		return nil
	})
	for _, pool := range []string{"manual", "wanted", "leased", "closed", "skipped"} {
		w.to(pool, version("2", "yes"))
	}
	w.annotate("manual-1", v1alpha1.AnnotationDisruptionCost, "10")
	w.annotate(w.unclaimed("manual")[0], v1alpha1.AnnotationRecycle, "1")
	w.patchObject("ConfigMap", "wanted-0", `{"metadata":{"finalizers":["`+finalizerKeep+`"]}}`)
	w.annotate("wanted-0", v1alpha1.AnnotationRecycle, "1")
	w.create(&v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Name: "leased-waits", Namespace: w.namespace}, Spec: v1alpha1.ClaimSpec{Pool: "leased"}})
	w.annotate("skipped-0", v1alpha1.AnnotationSkip, w.reason("skipped", v1alpha1.ConditionUpdated, "TemplateChanged").Status.TargetRevision)
	w.to("skipped", update(func(u *v1alpha1.Update) { u.Type = new(v1alpha1.UpdateRollingUpdate) }))
	w.annotate("held-0", v1alpha1.AnnotationHold, `{"reason":"disk"}`)
	w.annotate("held-1", v1alpha1.AnnotationHold, fmt.Sprintf(`{"until":%q}`, time.Now().Add(longest).UTC().Format(time.RFC3339)))
	w.to("held", version("2", "yes"))
	w.to("parted", version("2", "yes"))
	w.to("paused", version("2", "yes"), update(func(u *v1alpha1.Update) { u.Partition = new(int32(1)) }))
	w.reason("paused", v1alpha1.ConditionUpdated, "PartitionReached")
	w.to("paused", update(func(u *v1alpha1.Update) { u.Partition, u.Paused = nil, new(true) }))
	w.patchObject("ConfigMap", "rolling-1", `{"metadata":{"finalizers":["`+finalizerKeep+`"]}}`)
	w.to("rolling", version("2", "no"))
	w.reached(map[string][]v1alpha1.Phase{"rolling": {v1alpha1.PhaseProvisioning, v1alpha1.PhaseTerminating, v1alpha1.PhaseAvailable, v1alpha1.PhaseAvailable}})
	w.to("rolling", version("3", "no"))
	w.to("inplace", version("2", "no"))
	w.unreachableWebhook("c")
	w.to("becoming", func(s *v1alpha1.PoolSpec) {
		s.Template.Objects = append(s.Template.Objects, manifest("c", `"data":{}`))
	})
	if err := w.c.Delete(w.t.Context(), w.pool("leaving")); err != nil {
		w.t.Fatal(err)
	}
	w.endedClaims()
	w.setReady(w.unclaimed("sick")[0], "no")
	w.setReady(w.claimed(&v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Name: "sick-plain", Namespace: w.namespace}}).Status.Member, "no")
	w.to("resting", func(s *v1alpha1.PoolSpec) {
		live := strings.Replace(string(s.Template.Objects[0].Raw), `"tier":"one"`, `"tier":"two"`, 1)
		s.Template.Objects[0].Raw = []byte(live)
	})
	w.stand("resting")
	for pool, reason := range map[string]string{
		"manual": "TemplateChanged", "wanted": "TemplateChanged", "leased": "UpdateBlocked", "held": "UpdateBlocked", "closed": "UpdateBlocked",
		"paused": "UpdatePaused", "parted": "PartitionReached", "halted": "UpdateHalted", "back": "RolledBack",
	} {
		w.reason(pool, v1alpha1.ConditionUpdated, reason)
	}
}

// failing has two pools go to a version that fails; one of them, on request,
// once more.
func (w *world) failing() {
	w.t.Helper()
	for _, pool := range []string{"halted", "back"} {
		w.to(pool, version("2", "no"), func(s *v1alpha1.PoolSpec) { s.Template.BootTimeout = ttl(time.Second) })
	}
	w.reason("back", v1alpha1.ConditionUpdated, "RolledBack")
	target := w.reason("halted", v1alpha1.ConditionUpdated, "UpdateHalted").Status.TargetRevision
	w.free("halted", 2)
	retry := target + "@" + time.Now().UTC().Format(time.RFC3339)
	w.edit("halted", func(p *v1alpha1.Pool) {
		p.Annotations = map[string]string{v1alpha1.AnnotationRetry: retry}
	})
	w.eventually("it halts again", func() error {
		for _, r := range w.revisions("halted") {
			if rec := r.Annotations[v1alpha1.AnnotationRecord]; strings.Contains(rec, retry) && strings.Contains(rec, `"halted":true`) {
				return nil
			}
		}
		return errors.New(describe(w.pool("halted")))
	})
	w.free("halted", 2)
	w.free("back", 2)
}

// endedClaims has claims end in each way, and one let go of a member whose body
// then does not go.
func (w *world) endedClaims() {
	w.t.Helper()
	expired := &v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Name: "spent-expired", Namespace: w.namespace}, Spec: v1alpha1.ClaimSpec{Pool: "spent", TTL: ttl(time.Second)}}
	w.create(expired)
	w.eventually("a claim expires", func() error { return w.phase(expired, v1alpha1.ClaimExpired) })
	released := w.claim("spent-released", "spent")
	w.patchObject("Claim", released.Name, `{"metadata":{"finalizers":["`+v1alpha1.FinalizerBinding+`","`+finalizerKeep+`"]}}`)
	if err := w.c.Delete(w.t.Context(), released); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("a claim is released", func() error {
		if f := w.claimed(released).Finalizers; len(f) != 1 {
			return fmt.Errorf("its finalizers are %v", f)
		}
		return nil
	})
	failed := w.claim("spent-failed", "spent")
	if err := w.c.Delete(w.t.Context(), w.configMap(failed.Status.Member)); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("a claim fails", func() error { return w.phase(failed, v1alpha1.ClaimFailed) })
	w.free("spent", 3)
	going := w.claim("spent-going", "spent")
	w.patchObject("ConfigMap", going.Status.Member, `{"metadata":{"finalizers":["`+finalizerKeep+`"]}}`)
	if err := w.c.Delete(w.t.Context(), going); err != nil {
		w.t.Fatal(err)
	}
	w.gone(going)
}

// stand waits until the pools stand on their targets, and every body has
// recovered.
func (w *world) stand(pools ...string) {
	w.t.Helper()
	for _, pool := range pools {
		w.eventually(pool+" stands", func() error {
			p := w.pool(pool)
			if st := p.Status; st.CurrentRevision != st.TargetRevision || st.CurrentRevision == "" || !meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionUpdated) {
				return errors.New(describe(p))
			}
			for _, m := range w.members(pool) {
				if at := m.Status.ServedSince; at == nil || time.Since(at.Time) < recovery {
					return fmt.Errorf("%s has not recovered: %+v", m.Name, m.Status)
				}
			}
			return nil
		})
	}
}

// free waits until so many members of the pool are free, and no other is there.
func (w *world) free(pool string, n int32) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d of %s free", n, pool), func() error {
		if p := w.pool(pool); p.Status.Free != n || p.Status.Replicas != n {
			return errors.New(describe(p))
		}
		return nil
	})
}

// reached waits until the pools' members are in these phases, in any order.
func (w *world) reached(want map[string][]v1alpha1.Phase) {
	w.t.Helper()
	w.eventually("all phases", func() error {
		var errs []error
		for pool, phases := range want {
			var now []v1alpha1.Phase
			for _, m := range w.members(pool) {
				now = append(now, m.Status.Phase)
			}
			slices.Sort(now)
			slices.Sort(phases)
			if !slices.Equal(now, phases) {
				errs = append(errs, fmt.Errorf("%s: %v instead of %v", pool, now, phases))
			}
		}
		return errors.Join(errs...)
	})
}

func (w *world) setReady(body, ready string) {
	w.t.Helper()
	w.eventually("body "+body, func() error {
		if w.configMap(body) == nil {
			return errors.New("it is not there")
		}
		return nil
	})
	w.patchObject("ConfigMap", body, fmt.Sprintf(`{"data":{"ready":%q}}`, ready))
}

func (w *world) annotate(member, key, value string) {
	w.t.Helper()
	w.patchObject("Member", member, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))
}

// patchObject merges the patch into an object, as somebody who is not Pawl.
func (w *world) patchObject(kind, name, patch string) {
	w.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	if kind == "Member" || kind == "Claim" {
		o.SetAPIVersion(v1alpha1.GroupVersion.String())
	}
	o.SetKind(kind)
	o.SetNamespace(w.namespace)
	o.SetName(name)
	if err := w.c.Patch(w.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		w.t.Fatalf("patch %s %s: %v", kind, name, err)
	}
}

// writeFiles writes the set. Nothing else may write meanwhile.
func (w *world) writeFiles(dir, simFile string) {
	w.t.Helper()
	sim, err := os.ReadFile(simFile)
	if err != nil {
		w.t.Fatal(err)
	}
	files := map[string][]byte{fileAt: []byte(time.Now().UTC().Format(time.RFC3339) + "\n"), fileSim: sim}
	for _, k := range []struct{ apiVersion, kind, file string }{
		{"v1", "ServiceAccount", "needed"},
		{"rbac.authorization.k8s.io/v1", "Role", "needed"},
		{"rbac.authorization.k8s.io/v1", "RoleBinding", "needed"},
		{"v1", "ResourceQuota", "needed"},
		{"v1", "ConfigMap", "sources"},
		{"v1", "Secret", "sources"},
		{"v1", "Service", "sources"},
		{v1alpha1.GroupVersion.String(), "Pool", "pools"},
		{v1alpha1.GroupVersion.String(), "Member", "members"},
		{v1alpha1.GroupVersion.String(), "Claim", "claims"},
		{"apps/v1", "ControllerRevision", "revisions"},
	} {
		for _, o := range w.dump(k.apiVersion, k.kind) {
			file := k.file
			if o.GetLabels()[v1alpha1.LabelMember] != "" {
				file = "bodies"
			} else {
				o.SetManagedFields(nil)
			}
			o.SetResourceVersion("")
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				w.t.Fatal(err)
			}
			name := file + ".yaml"
			if len(files[name]) > 0 {
				files[name] = append(files[name], "---\n"...)
			}
			files[name] = append(files[name], text...)
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}
