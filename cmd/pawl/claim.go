package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/follow"
)

// defaultWait is how long a claim waits for a member.
const defaultWait = 30 * time.Second

// answerTime is how long the controllers may take to say that a wait is over.
const answerTime = 5 * time.Second

// cleanupTimeout is how long a claim that failed may take to be taken back.
const cleanupTimeout = 5 * time.Second

// claim asks for a member of a pool.
type claim struct {
	*program

	out  *output
	name string
	ttl  time.Duration
	wait time.Duration
}

func (p *program) claimCommand() *cobra.Command {
	m := &claim{program: p}
	c := &cobra.Command{
		Use:     "claim POOL [-- COMMAND [ARG...]]",
		GroupID: "act",
		Short:   "Claim a free member of a pool, and print its address or run a command with it",
		Long: `Claim a free member of a pool, and print its address. A claimed member is never disrupted by a rollout.

The claim's name is its key: asking again under the same --name is told about the same member. If no member is free
within --wait, or on an interrupt, a claim that this call made is taken back.

With a command, the claim is renewed while that runs, and released after it if this call made it. The command finds
PAWL_ADDRESS, PAWL_MEMBER, PAWL_REVISION, PAWL_CLAIM, PAWL_POOL and PAWL_NAMESPACE in its environment, and is asked to end
(SIGTERM) if the claim ends before it does. Its exit status is the command's own.`,
		Example: fmt.Sprintf("  %[1]s claim web\n  %[1]s claim web --name build-17 --ttl 1h -o json\n  %[1]s claim web -- sh -c 'curl $PAWL_ADDRESS'", p.name),
		Args:    oneAndCommand,
		RunE:    m.run,
	}
	m.out = outputFlag(c, asJSON, asYAML, asName)
	c.Flags().StringVar(&m.name, "name", "", "name of the claim; made up if left out")
	c.Flags().DurationVar(&m.ttl, "ttl", 0, "hold the member for so long, counted from when it is given; 0 is as long as the pool says")
	c.Flags().DurationVar(&m.wait, "wait", defaultWait, "wait for so long for a member; 0 gets one that is free now, or none")
	return c
}

func (m *claim) run(c *cobra.Command, args []string) error {
	if m.ttl < 0 || m.wait < 0 {
		return &usageError{c, errors.New("--wait and --ttl must not be negative")}
	}
	command := args[1:]
	if len(command) > 0 && m.out.value != asText {
		return &usageError{c, errors.New("--output is for a claim without a command, which prints what it likes")}
	}
	ctx, stop := c.Context(), func() {}
	if list := farewells(); len(list) > 0 {
		ctx, stop = signal.NotifyContext(ctx, list...)
	}
	defer stop()
	k, err := m.connect()
	if err != nil {
		return err
	}
	if _, err := k.pool(ctx, args[0]); err != nil {
		return err
	}
	o, made, err := m.ask(ctx, k, args[0])
	if err != nil {
		return err
	}
	o, err = m.await(ctx, k, o, made)
	switch {
	case err != nil:
		return m.giveUp(ctx, k, o, made, err)
	case len(command) > 0:
		return m.with(ctx, k, o, made, command)
	}
	return m.print(o)
}

// ask makes the claim, or finds the one of the same name.
func (m *claim) ask(ctx context.Context, k *cluster, pool string) (o *v1alpha1.Claim, made bool, err error) {
	o = &v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: m.name}, Spec: v1alpha1.ClaimSpec{Pool: pool, Wait: &metav1.Duration{Duration: m.wait}}}
	if m.name == "" {
		o.GenerateName = pool + "-"
	}
	if m.ttl > 0 {
		o.Spec.TTL = &metav1.Duration{Duration: m.ttl}
	}
	err = k.Create(ctx, o)
	switch {
	case err == nil:
		return o, true, nil
	case !apierrors.IsAlreadyExists(err):
		return nil, false, fmt.Errorf("claim a member of pool %s: %w", pool, err)
	}
	if err := k.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return nil, false, k.about(err, "claim", m.name)
	}
	return o, false, m.same(ctx, k, o, pool)
}

