package wasm

import "testing"

func TestNamesOfFunctions(t *testing.T) {
	t.Parallel()
	names := func(content string) Names {
		m, err := Decode(module(custom("name", content), custom("name", "\x01\x01\x00")), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Names
	}
	good := names("\x00\x02\x01m" + "\x01\x0b\x02\x00\x03run\x05\x03sum" + "\x02\x01\x00")
	for index, want := range map[int]string{0: "run", 5: "sum", 1: "", -1: ""} {
		if got := good.Function(index); got != want {
			t.Errorf("function %d is %q, want %q", index, got, want)
		}
	}
	for _, content := range []string{"", "\x01", "\x01\x05", "\x01\x05\xff\xff\xff\xff\x0f", "\x01\x05\x01\x00\xff\x01a", "\x01\x04\x01\x00\x01\xff", "\x07\xff\xff\xff\xff\x0f"} {
		if got := names(content).Function(0); got != "" {
			t.Errorf("%q has the name %q", content, got)
		}
	}
	if got := (Names{}).Function(0); got != "" {
		t.Errorf("no section has the name %q", got)
	}
}
