package guest

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/sdk/abi"
)

type point struct {
	X int     `json:"x"`
	Y float64 `json:"y,omitempty"`
}

type node struct {
	Name string  `json:"name"`
	Next *node   `json:"next,omitempty"`
	Kids []*node `json:"kids"`
}

type list []list

type base struct {
	ID    string `json:"id"`
	Shade string
}

type Optional struct {
	Note string `json:"note"`
}

type whole struct {
	base
	*Optional
	Shade bool `json:"-"`
	//lint:ignore SA5008 encoding/json takes this as the name "-"
	Hidden  int `json:"-,"`
	private int
	Count   int64   `json:"count,string"`
	Price   *uint32 `json:"price,string"`
	At      time.Time
	Took    time.Duration `json:"took"`
	Zero    point         `json:"zero,omitzero"`
}

var _ = whole{}.private // it is there to be left out

type twice struct {
	A, B point
}

type left struct{ Same, Left int }
type right struct{ Same, Right int }
type ambiguous struct {
	left
	right
}

type odd int

func (odd) MarshalJSON() ([]byte, error) { return []byte(`"odd"`), nil }

type pointed struct{ V int }

func (*pointed) MarshalText() ([]byte, error) { return []byte("text"), nil }

func TestSchemas(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		typ  reflect.Type
		want string
	}{
		"bool":      {reflect.TypeFor[bool](), `{"type":"boolean"}`},
		"int":       {reflect.TypeFor[uint8](), `{"type":"integer"}`},
		"float":     {reflect.TypeFor[float32](), `{"type":"number"}`},
		"string":    {reflect.TypeFor[string](), `{"type":"string"}`},
		"bytes":     {reflect.TypeFor[[]byte](), `{"contentEncoding":"base64","type":["string","null"]}`},
		"array":     {reflect.TypeFor[[2]byte](), `{"items":{"type":"integer"},"type":"array"}`},
		"slice":     {reflect.TypeFor[[]string](), `{"items":{"type":"string"},"type":["array","null"]}`},
		"map":       {reflect.TypeFor[map[int]bool](), `{"additionalProperties":{"type":"boolean"},"type":["object","null"]}`},
		"pointer":   {reflect.TypeFor[**int](), `{"type":["integer","null"]}`},
		"any":       {reflect.TypeFor[any](), `{}`},
		"raw":       {reflect.TypeFor[json.RawMessage](), `{}`},
		"number":    {reflect.TypeFor[json.Number](), `{}`},
		"function":  {reflect.TypeFor[func()](), `{}`},
		"marshaler": {reflect.TypeFor[odd](), `{}`},
		"pointed":   {reflect.TypeFor[pointed](), `{}`},
		"odds":      {reflect.TypeFor[*odd](), `{}`},
		"text":      {reflect.TypeFor[netip.Addr](), `{"type":"string"}`},
		"texts":     {reflect.TypeFor[*netip.Addr](), `{"type":["string","null"]}`},
		"time":      {reflect.TypeFor[*time.Time](), `{"format":"date-time","type":["string","null"]}`},
		"nothing":   {reflect.TypeFor[struct{}](), `{"additionalProperties":false,"type":"object"}`},
		"struct":    {reflect.TypeFor[point](), `{"additionalProperties":false,"properties":{"x":{"type":"integer"},"y":{"type":"number"}},"required":["x"],"type":"object"}`},
		"recursive": {reflect.TypeFor[node](), `{"$defs":{"node":{"additionalProperties":false,"properties":{` +
			`"kids":{"items":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]},"type":["array","null"]},"name":{"type":"string"},` +
			`"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["kids","name"],"type":"object"}},"$ref":"#/$defs/node"}`},
		"list": {reflect.TypeFor[list](), `{"$defs":{"list":{"items":{"$ref":"#/$defs/list"},"type":["array","null"]}},"$ref":"#/$defs/list"}`},
		"twice": {reflect.TypeFor[twice](), `{"$defs":{"point":{"additionalProperties":false,"properties":{"x":{"type":"integer"},"y":{"type":"number"}},"required":["x"],"type":"object"}},` +
			`"additionalProperties":false,"properties":{"A":{"$ref":"#/$defs/point"},"B":{"$ref":"#/$defs/point"}},"required":["A","B"],"type":"object"}`},
		"embedded": {reflect.TypeFor[whole](), `{"additionalProperties":false,"properties":{"-":{"type":"integer"},"At":{"format":"date-time","type":"string"},"Shade":{"type":"string"},` +
			`"count":{"type":"string"},"id":{"type":"string"},"note":{"type":"string"},"price":{"type":["string","null"]},"took":{"type":"integer"},` +
			`"zero":{"additionalProperties":false,"properties":{"x":{"type":"integer"},"y":{"type":"number"}},"required":["x"],"type":"object"}},` +
			`"required":["-","At","Shade","count","id","price","took"],"type":"object"}`},
		"ambiguous": {reflect.TypeFor[ambiguous](), `{"additionalProperties":false,"properties":{"Left":{"type":"integer"},"Right":{"type":"integer"}},"required":["Left","Right"],"type":"object"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := string(schemaOf(test.typ, given)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestSchemasNameWhatIsEncoded holds the fields of structs against encoding/json's.
func TestSchemasNameWhatIsEncoded(t *testing.T) {
	t.Parallel()
	for _, v := range []any{whole{Optional: &Optional{}, Zero: point{X: 1}}, twice{}, ambiguous{}, node{Next: &node{}}, struct {
		whole
		ID int `json:"id"`
		*node
	}{node: &node{}, whole: whole{Optional: &Optional{}, Zero: point{X: 1}}}} {
		encoded, err := Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(encoded, &object); err != nil {
			t.Fatal(err)
		}
		known := map[string]bool{}
		for _, f := range fieldsOf(reflect.TypeOf(v)) {
			known[f.name] = true
			if _, there := object[f.name]; !there && !f.optional {
				t.Errorf("%T: %s is not in %s", v, f.name, encoded)
			}
		}
		for name := range object {
			if !known[name] {
				t.Errorf("%T: %s is not known", v, name)
			}
		}
	}
}

func TestSchemasOfWhatIsTaken(t *testing.T) {
	t.Parallel()
	type input struct {
		Must odd    `json:"must"`
		May  *int   `json:"may"`
		Can  string `json:"can,omitempty"`
	}
	tests := map[direction]string{
		taken:  `{"additionalProperties":false,"properties":{"can":{"type":"string"},"may":{"type":["integer","null"]},"must":{"type":"integer"}},"required":["must"],"type":"object","x-any-case":true}`,
		given:  `{"additionalProperties":false,"properties":{"can":{"type":"string"},"may":{"type":["integer","null"]},"must":{}},"required":["may","must"],"type":"object"}`,
		preset: `{"additionalProperties":false,"properties":{"can":{"type":"string"},"may":{"type":["integer","null"]},"must":{"type":"integer"}},"type":"object","x-any-case":true}`,
	}
	for way, want := range tests {
		if got := string(schemaOf(reflect.TypeFor[input](), way)); got != want {
			t.Errorf("%d: got  %s\nwant %s", way, got, want)
		}
	}
}

func TestManifestWithoutSchemasThatAreTooLong(t *testing.T) {
	t.Parallel()
	var fields []reflect.StructField
	for _, letter := range "ABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		fields = append(fields, reflect.StructField{Name: strings.Repeat(string(letter), 4<<10), Type: reflect.TypeFor[int]()})
	}
	var p Plugin
	for _, name := range []string{"small", "large"} {
		p.Add(name, func(*Call) ([]byte, error) { return nil, nil })
	}
	p.SetTypes("small", reflect.TypeFor[int](), reflect.TypeFor[int]())
	if m := p.Manifest(); m.Functions[0].Input == nil {
		t.Error("no schemas")
	}
	p.SetTypes("large", reflect.StructOf(fields), reflect.TypeFor[int]())
	m := p.Manifest()
	if text, err := Encode(m); err != nil || len(text) > abi.MaxManifest || len(m.Functions) != 2 || m.Functions[0].Input != nil {
		t.Errorf("%d bytes, %v, %d functions", len(text), err, len(m.Functions))
	}
}
