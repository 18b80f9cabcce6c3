package flows

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/reachspec"
	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run/access"
)

// grants reads what a grant block has beside directories.
func (d reachDecoder) grants() access.Grants {
	g := access.Grants{
		Connections: d.connections(), HTTP: d.httpGrant(), KV: d.modes("kv", reachspec.Bucket),
		Publish: d.list("publish", as(reachspec.Subject)), Request: d.list("request", as(reachspec.Subject)),
		Secrets: d.handedOut(), Env: d.environment(), Clock: d.real("clock"), Random: d.real("random"),
	}
	g.Artifacts, _ = d.flag(d.content.Arg("artifacts"))
	return g
}

// connections reads a list of references, and gives their names, sorted.
func (d reachDecoder) connections() []string {
	a := d.content.Arg("connections")
	if a == nil {
		return nil
	}
	items, diags := hcl.ExprList(a.Expr)
	if diags.HasErrors() {
		d.diags.Add(RuleType, a.Expr.Range(), "A list of connections is required", "Write connections = [connection.NAME], with all that are granted.")
		return nil
	}
	var names []string
	for _, item := range items {
		name, ok := d.connectionIn(item)
		switch {
		case !ok:
		case slices.Contains(names, name):
			d.diags.Add(RuleDuplicate, item.Range(), "Duplicate connection", "connection.%s is granted already. Leave the reference out.", name)
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// connectionIn is the name of a connection that is referred to; ok is false when that has been
// reported as wrong.
func (d reachDecoder) connectionIn(e hcl.Expression) (name string, ok bool) {
	t, refers := syntax.Reference(e)
	name, at, ok := syntax.Step(t, 1)
	if !refers || len(t) != 2 || t.RootName() != "connection" || !ok {
		d.diags.Add(RuleReference, e.Range(), "A reference to a connection is required", "Write connection.NAME, with the name of a connection block, without quotes.")
		return "", false
	}
	if d.module.alone {
		d.undeclarable(e, "connection", name)
		return "", false
	}
	b := &binding{exprContext: d.exprContext, x: new(expression)}
	if !b.declares(rootWord("connection"), name) && d.module.restored == nil {
		b.unknownName(rootWord("connection"), name, at)
		return "", false
	}
	return name, true
}

// handedOut reads the secrets that the guest gets, by its own names for them.
func (d reachDecoder) handedOut() map[string]string {
	a := d.content.Arg("secrets")
	if a == nil {
		return nil
	}
	pairs, diags := hcl.ExprMap(a.Expr)
	if diags.HasErrors() {
		d.diags.Add(RuleType, a.Expr.Range(), "A map of secrets is required", "Write secrets = { NAME = secret.NAME }, with the guest's name for each secret.")
		return nil
	}
	out := map[string]string{}
	for _, p := range pairs {
		name, ok := d.key(p.Key)
		if !ok || !d.fits(a, p.Key.Range(), name, reachspec.Variable) {
			continue
		}
		if _, twice := out[name]; twice {
			d.diags.Add(RuleDuplicate, p.Key.Range(), "Duplicate secret", "%q is there already. Leave one of the two out.", name)
			continue
		}
		secret, ok := d.secretIn(p.Value)
		if !ok {
			d.diags.Add(RuleReference, p.Value.Range(), "A reference to a secret is required", "Write %s = secret.NAME, with the name of a secret block, alone.", name)
			continue
		}
		out[name] = secret
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// maxVariable is the size of an environment variable of a guest.
const maxVariable = 32 << 10

// environment reads the environment variables of the guest.
func (d reachDecoder) environment() map[string]string {
	a := d.content.Arg("env")
	v, ok := d.value(a, cty.Map(cty.String))
	if !ok || v.LengthInt() == 0 {
		return nil
	}
	places, values, out := d.keyPlaces(a, "variable"), v.AsValueMap(), map[string]string{}
	for _, name := range keys(values) {
		at := placeOf(places, name, a)
		text, known := plainText(values[name])
		switch {
		case !d.fits(a, at, name, reachspec.Variable):
		case !known:
			d.diags.Add(RuleValue, at, "Value not allowed", "The variable %q is null: leave it out, or give it a string.", name)
		case len(text) > maxVariable || slices.Contains([]byte(text), 0):
			d.diags.Add(RuleValue, at, "Value not allowed", "The variable %q must be at most %s long, without zero bytes: pass larger values in input.", name, FormatSize(maxVariable))
		default:
			out[name] = text
		}
	}
	return out
}
