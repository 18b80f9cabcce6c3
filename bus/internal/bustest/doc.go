// Package bustest has what tests of several packages of bus share: servers, journals and
// histories at work, an engine that takes requests, and collected logs.
package bustest
