package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// program is what the commands share.
type program struct {
	genericiooptions.IOStreams

	// name is what it was called by: "pawl" or "kubectl pawl".
	name  string
	flags *genericclioptions.ConfigFlags
	// connect gives the cluster that the flags say.
	connect func() (*cluster, error)
	now     func() time.Time
}

func newProgram(path string, streams genericiooptions.IOStreams) *program {
	p := &program{IOStreams: streams, name: calledBy(path), flags: genericclioptions.NewConfigFlags(true), now: time.Now}
	p.connect = p.dial
	return p
}

// calledBy is the name that a person types: "kubectl pawl" for kubectl-pawl.
func calledBy(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	if plugin, ok := strings.CutPrefix(name, "kubectl-"); ok {
		return "kubectl " + strings.ReplaceAll(plugin, "_", "-")
	}
	return name
}

// run runs a command line and returns its exit status: 0 if it worked, 1 if
// it did not, 2 if it could not be understood.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.root()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	return p.end(command, err)
}

// root is the command line.
func (p *program) root() *cobra.Command {
	c := &cobra.Command{
		Use:         "pawl",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: p.name},
		Short:       "Keep pools of things that cannot simply be restarted on their template",
		Long: `Pawl keeps pools of things that cannot simply be restarted on their current template. It shows which members have
drifted from it, and replaces them one safe step at a time, never one that is in use.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		// So many letters may be wrong in a name for it to be suggested.
		SuggestionsMinimumDistance: 2,
		Args:                       p.known,
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.SetIn(p.In)
	c.SetOut(p.Out)
	c.SetErr(p.ErrOut)
	p.flags.AddFlags(c.PersistentFlags())
	c.SetUsageTemplate(usageTemplate(c.UsageTemplate()))
	c.AddGroup(&cobra.Group{ID: "look", Title: "See pools:"}, &cobra.Group{ID: "act", Title: "Use pools:"}, &cobra.Group{ID: "other", Title: "Other:"})
	c.AddCommand(p.getCommand(), p.statusCommand(), p.explainCommand(), p.previewCommand(), p.historyCommand(), p.diffCommand())
	c.AddCommand(p.claimCommand(), p.renewCommand(), p.releaseCommand(), p.pauseCommand(), p.resumeCommand())
	c.AddCommand(p.undoCommand(), p.retryCommand(), p.skipCommand(), p.recycleCommand(), p.holdCommand(), p.unholdCommand())
	c.AddCommand(inGroup("other", p.controllerCommand(), newSimulateCommand(), p.versionCommand(), p.optionsCommand())...)
	c.SetHelpCommandGroupID("other")
	c.SetCompletionCommandGroupID("other")
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &usageError{c, err} })
	complete(p, c)
	for _, sub := range c.Commands() {
		usageOfArgs(sub)
	}
	return c
}

func inGroup(id string, commands ...*cobra.Command) []*cobra.Command {
	for _, c := range commands {
		c.GroupID = id
	}
	return commands
}

// known says that a command is not, and which one may have been meant.
func (p *program) known(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	like := ""
	if names := c.SuggestionsFor(args[0]); len(names) > 0 {
		like = fmt.Sprintf("; did you mean %q?", names[0])
	}
	return &usageError{c, fmt.Errorf("there is no command %q%s", args[0], like)}
}

// usageOfArgs makes what is wrong with a command's arguments a usage error.
func usageOfArgs(c *cobra.Command) {
	check := c.Args
	if check == nil {
		check = cobra.NoArgs
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return &usageError{c, err}
		}
		return nil
	}
}

// one wants exactly one argument.
func one(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return fmt.Errorf("%s is missing", what)
		case 1:
			return nil
		}
		return fmt.Errorf("one %s at a time, not %d: %s", what, len(args), strings.Join(args, " "))
	}
}

// some wants one argument or more.
func some(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s is missing", what)
		}
		return nil
	}
}

// usageTemplate leaves the flags of the kubeconfig to a command of their own,
// as kubectl does.
func usageTemplate(template string) string {
	return strings.NewReplacer(
		"Usage:{{if .Runnable}}", "Usage:{{if and .Runnable .HasParent}}",
		"{{if .HasAvailableLocalFlags}}", "{{if and .HasAvailableLocalFlags .HasParent}}",
		"Global Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}",
		"--kubeconfig, --context, --namespace and more, as kubectl's: {{.Root.DisplayName}} options",
	).Replace(template)
}

// optionsCommand shows the flags that every command has.
func (p *program) optionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that every command has",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(p.Out, "These flags work with every command:\n\n%s", c.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}
