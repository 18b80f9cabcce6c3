package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/flows"
)

// varPrefix begins the environment variables that give values for variables.
const varPrefix = "FLOWHOST_VAR_"

// flowFlags are the flags with which commands load flow files.
type flowFlags struct {
	vars     []string
	varFiles []string
	config   string // of those that addConfig was called for
}

// addConfig adds the flag for the host's settings, for commands that read nothing
// of them but what they allow flows.
func (f *flowFlags) addConfig(flags *pflag.FlagSet) {
	flags.StringVar(&f.config, "config", "", "settings `FILE` of the host, for what it allows flows at most; default: "+settingsName+" beside the flows")
}

// allowed are the options of loading as the host of these files has them.
func (f *flowFlags) allowed(cmd *cobra.Command, a *app, path string, catalog flows.Catalog) (flows.Options, error) {
	s, err := a.readSettings(f.config, path)
	if err != nil {
		return flows.Options{}, err
	}
	options, err := f.options(cmd, a.environ, catalog)
	options.Ceilings = s.ceilings
	return options, err
}

func (f *flowFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.vars, "var", nil, "value of a variable, as `NAME=VALUE`; may be repeated; also "+varPrefix+"NAME in the environment")
	flags.StringArrayVar(&f.varFiles, "var-file", nil, "`FILE` with values of variables; may be repeated")
}

// options are the options of loading, with the given catalog of plugins.
func (f *flowFlags) options(cmd *cobra.Command, environ []string, catalog flows.Catalog) (flows.Options, error) {
	vars := map[string]flows.VarValue{}
	for _, entry := range environ {
		if name, text, ok := cutVar(entry, varPrefix); ok {
			vars[name] = flows.VarValue{Text: text, From: "environment variable " + varPrefix + name, Ambient: true}
		}
	}
	for _, arg := range f.vars {
		name, text, ok := cutVar(arg, "")
		if !ok {
			return flows.Options{}, usage(cmd, "--var %q: NAME=VALUE is expected", arg)
		}
		vars[name] = flows.VarValue{Text: text, From: "--var " + name}
	}
	return flows.Options{Vars: vars, VarFiles: f.varFiles, Catalog: catalog}, nil
}

func cutVar(entry, prefix string) (name, text string, ok bool) {
	entry, ok = strings.CutPrefix(entry, prefix)
	if !ok {
		return "", "", false
	}
	name, text, ok = strings.Cut(entry, "=")
	return name, text, ok && name != ""
}

// load loads flow files. Problems are shown, and end the command when they are
// errors.
func (a *app) load(ctx context.Context, paths []string, options flows.Options) (*flows.Set, error) {
	set, diags := flows.Load(ctx, paths, options)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // modules that were not read are no mistakes
	}
	a.showDiagnostics(set.Files(), diags)
	if diags.HasErrors() {
		return nil, quiet(exitInvalid)
	}
	return set, nil
}

// maxSearched bounds the bytes in which hcl looks for the lines that diagnostics quote:
// it reads the whole file for each of them, at some 10 MB/s. Those that follow name
// their line only.
const maxSearched = 8 << 20

// showDiagnostics writes problems with their lines of source to stderr.
func (a *app) showDiagnostics(files map[string]*hcl.File, diags hcl.Diagnostics) {
	w := hcl.NewDiagnosticTextWriter(a.errout, files, uint(a.errout.width), a.errout.color)
	searched := 0
	for _, d := range diags {
		if d.Subject != nil {
			file := files[d.Subject.Filename]
			if file != nil {
				searched += len(file.Bytes)
			}
			if file == nil || searched > maxSearched { // without a file it is about the path
				whole := *d
				whole.Subject, whole.Context = nil, nil
				if file != nil {
					whole.Summary = fmt.Sprintf("%s:%d: %s", d.Subject.Filename, d.Subject.Start.Line, d.Summary)
				}
				d = &whole
			}
		}
		if err := w.WriteDiagnostic(d); err != nil {
			a.say("cannot show all problems: %s", err)
			return
		}
	}
}

// pickFlow is the flow of that name, or the only one when none is named.
func pickFlow(cmd *cobra.Command, set *flows.Set, name string) (*flows.Flow, error) {
	var names []string
	for _, f := range set.Flows {
		names = append(names, f.Name)
	}
	if name != "" {
		if f := set.Flow(name); f != nil {
			return f, nil
		}
		return nil, usage(cmd, "there is no flow %q%s", name, suggest(name, names))
	}
	if len(set.Flows) == 1 {
		return set.Flows[0], nil
	}
	return nil, usage(cmd, "there are %s, choose one with --flow: %s", count(len(names), "flow"), strings.Join(names, ", "))
}