// same makes sure that a claim that was there already is the one that is asked
// for.
func (m *claim) same(ctx context.Context, k *cluster, o *v1alpha1.Claim, pool string) error {
	const another = "choose another --name"
	switch {
	case o.Spec.Pool != pool:
		return fmt.Errorf("claim %s exists, and is one of pool %s; %s", o.Name, o.Spec.Pool, another)
	case !o.DeletionTimestamp.IsZero():
		return fmt.Errorf("claim %s is being released; ask again once it is gone, or %s", o.Name, another)
	}
	var me authenticationv1.SelfSubjectReview
	if err := k.Create(ctx, &me); err != nil {
		return nil //nolint:nilerr // who one is, is a courtesy that the server may refuse
	}
	if user := me.Status.UserInfo.Username; o.Spec.Holder != "" && user != "" && user != o.Spec.Holder {
		return fmt.Errorf("claim %s exists, and is held by %s, not by you (%s); %s", o.Name, o.Spec.Holder, user, another)
	}
	return nil
}

// errNotBound: the claim has no member within the time it was given.
var errNotBound = errors.New("no member within --wait")

// await waits until the claim has a member. Beside an error it returns the
// claim as it was last seen.
func (m *claim) await(ctx context.Context, k *cluster, o *v1alpha1.Claim, made bool) (*v1alpha1.Claim, error) {
	ctx, settled := context.WithCancelCause(ctx)
	defer settled(nil)
	patience := m.wait
	if made {
		patience += answerTime // the claim itself waits for so long, and then says why it got none
	}
	timer := time.AfterFunc(patience, func() { settled(errNotBound) })
	defer timer.Stop()
	last, done := o, false
	look := func(seen client.Object, gone bool) {
		c, ok := seen.(*v1alpha1.Claim)
		if !ok || done || c.UID != o.UID {
			return
		}
		last = c
		if err := outcome(c, gone); err != nil || c.Status.Phase == v1alpha1.ClaimBound {
			done = true
			settled(err)
		}
	}
	err := follow.Objects(ctx, k, &v1alpha1.ClaimList{}, follow.Listener{
		Changed: func(o client.Object) { look(o, false) },
		Gone:    func(o client.Object) { look(o, true) },
	}, client.InNamespace(o.Namespace), named(o.Name))
	switch {
	case err != nil:
		return last, err
	case done && last.Status.Phase == v1alpha1.ClaimBound:
		return last, nil
	}
	return last, context.Cause(ctx)
}

// outcome is why the claim will not get a member any more; nil if it may.
func outcome(c *v1alpha1.Claim, gone bool) error {
	switch {
	case gone || !c.DeletionTimestamp.IsZero():
		return fmt.Errorf("claim %s was released", c.Name)
	case c.Status.Phase == v1alpha1.ClaimReleased, c.Status.Phase == v1alpha1.ClaimExpired, c.Status.Phase == v1alpha1.ClaimFailed:
		return fmt.Errorf("claim %s has ended (%s): %s", c.Name, c.Status.Phase, boundMessage(c))
	}
	return nil
}

// boundMessage is what the controller last said about the claim.
func boundMessage(c *v1alpha1.Claim) string {
	if b := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionBound); b != nil {
		return b.Message
	}
	return "no controller has answered; is `pawl controller` or pawld running?"
}

// giveUp takes back a claim that this call made, and says why.
func (m *claim) giveUp(ctx context.Context, k *cluster, o *v1alpha1.Claim, made bool, cause error) error {
	if errors.Is(cause, errNotBound) {
		cause = fmt.Errorf("claim %s got no member of pool %s within %s: %s", o.Name, o.Spec.Pool, m.wait, boundMessage(o))
	}
	if !made {
		return fmt.Errorf("%w; it was there before, and stays", cause)
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer stop()
	err := k.Delete(ctx, o, client.Preconditions{UID: &o.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("%w; it could not be taken back: %w; `%s release %s` does", cause, err, m.program.name, o.Name)
	}
	if errors.Is(cause, context.Canceled) {
		return fmt.Errorf("interrupted; claim %s was taken back", o.Name)
	}
	return fmt.Errorf("%w; it was taken back", cause)
}

func (m *claim) print(o *v1alpha1.Claim) error {
	if m.out.value != asText {
		return m.out.print(m.Out, kinded(o, "Claim"))
	}
	st := &o.Status
	text := fmt.Sprintf("claim %s: member %s, address %s", o.Name, st.Member, orDash(st.Address))
	if st.ExpiresAt != nil {
		text += ", for " + age(m.now(), st.ExpiresAt.Time)
	}
	_, err := fmt.Fprintf(m.Out, "%s\nrelease it with `%s release %s`\n", text, m.program.name, o.Name)
	return err
}
