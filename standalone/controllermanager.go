package main

import (
	"context"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"

	"github.com/pawl-dev/pawl/standalone/internal/pki"
)

// runControllerManager runs Kubernetes' own controllers until ctx ends.
func runControllerManager(ctx context.Context, kubeconfig string, certs *pki.PKI) error {
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return err
	}
	known, disabled, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	flags := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	for _, set := range o.Flags(known, disabled, aliases).FlagSets {
		flags.AddFlagSet(set)
	}
	err = flags.Parse([]string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		// It serves nothing: the API is all that anybody asks.
		"--secure-port=0",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--root-ca-file=" + certs.CertFile("ca"),
		"--service-account-private-key-file=" + certs.AccountKey(),
	})
	if err != nil {
		return err
	}
	config, err := o.Config(ctx, known, disabled, aliases)
	if err != nil {
		return err
	}
	return app.Run(ctx, config.Complete())
}
