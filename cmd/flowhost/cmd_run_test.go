package main

import (
	"testing"
)

func TestOverride(t *testing.T) {
	t.Parallel()
	value := "file"
	override(&value, "")
	if value != "file" {
		t.Errorf("a flag that was not given makes %q", value)
	}
	override(&value, "flag")
	if value != "flag" {
		t.Errorf("the flag loses against %q", value)
	}
}
