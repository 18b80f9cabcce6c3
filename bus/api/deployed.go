package api

import (
	"time"
)

// Deployment is what a host has deployed, to be compared with flow files.
type Deployment struct {
	Since time.Time      `json:"since"`           // when these flows were loaded
	Fault *LoadFault     `json:"fault,omitempty"` // why the files were not loaded since; nil when nothing was wrong
	Flows []DeployedFlow `json:"flows"`           // in the order of their names
}

// LoadFault is the reason why changed files were not loaded.
type LoadFault struct {
	At       time.Time `json:"at"`
	Problems []string  `json:"problems"` // "flows/orders.hcl:14: …"
}

// DeployedFlow identifies a flow among others of the same name.
type DeployedFlow struct {
	Flow       string            `json:"flow"`              // full name
	Definition string            `json:"definition"`        // digest of its module, as runs record it
	Blocks     map[string]string `json:"blocks"`            // digests of its parts: "task load", "variable region"
	Modules    map[string]string `json:"modules,omitempty"` // digests by source
	Rights     []Right           `json:"rights,omitempty"`  // that grants give to its tasks

	// Connections are those that its tasks are granted, by name, each in words and
	// without credentials: "http https://api.example.com".
	Connections map[string]string `json:"connections,omitempty"`
}

// Right is something that a task may do beside computing.
type Right struct {
	Task  string `json:"task"`
	Right string `json:"right"` // a verb: "read", "write", "request", "publish to"; followed by "with connection.NAME" for one by way of it
	To    string `json:"to"`    // its object: a directory below that of the flow file, "./data", a rule, a subject
}

// DeployedRequest asks for what is deployed.
type DeployedRequest struct {
	After string `json:"after"` // cursor: only flows whose names come later
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (*DeployedRequest) Check() error { return nil }

// DeployedPage is the answer to deployed.
type DeployedPage struct {
	Deployment
	Next string `json:"next,omitempty"` // cursor of what did not fit
}
