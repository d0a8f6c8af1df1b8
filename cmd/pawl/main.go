// Command pawl is Pawl's command line, and the operator.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	c := &cobra.Command{
		Use:           "pawl",
		Short:         "Keep pools of things that cannot simply be restarted on their template",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c.AddCommand(newSimulateCommand())
	err := c.Execute()
	if status := exitStatus(0); errors.As(err, &status) {
		os.Exit(int(status))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
