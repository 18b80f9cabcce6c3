package serve

import (
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// flowInfos describes the flows of a set to clients.
func flowInfos(set *flows.Set) []api.FlowInfo {
	infos := make([]api.FlowInfo, len(set.Flows))
	for i, f := range set.Flows {
		infos[i] = api.FlowInfo{Flow: f.Name, Description: f.Description}
		for _, p := range f.Params {
			infos[i].Params = append(infos[i].Params, paramInfo(p))
		}
		for _, t := range f.Triggers {
			infos[i].Triggers = append(infos[i].Triggers, triggerInfo(t))
		}
	}
	return infos
}

func paramInfo(p *flows.Param) api.ParamInfo {
	info := api.ParamInfo{
		Name: p.Name, Description: p.Description, Type: p.TypeText(), Required: p.Required, Sensitive: p.Sensitive,
	}
	if !p.Sensitive {
		info.Default = p.Default
	}
	return info
}

func triggerInfo(t *flows.Trigger) api.TriggerInfo {
	info := api.TriggerInfo{Kind: t.Kind, Name: t.Name, Enabled: t.Enabled, Subject: t.Subject, Stream: t.Stream, Payload: t.Payload, After: t.After, On: t.On}
	if t.Kind != run.TriggerSchedule {
		return info
	}
	info.Schedule, info.Timezone = t.Expression(), t.Zone
	return info
}
