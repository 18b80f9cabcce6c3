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

// Status gives the state of the host as a whole.
func (c *Client) Status(ctx context.Context) (HostStatus, error) {
	var status HostStatus
	err := c.ask(ctx, VerbHost, HostRequest{}, &status)
	return status, err
}

// PauseHost stops the start of attempts until ResumeHost.
func (c *Client) PauseHost(ctx context.Context, reason string) (PausedHost, error) {
	var paused PausedHost
	err := c.ask(ctx, VerbPauseHost, PauseHostRequest{reason}, &paused)
	return paused, err
}

// ResumeHost lets attempts start again, and gives the pause that has ended, nil when there
// was none.
func (c *Client) ResumeHost(ctx context.Context) (*run.Pause, error) {
	var resumed ResumedHost
	err := c.ask(ctx, VerbResumeHost, HostRequest{}, &resumed)
	return resumed.Ended, err
}

// Drain asks the host to shut down gracefully. It gives the state of the host that does.
func (c *Client) Drain(ctx context.Context) (HostStatus, error) {
	var status HostStatus
	err := c.ask(ctx, VerbDrain, HostRequest{}, &status)
	return status, err
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
