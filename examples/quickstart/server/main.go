// Command pawl-quickstart-server is a member of the quickstart's pool: it says
// over HTTP which version it is, in which process, for which member.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// answer is what GET / says.
type answer struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	Member  string `json:"member"`
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "host:port to serve on")
	warmup := flag.Duration("warmup", 0, "answer 503 for so long after the start")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, *addr, *warmup, answer{os.Getenv("VERSION"), os.Getpid(), os.Getenv("MEMBER")})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pawl-quickstart-server:", err)
		os.Exit(1)
	}
}

// serve answers until ctx ends, and then what it has begun to answer.
func serve(ctx context.Context, addr string, warmup time.Duration, a answer) error {
	server := &http.Server{Addr: addr, Handler: handler(time.Now().Add(warmup), a), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	if err := server.Shutdown(ctx); err != nil {
		return server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler serves GET / and GET /healthz, both from the time on.
func handler(from time.Time, a answer) http.Handler {
	warm := func(w http.ResponseWriter) bool {
		if time.Now().Before(from) {
			http.Error(w, "warming up", http.StatusServiceUnavailable)
			return false
		}
		return true
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		if !warm(w) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a) // whoever asked has hung up
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if warm(w) {
			_, _ = fmt.Fprintln(w, "ok")
		}
	})
	return mux
}
