package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/standalone/internal/pki"
	"github.com/pawl-dev/pawl/standalone/internal/schemas"
)

const (
	// apiServerStartTimeout is how long the API server may take to be ready.
	apiServerStartTimeout = 2 * time.Minute
	// startPoll is the time between two looks at something that is to start.
	startPoll = 20 * time.Millisecond
)

// apiServerFlags are kube-apiserver's, beside those about certificates and
// etcd.
func (p *Pawld) apiServerFlags() []string {
	flags := []string{
		"--anonymous-auth=false",
		"--authorization-mode=RBAC",
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=4000",
		"--max-mutating-requests-inflight=2000",
		// Without it, a stop would wait for the end of every watch.
		"--shutdown-watch-termination-grace-period=2s",
	}
	if !p.ControllerManager {
		// Nothing makes the accounts that this plugin would ask for.
		flags = append(flags, "--disable-admission-plugins=ServiceAccount")
	}
	return flags
}

// prepareAPIServer builds an API server; run serves until its context ends.
func (p *Pawld) prepareAPIServer(ctx context.Context, s start, certs *pki.PKI) (run func(context.Context) error, err error) {
	o := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	args := append(p.apiServerFlags(),
		"--etcd-servers=unix://"+s.dir.File(etcdSocket),
		"--cert-dir="+certs.Dir(),
		"--client-ca-file="+certs.CertFile("ca"),
		"--tls-cert-file="+certs.CertFile("server"),
		"--tls-private-key-file="+certs.KeyFile("server"),
		"--service-account-key-file="+certs.AccountKey(),
		"--service-account-signing-key-file="+certs.AccountKey(),
	)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	o.SecureServing.Listener = s.listener
	o.SecureServing.BindPort = portOf(s.listener)
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, err
	}
	completed, err := o.Complete(ctx)
	if err != nil {
		return nil, err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	chain, err := buildAPIServer(completed)
	if err != nil {
		return nil, err
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, err
	}
	return prepared.Run, nil
}

func buildAPIServer(o options.CompletedOptions) (*apiserver.APIAggregator, error) {
	config, err := app.NewConfig(o)
	if err != nil {
		return nil, err
	}
	outermost := config.Aggregator.GenericConfig
	chain := outermost.BuildHandlerChainFunc
	outermost.BuildHandlerChainFunc = func(api http.Handler, c *server.Config) http.Handler {
		return schemas.Await(chain(api, c), v1alpha1.GroupVersion.Group)
	}
	completed, err := config.Complete()
	if err != nil {
		return nil, err
	}
	return app.CreateServerChain(completed)
}

// waitFor waits until the API server answers a GET of path with 200.
func waitFor(ctx context.Context, config *rest.Config, path string) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ok := func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return false, nil // not serving yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	}
	if err := wait.PollUntilContextTimeout(ctx, startPoll, apiServerStartTimeout, true, ok); err != nil {
		return fmt.Errorf("wait for %s of the API server: %w", path, err)
	}
	return nil
}
