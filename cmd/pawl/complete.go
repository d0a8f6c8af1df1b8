package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// completeTimeout is how long a shell may be kept waiting.
const completeTimeout = 2 * time.Second

// complete has shells complete names by asking the server.
func complete(p *program, root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "get", "pause", "resume":
			c.ValidArgsFunction = p.names(&v1alpha1.PoolList{}, true)
		case "status", "claim", "history", "undo", "retry":
			c.ValidArgsFunction = p.names(&v1alpha1.PoolList{}, false)
		case "diff":
			c.ValidArgsFunction = p.poolRevision
		case "explain":
			c.ValidArgsFunction = p.slots
		case "recycle", "hold", "unhold", "skip":
			c.ValidArgsFunction = p.members
		case "release", "renew":
			c.ValidArgsFunction = p.names(&v1alpha1.ClaimList{}, true)
		}
	}
	for flag, list := range map[string]cobra.CompletionFunc{"namespace": cobra.NoFileCompletions, "context": p.contexts} {
		_ = root.RegisterFlagCompletionFunc(flag, list) // it can only fail if the flag does not exist
	}
}

// names completes the names of a kind, for one argument or for several.
func (p *program) names(list client.ObjectList, several bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !several {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return p.list(list), cobra.ShellCompDirectiveNoFileComp
	}
}

// slots completes POOL and POOL/INDEX.
func (p *program) slots(c *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	pool, _, ok := strings.Cut(toComplete, "/")
	if !ok || len(args) > 0 {
		return p.names(&v1alpha1.PoolList{}, false)(c, args, toComplete)
	}
	var found []cobra.Completion
	for _, name := range p.list(&v1alpha1.MemberList{}, ofPool(pool)) {
		found = append(found, pool+"/"+strings.TrimPrefix(name, pool+"-"))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// members completes POOL/INDEX.
func (p *program) members(c *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	found, directive := p.slots(c, args, toComplete)
	if strings.Contains(toComplete, "/") {
		return found, directive
	}
	for i := range found {
		found[i] += "/"
	}
	return found, directive | cobra.ShellCompDirectiveNoSpace
}

// poolRevision completes POOL and REVISION.
func (p *program) poolRevision(c *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return p.names(&v1alpha1.PoolList{}, false)(c, args, toComplete)
	}
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.revisions(c, args, toComplete)
}

// revisions completes the ids of the revisions of the pool that is named.
func (p *program) revisions(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []cobra.Completion
	for _, name := range p.list(&appsv1.ControllerRevisionList{}, client.MatchingLabels{v1alpha1.LabelPool: args[0]}) {
		found = append(found, strings.TrimPrefix(name, args[0]+"-"))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// list is the names of a kind in the namespace; none if they cannot be read.
func (p *program) list(list client.ObjectList, of ...client.ListOption) []cobra.Completion {
	k, err := p.connect()
	if err != nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), completeTimeout)
	defer stop()
	if err := k.List(ctx, list, append(of, client.InNamespace(k.namespace))...); err != nil {
		return nil
	}
	var names []cobra.Completion
	err = meta.EachListItem(list, func(o runtime.Object) error {
		m, err := meta.Accessor(o)
		if err == nil {
			names = append(names, m.GetName())
		}
		return err
	})
	if err != nil {
		return nil
	}
	return names
}

// contexts completes the contexts of the kubeconfig.
func (p *program) contexts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	raw, err := p.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for name := range raw.Contexts {
		names = append(names, name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
