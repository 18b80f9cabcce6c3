package flows

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// fileFunctions are the names of functions that read files.
var fileFunctions = []string{"file", "filebase64", "fileexists", "templatefile"}

// deployFunctions are the functions of expressions that are evaluated while
// loading: all, and those that read files.
func (m *module) deployFunctions() map[string]function.Function {
	all := maps.Clone(m.runFunctions)
	all["file"] = m.fileFunc(cty.String, func(content []byte) (cty.Value, error) {
		if !utf8.Valid(content) {
			return cty.NilVal, errors.New("the file is not UTF-8: use filebase64")
		}
		return cty.StringVal(string(content)), nil
	})
	all["filebase64"] = m.fileFunc(cty.String, func(content []byte) (cty.Value, error) {
		return cty.StringVal(base64.StdEncoding.EncodeToString(content)), nil
	})
	all["fileexists"] = m.fileExistsFunc()
	all["templatefile"] = m.templateFunc(maps.Clone(all))
	return all
}

// readFile reads a file of the module's directory and records it, so that the
// definition can be loaded without the directory.
func (m *module) readFile(name string) ([]byte, error) {
	name = path.Clean(filepath.ToSlash(name))
	if !filepath.IsLocal(name) {
		return nil, errors.New("files outside of the flow file's directory cannot be read")
	}
	if path.Dir(name) == "." && isFlowFile(name) {
		return nil, errors.New("a flow file is not read as data: give the file another ending")
	}
	content, err := m.src.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &missingFile{name}
	case err != nil:
		return nil, errors.New(plainly(err))
	}
	m.def.Files[name] = content
	return content, nil
}

type missingFile struct{ name string }

func (e *missingFile) Error() string {
	return "there is no file " + e.name + "; paths start at the directory of the flow file"
}

func (m *module) fileFunc(result cty.Type, convert func([]byte) (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(result),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			content, err := m.readFile(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return convert(content)
		},
	})
}

func (m *module) fileExistsFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			_, err := m.readFile(args[0].AsString())
			if missing := (*missingFile)(nil); errors.As(err, &missing) {
				return cty.False, nil
			}
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.True, nil
		},
	})
}

// templateFunc renders a template that sees its second argument's values and
// all functions but itself.
func (m *module) templateFunc(functions map[string]function.Function) function.Function {
	render := func(args []cty.Value) (cty.Value, error) {
		name := args[0].AsString()
		content, err := m.readFile(name)
		if err != nil {
			return cty.DynamicVal, function.NewArgError(0, err)
		}
		template, diags := syntax.ParseTemplate(content, name)
		if diags.HasErrors() {
			return cty.DynamicVal, function.NewArgError(0, diags)
		}
		if args[1].IsNull() || !hasFields(args[1].Type()) {
			return cty.DynamicVal, function.NewArgError(1, errNotObject)
		}
		v, diags := m.budget.Eval(budget.Instrument(template), &hcl.EvalContext{Variables: args[1].AsValueMap(), Functions: functions})
		if diags.HasErrors() {
			return cty.DynamicVal, function.NewArgError(1, diags)
		}
		return v, nil
	}
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}, {Name: "vars", Type: cty.DynamicPseudoType}},
		Type: func(args []cty.Value) (cty.Type, error) {
			if !args[0].IsKnown() || !args[1].IsKnown() {
				return cty.DynamicPseudoType, nil
			}
			v, err := render(args)
			return v.Type(), err
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return render(args) },
	})
}
