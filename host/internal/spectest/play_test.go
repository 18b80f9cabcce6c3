package spectest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// verdict is how one command ended. Rewritten modules have the same ones.
type verdict struct {
	passed bool
	ending string // results bit by bit, or a kind of trap or fault; never a text that names positions
}

// player runs the commands of one script.
type player struct {
	*script
	*stage
	named  map[string]api.Module
	latest api.Module
}

// play gives the verdict of each command of a script.
func play(ctx context.Context, s *script, on *stage) []verdict {
	p := &player{script: s, stage: on, named: map[string]api.Module{}}
	verdicts := make([]verdict, len(s.Commands))
	for i := range s.Commands {
		verdicts[i] = p.command(ctx, &s.Commands[i])
	}
	return verdicts
}

func (p *player) command(ctx context.Context, c *command) verdict {
	if c.isText() {
		return verdict{passed: true, ending: "text"}
	}
	switch c.Type {
	case "module":
		return p.module(ctx, c)
	case "register":
		return p.register(c)
	case "action", "assert_return":
		return p.returns(ctx, c)
	case "assert_trap", "assert_exhaustion":
		_, err := p.act(ctx, c)
		return fails(err, trapOf(c.Text))
	case "assert_malformed", "assert_invalid":
		return p.builds(ctx, c, "refused")
	case "assert_unlinkable":
		return p.builds(ctx, c, "unlinkable")
	case "assert_uninstantiable":
		return p.builds(ctx, c, trapOf(c.Text))
	}
	return verdict{ending: "an unknown command: " + c.Type}
}

func (p *player) module(ctx context.Context, c *command) verdict {
	p.latest = nil
	binary, err := p.binary(c)
	if err == nil {
		p.latest, err = p.instantiate(ctx, binary)
	}
	if err != nil {
		return verdict{ending: fmt.Sprintf("no instance: %v", err)}
	}
	if c.Name != "" {
		p.named[c.Name] = p.latest
	}
	return verdict{passed: true, ending: "instance"}
}

// builds makes an instance, which must fail in a certain way.
func (p *player) builds(ctx context.Context, c *command, how string) verdict {
	binary, err := p.binary(c)
	if err != nil {
		return verdict{ending: err.Error()}
	}
	_, err = p.instantiate(ctx, binary)
	return fails(err, how)
}

func (p *player) register(c *command) verdict {
	guest := p.guest(c.Name)
	if guest == nil {
		return verdict{ending: "no instance"}
	}
	p.registered[c.As] = guest
	return verdict{passed: true, ending: "registered"}
}

// guest is the instance of that name in the script, the latest one for "". It is
// nil when there is none.
func (p *player) guest(name string) api.Module {
	if name == "" {
		return p.latest
	}
	return p.named[name]
}

// returns acts and compares what comes back.
func (p *player) returns(ctx context.Context, c *command) verdict {
	results, err := p.act(ctx, c)
	if err != nil {
		return verdict{ending: ending(err)}
	}
	v := verdict{passed: true}
	for _, expected := range c.Expected {
		n := expected.words()
		if len(results) < n {
			return verdict{ending: "too few results"}
		}
		v.passed = v.passed && expected.matches(results[:n])
		v.ending += show(expected, results[:n])
		results = results[n:]
	}
	if len(results) > 0 {
		return verdict{ending: "too many results"}
	}
	return v
}

// show writes down a result. References to functions are addresses.
func show(expected value, words []uint64) string {
	if expected.Type == "funcref" {
		return fmt.Sprintf("funcref null:%t ", words[0] == 0)
	}
	words = slices.Clone(words)
	if len(words) == 1 {
		words[0] = lane(words, 0, expected.width())
	}
	return fmt.Sprintf("%s %x ", expected.Type, words)
}

// act does the action of a command.
func (p *player) act(ctx context.Context, c *command) ([]uint64, error) {
	guest := p.guest(c.Action.Module)
	if guest == nil {
		return nil, errors.New("no instance")
	}
	if c.Action.Type == "get" {
		global := guest.ExportedGlobal(c.Action.Field)
		if global == nil {
			return nil, errors.New("no such global")
		}
		return []uint64{global.Get()}, nil
	}
	var arguments []uint64
	for _, a := range c.Action.Args {
		var err error
		if arguments, err = a.encode(arguments); err != nil {
			return nil, err
		}
	}
	return p.call(ctx, guest, c.Action.Field, arguments)
}

// fails is the verdict of what must fail in a certain way.
func fails(err error, how string) verdict {
	if err == nil {
		return verdict{ending: "no failure"}
	}
	got := ending(err)
	return verdict{passed: got == how, ending: got}
}

const exhausted = "exhausted"

// traps is the kinds of traps as wazero names them.
var traps = []string{
	"integer overflow", "integer divide by zero", "invalid conversion to integer", "unreachable",
	"out of bounds memory access", "invalid table access", "indirect call type mismatch",
}

// ending is the kind of a failure.
func ending(err error) string {
	reason, _, _ := strings.Cut(err.Error(), "\n")
	if errors.Is(err, errRefused) {
		return "refused"
	}
	if errors.Is(err, errTooDeep) || strings.HasSuffix(reason, "stack overflow") {
		return exhausted
	}
	for _, trap := range traps {
		if strings.HasSuffix(reason, trap) {
			return trap
		}
	}
	if errors.Is(err, errUnlinked) {
		return "unlinkable"
	}
	return "failure: " + reason
}

// trapOf is what wazero calls the trap that the suite calls so.
func trapOf(text string) string {
	switch {
	case text == "call stack exhausted":
		return exhausted
	case text == "undefined element", text == "out of bounds table access", strings.HasPrefix(text, "uninitialized element"):
		return "invalid table access"
	}
	return text
}
