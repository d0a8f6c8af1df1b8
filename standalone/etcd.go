package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/pawl-dev/pawl/standalone/internal/datadir"
)

const (
	// etcdSocket is the name of etcd's socket in the data directory.
	etcdSocket = "etcd.sock"
	// etcdStartTimeout is how long etcd may take to replay its log.
	etcdStartTimeout = 2 * time.Minute
	// walSegment is the size in bytes of a file of etcd's log. Seven of them
	// may be there at a time.
	walSegment = 16 << 20
)

// startEtcd starts etcd in dir, serving on a unix socket there only, and waits
// until it serves. What it acknowledges is on the disk. It calls fatal,
// which must not return, when it cannot go on.
func startEtcd(ctx context.Context, dir *datadir.Dir, fatal func(error)) (*embed.Etcd, error) {
	wal.SegmentSizeBytes = walSegment
	c := embed.NewConfig()
	c.Dir = dir.File("etcd")
	c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: dir.File(etcdSocket)}}
	c.AdvertiseClientUrls = c.ListenClientUrls
	// There are no peers: nothing listens for them.
	c.ListenPeerUrls = nil
	// The one member wins every election; it need not wait long for the first.
	c.TickMs, c.ElectionMs = 20, 200
	c.QuotaBackendBytes = 8 << 30
	c.EnableGRPCGateway = false
	logger := logutil.DefaultZapLoggerConfig
	logger.Level = zap.NewAtomicLevelAt(zap.WarnLevel)
	z, err := logger.Build(zap.WithFatalHook(fatalHook(fatal)))
	if err != nil {
		return nil, fmt.Errorf("etcd's log: %w", err)
	}
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(z)

	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("start etcd in %s: %w", c.Dir, err)
	}
	ctx, cancel := context.WithTimeout(ctx, etcdStartTimeout)
	defer cancel()
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case err = <-e.Err():
	case <-e.Server.StopNotify():
		err = errors.New("it stopped")
	case <-ctx.Done():
		err = ctx.Err()
	}
	e.Close()
	return nil, fmt.Errorf("start etcd in %s: %w", c.Dir, err)
}

// runEtcd waits until etcd stops or ctx ends, and closes it.
func runEtcd(ctx context.Context, e *embed.Etcd) error {
	defer e.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-e.Err():
		return err
	case <-e.Server.StopNotify():
		return errors.New("it stopped")
	}
}

// fatalHook is told the last words of a logger whose owner cannot go on.
type fatalHook func(error)

// OnWrite passes on what was said, with the error that came with it.
func (h fatalHook) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(e.Message)
	for _, f := range fields {
		if cause, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			err = fmt.Errorf("%s: %w", e.Message, cause)
		}
	}
	h(fmt.Errorf("etcd: %w", err))
}
