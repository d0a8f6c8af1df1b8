package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pawl-dev/pawl/internal/operator"
)

// controller runs the operator.
type controller struct {
	*program
	operator.Options

	format    string
	verbosity int
}

func (p *program) controllerCommand() *cobra.Command {
	o := &controller{program: p}
	c := &cobra.Command{
		Use:   "controller",
		Short: "Run the operator against a cluster",
		Long: `Run the operator against a cluster: the one of the kubeconfig or, in a pod, the pod's own.

It ends in order on SIGTERM or an interrupt. Bodies are Kubernetes objects only; processes are what pawld is for.`,
		Example: fmt.Sprintf("  %s controller --leader-elect=false --metrics-address 0", p.name),
		RunE:    func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	f.StringVar(&o.MetricsAddr, "metrics-address", ":8080", "host:port that serves /metrics; 0 is off")
	f.StringVar(&o.HealthAddr, "health-address", ":8081", "host:port that serves /healthz and /readyz; 0 is off")
	f.BoolVar(&o.LeaderElection, "leader-elect", true, "take turns with other copies, so that one at a time is active")
	f.StringVar(&o.LeaderElectionNamespace, "leader-elect-namespace", "", "namespace of the lease by which copies take turns; in a pod, the pod's own if left out")
	f.StringVar(&o.format, "log-format", "json", "json or text, on standard error")
	f.IntVarP(&o.verbosity, "v", "v", 0, "log more, the higher it is: 0 is what happens, 4 is for debugging")
	_ = c.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"json", "text"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *controller) run(c *cobra.Command) error {
	if err := o.log(); err != nil {
		return &usageError{c, err}
	}
	config, err := o.config()
	if err != nil {
		return err
	}
	ctx := klog.NewContext(c.Context(), klog.Background())
	klog.Background().Info("starting", "version", release, "server", config.Host)
	if err := operator.Run(ctx, config, o.Options); err != nil && context.Cause(ctx) == nil {
		return err
	}
	klog.Background().Info("stopped")
	return nil
}

// log has everything log the same way: our own packages, controller-runtime
// and client-go.
func (o *controller) log() error {
	options := &slog.HandlerOptions{Level: slog.Level(-o.verbosity)}
	var handler slog.Handler
	switch o.format {
	case "json":
		handler = slog.NewJSONHandler(o.ErrOut, options)
	case "text":
		handler = slog.NewTextHandler(o.ErrOut, options)
	default:
		return fmt.Errorf("--log-format %q: must be json or text", o.format)
	}
	klog.SetSlogLogger(slog.New(handler))
	ctrllog.SetLogger(klog.Background())
	// What klog logs at all is a flag of its own.
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	return flags.Set("v", strconv.Itoa(o.verbosity))
}
