package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
)

// release is Pawl's own version, set by the linker.
var release = "devel"

// versionTimeout is how long the server may take to say its version.
const versionTimeout = 3 * time.Second

// versions are what the command prints.
type versions struct {
	Client clientVersion `json:"client"`
	// Server is the API server's; nil if it cannot be reached.
	Server *apiversion.Info `json:"server,omitempty"`
	// Unreachable is why.
	Unreachable string `json:"unreachable,omitempty"`
}

type clientVersion struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (p *program) versionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the server, if it can be reached",
	}
	out := outputFlag(c, asJSON, asYAML)
	c.RunE = func(c *cobra.Command, _ []string) error {
		v := versions{Client: thisVersion()}
		server, err := p.serverVersion(c.Context())
		if err != nil {
			v.Unreachable = p.cure(err).Error()
		}
		v.Server = server
		return p.printVersions(&v, out)
	}
	return c
}

func (p *program) printVersions(v *versions, out *output) error {
	text := fmt.Sprintf("pawl %s (%s, %s)\n", v.Client.Version, v.Client.Go, v.Client.Platform)
	if v.Server != nil {
		text += fmt.Sprintf("server: Kubernetes %s\n", v.Server.GitVersion)
	} else {
		text += fmt.Sprintf("server: %s\n", v.Unreachable)
	}
	if out.value != asText {
		return out.encode(p.Out, v)
	}
	_, err := fmt.Fprint(p.Out, text)
	return err
}

// thisVersion is the version of this program.
func thisVersion() clientVersion {
	v := clientVersion{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return v
}

func (p *program) serverVersion(ctx context.Context) (*apiversion.Info, error) {
	config, err := p.config()
	if err != nil {
		return nil, err
	}
	config.Timeout = versionTimeout
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return d.ServerVersionWithContext(ctx)
}
