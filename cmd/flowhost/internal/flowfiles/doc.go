// Package flowfiles loads flow files the way commands do: with variables from flags
// and the environment, with problems shown on stderr, and with one flow selected by
// its name. It also parses --param.
package flowfiles
