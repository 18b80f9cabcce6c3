package dag

import "testing"

// Each id must be shown as it is. The expected texts were laid out by Graphviz and
// read by Mermaid's parser.
func TestDrawings(t *testing.T) {
	t.Parallel()
	tests := []struct{ id, dot, mermaid string }{
		{"fetch", `"fetch"`, `fetch`},
		{"end", `"end"`, `end`},
		{"", `""`, `#32;`},
		{" \t", "\" \t\"", `#32;`},
		{`say "hi"`, `"say \"hi\"" [label="say \"hi\""]`, `say #34;hi#34;`},
		{"two\nlines", `"two\nlines" [label="two\nlines"]`, `two<br/>lines`},
		{`not\ntwo`, `"not\\ntwo" [label="not\\ntwo"]`, `not#92;ntwo`},
		{`\N`, `"\\N" [label="\\N"]`, `#92;N`},
		{`ends in \`, `"ends in \\" [label="ends in \\"]`, `ends in #92;`},
		{"grün 日本 🎉", `"grün 日本 🎉"`, `grün 日本 #127881;`},
		{"a & b", `"a & b" [label="a &amp; b"]`, `a #38; b`},
		{"<b>#quot;</b>", `"<b>#quot;</b>"`, `#60;b#62;#35;quot#59;#60;/b#62;`},
		{"`*a*`", "\"`*a*`\"", `#96;#42;a#42;#96;`},
		{"%%{init: {}}%%", `"%%{init: {}}%%"`, `#37;#37;#123;init#58; #123;#125;#125;#37;#37;`},
		{`style:"x"`, `"style:\"x\"" [label="style:\"x\""]`, `style#58;#34;x#34;`},
		{"]; a --> b", `"]; a --> b"`, `#93;#59; a --#62; b`},
		{"nul\x00", `"nul\0" [label="nul�"]`, `nul�`},
		{"cr\r", `"cr\r" [label="cr"]`, `cr `},
		{"not UTF-8 \xff", `"not UTF-8 \xff" [label="not UTF-8 �"]`, `not UTF-8 #65533;`},
	}
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			t.Parallel()
			b := New()
			if err := b.Add(tt.id); err != nil {
				t.Fatal(err)
			}
			g, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			if got, want := g.DOT(), "digraph {\n  "+tt.dot+";\n}\n"; got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if got, want := g.Mermaid(), "flowchart TD\n  n0[\""+tt.mermaid+"\"]\n"; got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func TestDrawingEdges(t *testing.T) {
	t.Parallel()
	g := graph(t, "join left right split", "split>left split>right right>join left>join")
	const dot = `digraph {
  "join";
  "left";
  "right";
  "split";
  "left" -> "join";
  "right" -> "join";
  "split" -> "left";
  "split" -> "right";
}
`
	if got := g.DOT(); got != dot {
		t.Error(got)
	}
	const mermaid = `flowchart TD
  n0["join"]
  n1["left"]
  n2["right"]
  n3["split"]
  n1 --> n0
  n2 --> n0
  n3 --> n1
  n3 --> n2
`
	if got := g.Mermaid(); got != mermaid {
		t.Error(got)
	}
}
