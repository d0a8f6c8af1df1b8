package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/version"
)

// release is pawld's own version, set by the linker.
var release = "devel"

func newCommand() *cobra.Command {
	// Kubernetes registers flags for every command that links it in.
	pflag.CommandLine = pflag.NewFlagSet("", pflag.ContinueOnError)
	p := &Pawld{Stdout: os.Stdout}
	c := &cobra.Command{
		Use:   "pawld",
		Short: "Pawl on one machine: a Kubernetes API and pools of members that roll one safe step at a time",
		Long: `pawld serves a Kubernetes API on this machine, keeps its state in one data
directory, and runs Pawl's controllers and the processes of its pools.

It prints one line when it serves, and logs to pawld.log in the data directory.
Interrupt or SIGTERM stops it in order; members' processes stay, and are adopted
by the next pawld on the same data directory.`,
		Example: `  pawld --data-dir ./pawl &
  kubectl --kubeconfig ./pawl/kubeconfig get pools`,
		Args:          cobra.NoArgs,
		Version:       release + " (Kubernetes " + version.Get().GitVersion + ")",
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			// A second signal ends pawld at once.
			context.AfterFunc(ctx, stop)
			return p.Run(ctx)
		},
	}
	f := c.Flags()
	f.StringVar(&p.DataDir, "data-dir", defaultDataDir(), "directory for everything pawld keeps; made if missing, closed to other users")
	f.StringVar(&p.Kubeconfig, "kubeconfig", "", "where to write the kubeconfig (default <data-dir>/kubeconfig)")
	f.IntVar(&p.Port, "port", 0, "port of the API on 127.0.0.1; 0: the one used last, or a free one")
	f.BoolVar(&p.Controllers, "controllers", true, "run Pawl's controllers")
	f.BoolVar(&p.ControllerManager, "controller-manager", false, "also run Kubernetes' own controllers; without them nothing acts on Deployments, and deleted namespaces and cascading deletions do not end")
	f.BoolVar(&p.Sim, "sim", false, "allow pools of simulated bodies")
	return c
}

// defaultDataDir follows the XDG base directories; empty if there is no home.
func defaultDataDir() string {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "pawl")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "share", "pawl")
}
