package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// The values of --output. The empty one is for people.
const (
	asText = ""
	asJSON = "json"
	asYAML = "yaml"
	asWide = "wide"
	asName = "name"
)

// output is a command's flag --output.
type output struct {
	value   string
	allowed []string
}

// outputFlag gives the command the flag, with what it may be.
func outputFlag(c *cobra.Command, allowed ...string) *output {
	o := &output{allowed: allowed}
	c.Flags().VarP(o, "output", "o", "print as "+strings.Join(allowed, "|")+" rather than for people")
	// It can only fail if the flag does not exist.
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
	return o
}

func (o *output) String() string { return o.value }

// Type is what the usage says of the flag's value.
func (o *output) Type() string { return "format" }

// Set takes the flag's value.
func (o *output) Set(value string) error {
	if !slices.Contains(o.allowed, value) {
		return errors.New("must be one of " + strings.Join(o.allowed, ", "))
	}
	o.value = value
	return nil
}

// people tells whether the output is for people.
func (o *output) people() bool { return o.value == asText || o.value == asWide }

// print writes an object, which has to know its kind.
func (o *output) print(w io.Writer, obj runtime.Object) error {
	var printer printers.ResourcePrinter
	switch o.value {
	case asJSON:
		printer = &printers.JSONPrinter{}
	case asYAML:
		printer = &printers.YAMLPrinter{}
	case asName:
		printer = &printers.NamePrinter{}
	default:
		return fmt.Errorf("cannot print as %q", o.value)
	}
	return (&printers.OmitManagedFieldsPrinter{Delegate: printer}).PrintObj(obj, w)
}

// kinded gives an object of ours the kind that it has lost on its way through
// the typed client.
func kinded[T runtime.Object](o T, kind string) T {
	o.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return o
}

// encode writes what is not an object of the API.
func (o *output) encode(w io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	data = append(data, '\n')
	if o.value == asYAML {
		data, err = yaml.Marshal(v)
	}
	if err != nil {
		return fmt.Errorf("encode as %s: %w", o.value, err)
	}
	_, err = w.Write(data)
	return err
}
