// Package graph draws the graphs of flows as text, Mermaid, DOT and JSON.
package graph
