package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/pawl-dev/pawl/internal/operator"
	"github.com/pawl-dev/pawl/standalone/internal/datadir"
	"github.com/pawl-dev/pawl/standalone/internal/parts"
	"github.com/pawl-dev/pawl/standalone/internal/pki"
)

// How much garbage the heap may hold, in percent of what is in use, while
// pawld starts and while it serves: it trades less than a tenth of the
// processor time for a quarter of the memory. $GOGC overrides both.
const (
	gcStarting = 75
	gcServing  = 50
)

// Pawld is one run of pawld.
type Pawld struct {
	// DataDir keeps everything, and belongs to one pawld at a time.
	DataDir string
	// Kubeconfig is where the kubeconfig is written. Empty: in DataDir.
	Kubeconfig string
	// Port is where the API is served on 127.0.0.1. 0: where it was last, if
	// that is free, or on any free port.
	Port int
	// Controllers runs Pawl's controllers.
	Controllers bool
	// ControllerManager runs Kubernetes' own controllers too.
	ControllerManager bool
	// Sim allows Pools of simulated bodies.
	Sim bool
	// Stdout is told, in one line, when pawld serves.
	Stdout io.Writer
}

// start is what a run has in hand once nothing is left that could be refused.
type start struct {
	dir      *datadir.Dir
	log      *logFile
	listener net.Listener
}

// Run serves until ctx ends or a part of pawld fails, and returns once
// everything has stopped: controllers first, then the API server, then etcd.
func (p *Pawld) Run(ctx context.Context) error {
	if p.DataDir == "" {
		return errors.New("--data-dir: there is no home directory to put it in; name one")
	}
	dir, err := datadir.Open(p.DataDir, etcdSocket)
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	defer closeQuietly(dir)
	if err := p.checkKubeconfig(dir); err != nil {
		return err
	}
	listener, err := listen(p.Port, dir)
	if err != nil {
		return err
	}
	defer closeQuietly(listener)
	log, err := openLog(dir.File("pawld.log"))
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	defer log.flush()
	collect(gcStarting)
	return p.serve(klog.NewContext(ctx, klog.Background()), start{dir, log, listener})
}

// serve starts the parts in order, waits, and stops them in the other order.
func (p *Pawld) serve(ctx context.Context, s start) error {
	// What has begun to start is not stopped before it runs: Kubernetes takes
	// that for an error. Only a part that fails ends the start.
	alive, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	defer fail(nil)
	running := parts.New(fail)
	admin, certs, err := p.startControlPlane(alive, running, s)
	if err == nil && ctx.Err() == nil {
		err = p.startControllers(alive, running, s.dir, admin, certs)
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case <-alive.Done():
		}
	}
	if cause := context.Cause(alive); cause != nil {
		err = cause // what comes after it is only its consequence
	}
	if err != nil {
		s.log.cause.Store(&err)
	}
	return errors.Join(err, running.Stop())
}

// startControlPlane starts etcd and the API server, each once what it needs is
// ready, and installs what Pawl needs in it.
func (p *Pawld) startControlPlane(ctx context.Context, running *parts.Group, s start) (*rest.Config, *pki.PKI, error) {
	certs, err := pki.Load(s.dir.File("pki"), time.Now())
	if err != nil {
		return nil, nil, err
	}
	etcd, err := startEtcd(ctx, s.dir, s.log.die)
	if err != nil {
		return nil, nil, err
	}
	running.Start(ctx, "etcd", func(ctx context.Context) error { return runEtcd(ctx, etcd) })
	run, err := p.prepareAPIServer(ctx, s, certs)
	if err != nil {
		return nil, nil, fmt.Errorf("start the API server: %w", err)
	}
	running.Start(ctx, "API server", run)

	admin := adminConfig("https://"+s.listener.Addr().String(), certs)
	// The API server's own preparations go on while Pawl's are made, and
	// whatever comes of these, it is not stopped before it is ready.
	err = waitFor(ctx, admin, "/livez/ping")
	if err == nil {
		err = install(ctx, admin, p.Sim)
	}
	return admin, certs, errors.Join(err, waitFor(ctx, admin, "/readyz"))
}

// startControllers starts what works on the API, and says that pawld serves.
func (p *Pawld) startControllers(ctx context.Context, running *parts.Group, dir *datadir.Dir, admin *rest.Config, certs *pki.PKI) error {
	if err := writeKubeconfig(p.Kubeconfig, admin.Host, certs); err != nil {
		return err
	}
	if p.ControllerManager {
		running.Start(ctx, "controller manager", func(ctx context.Context) error {
			return runControllerManager(ctx, p.Kubeconfig, certs)
		})
	}
	if p.Controllers {
		running.Start(ctx, "controllers", func(ctx context.Context) error {
			return operator.Run(ctx, admin, operator.Options{
				ProcessDir:  dir.File("processes"),
				Sim:         p.Sim,
				SimFile:     dir.File("sim.json"),
				MetricsAddr: "0",
				HealthAddr:  "0",
			})
		})
	}
	collect(gcServing)
	debug.FreeOSMemory()
	_, err := fmt.Fprintf(p.Stdout, "pawld is serving; kubeconfig: %s\n", p.Kubeconfig)
	return err
}

// checkKubeconfig fills in where the kubeconfig goes, and sees whether it can.
func (p *Pawld) checkKubeconfig(dir *datadir.Dir) error {
	if p.Kubeconfig == "" {
		p.Kubeconfig = dir.File("kubeconfig")
	}
	path, err := filepath.Abs(p.Kubeconfig)
	if err != nil {
		return fmt.Errorf("--kubeconfig %s: %w", p.Kubeconfig, err)
	}
	p.Kubeconfig = path
	return checkKubeconfig(path)
}

// collect sets the garbage collector's percentage unless the user has.
func collect(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// closeQuietly closes what the end of the process would close as well.
func closeQuietly(c io.Closer) { _ = c.Close() }
