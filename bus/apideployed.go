package bus

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Deployment is what a host has deployed, to be compared with flow files.
type Deployment struct {
	Since time.Time      `json:"since"`           // when these flows were loaded
	Fault *LoadFault     `json:"fault,omitempty"` // why the files were not loaded since; nil when nothing was wrong
	Flows []DeployedFlow `json:"flows"`           // in the order of their names
}

// LoadFault says why changed files were not loaded.
type LoadFault struct {
	At       time.Time `json:"at"`
	Problems []string  `json:"problems"` // "flows/orders.hcl:14: …"
}

// DeployedFlow tells a flow apart from another one of its name.
type DeployedFlow struct {
	Flow       string            `json:"flow"`              // full name
	Definition string            `json:"definition"`        // digest of its module, as runs record it
	Blocks     map[string]string `json:"blocks"`            // digests of its parts: "task load", "variable region"
	Modules    map[string]string `json:"modules,omitempty"` // digests by source
	Rights     []Right           `json:"rights,omitempty"`  // that grants give to its tasks
}

// Right is something that a task may do beside computing.
type Right struct {
	Task  string `json:"task"`
	Right string `json:"right"` // "read" or "write"
	To    string `json:"to"`    // a folder below that of the flow file, "./data"
}

type deployedBody struct {
	After string `json:"after"` // cursor: only flows whose names come later
}

func (*deployedBody) check() error { return nil }

// deployedPage is the answer to deployed.
type deployedPage struct {
	Deployment
	Next string `json:"next,omitempty"` // cursor of what did not fit
}

// deployed answers with what is deployed.
func (d *desk) deployed(hard context.Context, m inbound) {
	var body deployedBody
	if !d.understood(m, &body) {
		return
	}
	d.read(hard, m, func(context.Context) answer {
		page := deployedPage{Deployment: d.config.Deployed()}
		all := slices.DeleteFunc(slices.Clone(page.Flows), func(f DeployedFlow) bool { return f.Flow <= body.After })
		slices.SortFunc(all, func(a, b DeployedFlow) int { return strings.Compare(a.Flow, b.Flow) })
		return d.shorten(len(all), func(n int) any {
			page.Flows, page.Next = all[:n], ""
			if n > 0 && n < len(all) {
				page.Next = all[n-1].Flow
			}
			return page
		})
	})
}
