// Command golangci is golangci-lint with kube-api-linter linked in, which
// golangci-lint loads only as a part of its own binary.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"
	_ "sigs.k8s.io/kube-api-linter"
)

func main() {
	if err := commands.Execute(buildInfo()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitcodes.Failure)
	}
}

// buildInfo says which golangci-lint this is: the version in go.mod.
func buildInfo() commands.BuildInfo {
	info := commands.BuildInfo{Version: "unknown", Commit: "?", Date: "?", GoVersion: "unknown"}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	info.GoVersion = build.GoVersion
	for _, m := range build.Deps {
		if m.Path == "github.com/golangci/golangci-lint/v2" {
			info.Version = m.Version
		}
	}
	return info
}
