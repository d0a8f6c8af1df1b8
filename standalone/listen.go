package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/standalone/internal/datadir"
)

// listen takes the port of the API on the loopback interface. One that was
// chosen freely is written down, so that the next run is found where this one
// was.
func listen(port int, dir *datadir.Dir) (net.Listener, error) {
	if port != 0 {
		l, err := listenOn(port)
		if errors.Is(err, unix.EADDRINUSE) {
			return nil, fmt.Errorf("--port %d: in use by another program; choose another one, or 0 for a free one", port)
		}
		if err != nil {
			return nil, fmt.Errorf("--port %d: %w; choose another one, or 0 for a free one", port, err)
		}
		return l, nil
	}
	if l, err := listenOn(lastPort(dir)); err == nil {
		return l, nil
	}
	l, err := listenOn(0)
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	chosen := strconv.Itoa(portOf(l))
	if err := datadir.WriteFile(dir.File("port"), []byte(chosen+"\n")); err != nil {
		return nil, errors.Join(fmt.Errorf("--data-dir: %w", err), l.Close())
	}
	return l, nil
}

// lastPort is the port that was chosen freely before; -1 if there is none.
func lastPort(dir *datadir.Dir) int {
	data, err := os.ReadFile(dir.File("port"))
	if err != nil {
		return -1
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || port == 0 {
		return -1
	}
	return port
}

func listenOn(port int) (net.Listener, error) {
	return net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// portOf is the port of a TCP listener.
func portOf(l net.Listener) int {
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}
