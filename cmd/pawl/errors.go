package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The exit statuses beside 0.
const (
	statusFailed = 1
	statusUsage  = 2
)

// usageError is a command line that cannot be understood.
type usageError struct {
	command *cobra.Command
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

// end tells a person about the error and returns the exit status.
func (p *program) end(c *cobra.Command, err error) int {
	if err == nil {
		return 0
	}
	if told := exitError(0); errors.As(err, &told) {
		return int(told)
	}
	if usage := new(usageError); errors.As(err, &usage) {
		p.complain("%v\nsee `%s --help`", err, c.CommandPath())
		return statusUsage
	}
	p.complain("%v", p.cure(err))
	return statusFailed
}

func (p *program) complain(format string, args ...any) {
	_, _ = fmt.Fprintf(p.ErrOut, "error: "+format+"\n", args...)
}

// cure says errors that any command can meet in a person's words.
func (p *program) cure(err error) error {
	trouble := new(url.Error)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.As(err, &trouble):
		return fmt.Errorf("cannot reach %s (kubeconfig %s): %w; start the server, or choose another one with --kubeconfig or --context",
			host(trouble.URL), p.kubeconfigs(), trouble.Err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the server does not know who you are (kubeconfig %s): %w; its credentials may have expired", p.kubeconfigs(), err)
	case unknownKind(err):
		return fmt.Errorf("the server (kubeconfig %s) does not have Pawl's API; install it with `kubectl apply --server-side -k config`", p.kubeconfigs())
	}
	return err
}

// unknownKind tells whether the server has no such kind, as opposed to no such
// object: then it does not answer in the words of the API.
func unknownKind(err error) bool {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d == nil || d.Name == "" || slices.ContainsFunc(d.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// host is the server's part of a URL.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Scheme + "://" + u.Host
}
