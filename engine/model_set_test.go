package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/flows"
)

// setPlan is a version of the flows, all of which call one module.
type setPlan struct {
	module string
	flows  []*flowPlan
	limits map[string]int
	set    *flows.Set
}

// randomSet is flows that can be loaded: references that give a cycle are taken
// away.
func randomSet(t *testing.T, rng *rand.Rand, module string) *setPlan {
	t.Helper()
	p := &setPlan{module: module, flows: []*flowPlan{randomFlow(rng, "f", module, 2+rng.IntN(11))}}
	for _, name := range []string{"g", "h"}[:rng.IntN(3)] {
		p.flows = append(p.flows, randomSubflow(rng, name, module))
	}
	for i, f := range p.flows {
		f.callSome(rng, p.flows[i+1:])
	}
	p.limitSome(rng)
	for {
		set, diags := tryLoad(t, p.hcl())
		if !diags.HasErrors() {
			p.set = set
			return p
		}
		for _, d := range diags {
			if rule := flows.RuleOf(d); rule != flows.RuleCycle && rule != flows.RuleSelfReference {
				t.Fatalf("%v\n%s", d, p.hcl())
			}
			for _, f := range p.flows {
				for _, part := range allParts {
					f.part(part).cut(rng, d.Detail)
				}
			}
		}
	}
}

func (p *setPlan) hcl() string {
	var b strings.Builder
	for _, name := range sortedKeys(p.limits) {
		fmt.Fprintf(&b, "limit %q {\n  concurrency = %d\n}\n", name, p.limits[name])
	}
	for _, f := range p.flows {
		b.WriteString(f.hcl())
	}
	return b.String()
}

func (p *setPlan) digest() string { return "sha256:" + p.module }

// flow is the plan of a flow, never nil.
func (p *setPlan) flow(name string) *flowPlan {
	for _, f := range p.flows {
		if f.name == name {
			return f
		}
	}
	return &flowPlan{}
}
