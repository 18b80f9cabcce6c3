package plan

import (
	"maps"
	"slices"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run/access"
)

// DeployedFlows describes the flows of a set so that they can be compared.
func DeployedFlows(set *flows.Set) []api.DeployedFlow {
	all, blocks := make([]api.DeployedFlow, len(set.Flows)), set.Blocks()
	for i, f := range set.Flows {
		all[i] = deployedFlow(set, f, blocks[f.Name])
	}
	return all
}

func deployedFlow(set *flows.Set, f *flows.Flow, blocks map[string]string) api.DeployedFlow {
	d := api.DeployedFlow{Flow: f.Name, Definition: f.DefinitionDigest, Blocks: blocks, Modules: map[string]string{}}
	secret := func(name string) *access.Secret { return set.Secret(f.Name, name) }
	for _, t := range f.AllTasks() {
		if t.Child == nil && t.Wait == nil {
			d.Modules[t.Plugin.Source] = t.Plugin.Digest
		}
		r := rights{task: t.Name}
		r.files(t.Grants.Files)
		r.grants(&t.Grants.Grants)
		r.sources(slices.Sorted(maps.Values(t.Grants.Secrets)), secret)
		for _, name := range t.Grants.Connections {
			c := set.Connection(f.Name, name)
			r.through(name, c, secret)
			if d.Connections == nil {
				d.Connections = map[string]string{}
			}
			d.Connections[name] = describe(c)
		}
		d.Rights = append(d.Rights, r.all...)
	}
	return d
}

// ChangedFlows names the flows in which two deployments differ. A flow does not differ
// only because another flow in its directory has changed.
func ChangedFlows(before, after []api.DeployedFlow) (added, changed, removed []string) {
	old := map[string]api.DeployedFlow{}
	for _, f := range before {
		old[f.Flow] = f
	}
	for _, f := range after {
		was, known := old[f.Flow]
		delete(old, f.Flow)
		switch {
		case !known:
			added = append(added, f.Flow)
		case !maps.Equal(was.Blocks, f.Blocks) || !maps.Equal(was.Modules, f.Modules) || !maps.Equal(was.Connections, f.Connections), !slices.Equal(was.Rights, f.Rights):
			changed = append(changed, f.Flow)
		}
	}
	return added, changed, slices.Sorted(maps.Keys(old))
}
