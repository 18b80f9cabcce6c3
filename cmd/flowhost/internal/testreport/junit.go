package testreport

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/internal/flowtest"
)

// The form is what JUnit's reports have in common, as CI systems read it: a suite
// for each file, a case for each test. https://github.com/testmoapp/junitxml
// describes it.
type (
	junitReport struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"` // none: what cannot be run ends the command before
		Time     seconds      `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		File     string      `xml:"file,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     seconds     `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		Classname string        `xml:"classname,attr"` // the flow
		File      string        `xml:"file,attr"`
		Line      int           `xml:"line,attr"`
		Time      seconds       `xml:"time,attr"`
		Failure   *junitFailure `xml:"failure"` // one for all that is wrong: not all readers take more
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"` // with the lines of the file
	}
)

// seconds is a length of time as reports have it.
type seconds time.Duration

// MarshalXMLAttr is part of xml.MarshalerAttr.
func (s seconds) MarshalXMLAttr(name xml.Name) (xml.Attr, error) {
	return xml.Attr{Name: name, Value: fmt.Sprintf("%.6f", time.Duration(s).Seconds())}, nil
}

// JUnit returns the results of tests in JUnit format.
func JUnit(results []*flowtest.Result, files map[string]*hcl.File) []byte {
	report := junitReport{Name: "flowhost"}
	for _, r := range results {
		if n := len(report.Suites); n == 0 || report.Suites[n-1].File != r.Test.Range.Filename {
			report.Suites = append(report.Suites, junitSuite{Name: r.Test.Range.Filename, File: r.Test.Range.Filename})
		}
		suite := &report.Suites[len(report.Suites)-1]
		suite.Cases = append(suite.Cases, junitTest(r, files))
		report.Tests, suite.Tests = report.Tests+1, suite.Tests+1
		report.Time, suite.Time = report.Time+seconds(r.Real), suite.Time+seconds(r.Real)
		if !r.Passed() {
			report.Failures, suite.Failures = report.Failures+1, suite.Failures+1
		}
	}
	encoded, _ := xml.MarshalIndent(report, "", "  ") // the types above hold nothing that could fail
	return append([]byte(xml.Header), append(encoded, '\n')...)
}

func junitTest(r *flowtest.Result, files map[string]*hcl.File) junitCase {
	c := junitCase{
		Name: r.Test.Name, Classname: r.Test.Flow.Name, File: r.Test.Range.Filename, Line: r.Test.Range.Start.Line, Time: seconds(r.Real),
	}
	if !r.Passed() {
		first := r.Problems[0]
		var text bytes.Buffer
		hcl.NewDiagnosticTextWriter(&text, files, render.DefaultWidth, false).WriteDiagnostics(r.Problems) // a buffer takes all
		c.Failure = &junitFailure{Message: first.Summary + ": " + first.Detail, Type: first.Summary, Text: text.String()}
	}
	return c
}
