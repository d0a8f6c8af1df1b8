package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/snapshot"
)

// manyAsides is how many members are remarked on.
const manyAsides = 5

// remarks are what a person should know of a pool beside the numbers.
func remarks(p *v1alpha1.Pool, now time.Time) []string {
	var list []string
	switch {
	case !p.DeletionTimestamp.IsZero():
		list = append(list, "it is being deleted")
	case p.Status.ObservedGeneration == 0:
		list = append(list, "no controller has looked at it yet; is `pawl controller` or pawld running?")
	case p.Status.ObservedGeneration < p.Generation:
		list = append(list, "the controller has not seen its latest edit yet")
	}
	next := ""
	if r := p.Status.Rollout; r != nil {
		next = r.Next
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		list = append(list, "stalled: "+c.Message)
		if c.Message == next {
			next = ""
		}
	}
	if why := unresolved(p); why != "" {
		list = append(list, "sources: "+why)
	}
	if line := windows(p, now); line != "" {
		list = append(list, line)
	}
	if next != "" {
		list = append(list, "next: "+next)
	}
	return list
}

// windows says whether disruptions may start now, and until when; empty for a
// pool that has no windows, or nothing to update.
func windows(p *v1alpha1.Pool, now time.Time) string {
	if p.Spec.Update == nil || len(p.Spec.Update.Windows) == 0 || meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionUpdated) {
		return ""
	}
	open, until := snapshot.UpdateWindows(&p.Spec).At(now)
	when := fmt.Sprintf("%s (in %s)", until.UTC().Format(time.RFC3339), age(now, until))
	switch {
	case open && until.IsZero():
		return "windows: open"
	case open:
		return "windows: open until " + when
	case until.IsZero():
		return "windows: shut, and none opens again"
	}
	return "windows: shut; the next one opens at " + when
}

// asides are what people asked for of members: holds, skips and recycles.
func asides(p *v1alpha1.Pool, members []*v1alpha1.Member, now time.Time) []string {
	var list []string
	for _, m := range members {
		if line := held(m, now); line != "" {
			list = append(list, line)
		}
		if target := p.Status.TargetRevision; target != "" && m.Annotations[v1alpha1.AnnotationSkip] == target {
			list = append(list, fmt.Sprintf("%s is skipped: it is not brought to revision %s", m.Name, target))
		}
		if m.Annotations[v1alpha1.AnnotationRecycle] == strconv.FormatInt(m.Status.Incarnation, 10) {
			list = append(list, m.Name+" is to get another body, as somebody asked")
		}
	}
	return first(list, manyAsides)
}

// asked are the claims whose holders were asked to give their members back.
func asked(claims []*v1alpha1.Claim) []string {
	var list []string
	for _, c := range claims {
		if requested(c) != nil {
			list = append(list, fmt.Sprintf("%s was asked to give %s back (claim %s)", orHolder(c.Spec.Holder), c.Status.Member, c.Name))
		}
	}
	return first(list, manyAsides)
}

func orHolder(name string) string {
	if name == "" {
		return "its holder"
	}
	return name
}

// first is the beginning of a list, and how many more there are.
func first(list []string, most int) []string {
	if n := len(list) - most; n > 1 {
		return append(list[:most:most], fmt.Sprintf("and %d more like that", n))
	}
	return list
}

// notified are the claims of a pool whose holders may have been asked to give
// their members back.
func (c *cluster) notified(ctx context.Context, p *v1alpha1.Pool) ([]*v1alpha1.Claim, error) {
	if p.Spec.Update == nil || p.Spec.Update.OnClaimed == nil || *p.Spec.Update.OnClaimed != v1alpha1.ClaimedNotify {
		return nil, nil
	}
	return c.claims(ctx, p.Name)
}

// claims reads a pool's claims.
func (c *cluster) claims(ctx context.Context, pool string) ([]*v1alpha1.Claim, error) {
	var list v1alpha1.ClaimList
	if err := c.List(ctx, &list, client.InNamespace(c.namespace), ofPool(pool)); err != nil {
		return nil, fmt.Errorf("list claims of pool %s: %w", pool, err)
	}
	claims := make([]*v1alpha1.Claim, len(list.Items))
	for i := range list.Items {
		claims[i] = &list.Items[i]
	}
	return claims, nil
}
