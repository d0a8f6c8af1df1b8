package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/pawl-dev/pawl/internal/operator"
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

// Run serves until ctx ends or a part of pawld fails, and returns once
// everything has stopped: controllers first, then the API server, then etcd.
func (p *Pawld) Run(ctx context.Context) error {
	dir, err := openDirectory(p.DataDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if p.Kubeconfig == "" {
		p.Kubeconfig = dir.file("kubeconfig")
	}
	if p.Kubeconfig, err = filepath.Abs(p.Kubeconfig); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	if err := checkKubeconfig(p.Kubeconfig); err != nil {
		return err
	}
	listener, err := p.listen(dir)
	if err != nil {
		return err
	}
	defer listener.Close()
	log, err := openLog(dir.log())
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	defer log.flush()

	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	parts := &components{failed: fail}
	err = p.startAll(klog.NewContext(ctx, klog.Background()), parts, start{dir, log, listener})
	if err == nil {
		<-ctx.Done()
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	} else if ctx.Err() != nil {
		err = nil // it was told to stop
	}
	return errors.Join(err, parts.stop())
}

// start is what a run has in hand once nothing is left that could be refused.
type start struct {
	dir      *directory
	log      *logFile
	listener net.Listener
}

// startAll starts the parts in order, each once the one before it is ready,
// and says so when all of them are.
func (p *Pawld) startAll(ctx context.Context, parts *components, s start) error {
	if err := s.dir.sign(); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	certs, err := loadCertificates(s.dir.file("pki"), time.Now())
	if err != nil {
		return err
	}
	etcd, err := startEtcd(ctx, s.dir.file("etcd"), s.dir.etcdSocket(), s.log.die)
	if err != nil {
		return err
	}
	parts.start(ctx, "etcd", func(ctx context.Context) error { return runEtcd(ctx, etcd) })

	serve, err := p.prepareAPIServer(ctx, s.dir, certs, s.listener)
	if err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	parts.start(ctx, "API server", serve)
	host := "https://" + s.listener.Addr().String()
	admin := adminConfig(host, certs)
	// Its own preparations go on while Pawl's are made.
	if err := waitFor(ctx, admin, "/livez/ping"); err != nil {
		return err
	}
	if err := install(ctx, admin, p.Sim); err != nil {
		return err
	}
	if err := waitFor(ctx, admin, "/readyz"); err != nil {
		return err
	}
	if err := writeKubeconfig(p.Kubeconfig, host, certs); err != nil {
		return err
	}
	if p.ControllerManager {
		parts.start(ctx, "controller manager", func(ctx context.Context) error { return p.runControllerManager(ctx, certs) })
	}
	if p.Controllers {
		parts.start(ctx, "controllers", func(ctx context.Context) error { return p.runControllers(ctx, s.dir, admin) })
	}
	_, err = fmt.Fprintf(p.Stdout, "pawld is serving; kubeconfig: %s\n", p.Kubeconfig)
	return err
}

// runControllers runs Pawl's controllers until ctx ends.
func (p *Pawld) runControllers(ctx context.Context, dir *directory, admin *rest.Config) error {
	return operator.Run(ctx, admin, operator.Options{
		ProcessDir:  dir.file("processes"),
		Sim:         p.Sim,
		SimFile:     dir.file("sim.json"),
		MetricsAddr: "0",
		HealthAddr:  "0",
	})
}

// listen takes the port of the API. One that was chosen freely is written
// down, so that the next run is found in the same place.
func (p *Pawld) listen(dir *directory) (net.Listener, error) {
	if p.Port < 0 || p.Port > 65535 {
		return nil, fmt.Errorf("--port %d: not a port; choose 0 to 65535", p.Port)
	}
	if p.Port != 0 {
		l, err := listenOn(p.Port)
		if errors.Is(err, unix.EADDRINUSE) {
			return nil, fmt.Errorf("--port %d: in use by another program; choose another port, or 0 for a free one", p.Port)
		}
		if err != nil {
			return nil, fmt.Errorf("--port %d: %w", p.Port, err)
		}
		return l, nil
	}
	if last, err := os.ReadFile(dir.file("port")); err == nil {
		if port, err := strconv.Atoi(strings.TrimSpace(string(last))); err == nil && port > 0 {
			if l, err := listenOn(port); err == nil {
				return l, nil
			}
		}
	}
	l, err := listenOn(0)
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if err := writeFile(dir.file("port"), []byte(port+"\n")); err != nil {
		l.Close()
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	return l, nil
}

func listenOn(port int) (net.Listener, error) {
	return net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}
