package main

import (
	"context"
	"fmt"
	"net"
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
	}
	if !p.ControllerManager {
		// Nothing makes the accounts that this plugin would ask for.
		flags = append(flags, "--disable-admission-plugins=ServiceAccount")
	}
	return flags
}

// prepareAPIServer builds an API server that serves on listener.
func (p *Pawld) prepareAPIServer(ctx context.Context, d *directory, c *certificates, listener net.Listener) (run func(context.Context) error, err error) {
	o := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	args := append(p.apiServerFlags(),
		"--etcd-servers=unix://"+d.etcdSocket(),
		"--cert-dir="+c.dir,
		"--client-ca-file="+c.certFile("ca"),
		"--tls-cert-file="+c.certFile("server"),
		"--tls-private-key-file="+c.keyFile("server"),
		"--service-account-key-file="+c.accountKey(),
		"--service-account-signing-key-file="+c.accountKey(),
	)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	o.SecureServing.Listener = listener
	o.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port
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
		return awaitSchemas(chain(api, c))
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
