package api

import (
	"context"

	"github.com/flowhost/flowhost/run"
)

// Flows gives the flows that the host serves: all, or only the named one.
func (c *Client) Flows(ctx context.Context, name string) ([]FlowInfo, error) {
	var all []FlowInfo
	for body := (FlowsRequest{Flow: name}); ; {
		var page FlowsPage
		if err := c.ask(ctx, VerbFlows, body, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Flows...)
		if body.After = page.Next; page.Next == "" {
			return all, nil
		}
	}
}

// Deployed gives what the host has deployed at one time.
func (c *Client) Deployed(ctx context.Context) (Deployment, error) {
	var all Deployment
	for body := (DeployedRequest{}); ; {
		var page DeployedPage
		if err := c.ask(ctx, VerbDeployed, body, &page); err != nil {
			return Deployment{}, err
		}
		if body.After != "" && !page.Since.Equal(all.Since) { // other flows were deployed in between
			all, body.After = Deployment{}, ""
			continue
		}
		page.Flows = append(all.Flows, page.Flows...)
		all = page.Deployment
		if body.After = page.Next; page.Next == "" {
			return all, nil
		}
	}
}

// LoadFault gives the reason why the host did not load its changed files, nil when
// nothing was wrong.
func (c *Client) LoadFault(ctx context.Context) (*LoadFault, error) {
	var page DeployedPage
	err := c.ask(ctx, VerbDeployed, DeployedRequest{FaultOnly: true}, &page)
	return page.Fault, err
}

// Limits gives the state of the limits of the host's flows, by name.
func (c *Client) Limits(ctx context.Context) ([]run.LimitStatus, error) {
	var all []run.LimitStatus
	for body := (LimitsRequest{}); ; {
		var page LimitsPage
		if err := c.ask(ctx, VerbLimits, body, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Limits...)
		if body.After = page.Next; page.Next == "" {
			return all, nil
		}
	}
}
