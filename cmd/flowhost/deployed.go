package main

import (
	"maps"
	"slices"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/flows"
)

// deployedFlows describes the flows of a set so that they can be compared.
func deployedFlows(set *flows.Set) []bus.DeployedFlow {
	all, blocks := make([]bus.DeployedFlow, len(set.Flows)), set.Blocks()
	for i, f := range set.Flows {
		all[i] = deployedFlow(f, blocks[f.Name])
	}
	return all
}

func deployedFlow(f *flows.Flow, blocks map[string]string) bus.DeployedFlow {
	d := bus.DeployedFlow{Flow: f.Name, Definition: f.DefinitionDigest, Blocks: blocks, Modules: map[string]string{}}
	for _, t := range f.AllTasks() {
		if t.Child == nil && t.Wait == nil {
			d.Modules[t.Plugin.Source] = t.Plugin.Digest
		}
		for _, g := range t.Grants.Files {
			right := bus.Right{Task: t.Name, Right: rightRead, To: "./" + g.Path}
			d.Rights = append(d.Rights, right)
			if g.Write {
				right.Right = rightWrite
				d.Rights = append(d.Rights, right)
			}
		}
	}
	return d
}

// Words for what a grant lets a task do to a folder.
const (
	rightRead  = "read"
	rightWrite = "write"
)

// changedFlows names the flows in which two deployments differ. A flow that merely
// stands in a folder with another one that has changed does not differ.
func changedFlows(before, after []bus.DeployedFlow) (added, changed, removed []string) {
	old := map[string]bus.DeployedFlow{}
	for _, f := range before {
		old[f.Flow] = f
	}
	for _, f := range after {
		was, known := old[f.Flow]
		delete(old, f.Flow)
		switch {
		case !known:
			added = append(added, f.Flow)
		case !maps.Equal(was.Blocks, f.Blocks) || !maps.Equal(was.Modules, f.Modules):
			changed = append(changed, f.Flow)
		}
	}
	return added, changed, slices.Sorted(maps.Keys(old))
}
