package wasm

import (
	"bytes"
	"encoding/json"
	"errors"
)

// RewriteVersion is raised with each change of what Decode accepts or Rewrite writes, so
// that no host uses what an older version has stored. TestRewriteVersion notices most of
// these changes.
const RewriteVersion = 5

// Prepared is a rewritten module and what its host needs to know of the original.
type Prepared struct {
	Size    int    // bytes of the original
	Figures Limits // as in Module
	Custom  []byte `json:"-"` // as in Module
	Names   Names  `json:"-"`

	Interface Interface

	Rewritten
}

// Prepare rewrites a module.
func (m *Module) Prepare(options RewriteOptions) *Prepared {
	return &Prepared{
		Size: len(m.binary), Interface: m.Interface, Figures: m.Figures, Custom: m.Custom, Names: m.Names,
		Rewritten: *m.Rewrite(options),
	}
}

// preparedHead is the first line, in JSON, of a stored Prepared. The custom section, the
// names, the data and the rewritten module follow.
type preparedHead struct {
	Module    *Prepared
	HasCustom bool
	CustomLen int
	NamesLen  int
	DataLen   int
}

// AppendBinary appends the stored form, which [UnmarshalPrepared] reads.
func (p *Prepared) AppendBinary(out []byte) ([]byte, error) {
	head, err := json.Marshal(preparedHead{p, p.Custom != nil, len(p.Custom), len(p.Names.section), len(p.Data)})
	if err != nil {
		return nil, err
	}
	out = append(append(out, head...), '\n')
	out = append(append(append(out, p.Custom...), p.Names.section...), p.Data...)
	return append(out, p.Binary...), nil
}

var errPrepared = errors.New("not the stored form of a prepared module")

// UnmarshalPrepared reads the stored form. Only Binary refers to it afterwards. The caller
// makes sure that nobody has changed it: what it says is not checked.
func UnmarshalPrepared(stored []byte) (*Prepared, error) {
	line, rest, found := bytes.Cut(stored, []byte("\n"))
	var head preparedHead
	if !found || json.Unmarshal(line, &head) != nil || head.Module == nil {
		return nil, errPrepared
	}
	var parts [3][]byte
	for i, size := range [...]int{head.CustomLen, head.NamesLen, head.DataLen} {
		if size < 0 || size > len(rest) {
			return nil, errPrepared
		}
		parts[i], rest = rest[:size], rest[size:]
	}
	p := head.Module
	if head.HasCustom {
		p.Custom = append([]byte{}, parts[0]...)
	}
	p.Names.section = bytes.Clone(parts[1])
	p.Data = append(Data(nil), parts[2]...)
	p.Binary = rest
	return p, nil
}
