package testreport

import (
	"encoding/json"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/flowtest"
	"github.com/flowhost/flowhost/run"
)

// The JSON form of test results. It is stable: fields are added to it, and none
// changes what it means.
type (
	Report struct {
		Passed int        `json:"passed"`
		Failed int        `json:"failed"`
		Tests  []testJSON `json:"tests"`
	}
	testJSON struct {
		Name       string          `json:"name"`
		File       string          `json:"file"`
		Line       int             `json:"line"`
		Flow       string          `json:"flow"`
		State      string          `json:"state"` // passed, failed
		DurationMS float64         `json:"duration_ms"`
		VirtualMS  float64         `json:"virtual_ms"`
		Problems   json.RawMessage `json:"problems"` // in the form of validate --json
		Runs       []*run.Record   `json:"runs"`
	}
)

// JSON returns the results of tests in JSON form.
func JSON(results []*flowtest.Result, files map[string]*hcl.File, failed int) Report {
	report := Report{Passed: len(results) - failed, Failed: failed, Tests: []testJSON{}}
	for _, r := range results {
		t := testJSON{
			Name: r.Test.Name, File: r.Test.Range.Filename, Line: r.Test.Range.Start.Line, Flow: r.Test.Flow.Name,
			State: "passed", DurationMS: render.MS(r.Real), VirtualMS: render.MS(r.Virtual),
			Problems: flows.DiagnosticsJSON(r.Problems, files), Runs: r.Runs,
		}
		if !r.Passed() {
			t.State = "failed"
		}
		if t.Runs == nil {
			t.Runs = []*run.Record{}
		}
		report.Tests = append(report.Tests, t)
	}
	return report
}
