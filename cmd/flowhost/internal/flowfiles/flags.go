package flowfiles

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/standard"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
)

// varPrefix begins the environment variables that give values for variables.
const varPrefix = "FLOWHOST_VAR_"

// Flags are the flags with which commands load flow files.
type Flags struct {
	vars     []string
	varFiles []string
	config   string // of those that addConfig was called for
}

// AddConfig adds the flag for the host's settings, for commands that use only its
// ceilings.
func (f *Flags) AddConfig(flags *pflag.FlagSet) {
	flags.StringVar(&f.config, "config", "", "settings `FILE` of the host, for its ceilings; default: "+settings.FileName+" in the flows' directory")
}

// Allowed are the load options with the ceilings of the host of these files.
func (f *Flags) Allowed(cmd *cobra.Command, a *cli.App, path string, catalog flows.Catalog) (flows.Options, error) {
	_, options, err := f.WithSettings(cmd, a, path, catalog)
	return options, err
}

// WithSettings is Allowed for a command that needs the settings of the host, too.
func (f *Flags) WithSettings(cmd *cobra.Command, a *cli.App, path string, catalog flows.Catalog) (settings.Settings, flows.Options, error) {
	s, err := settings.Read(a, f.config, path)
	if err != nil {
		return s, flows.Options{}, err
	}
	options, err := f.Options(cmd, a.Environ, catalog)
	options.Ceilings, options.Operator = s.Ceilings, s.Operator
	return s, options, err
}

// AddFlags adds --var and --var-file.
func (f *Flags) AddFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.vars, "var", nil, "value of a variable, as `NAME=VALUE`; may be repeated; also "+varPrefix+"NAME in the environment")
	flags.StringArrayVar(&f.varFiles, "var-file", nil, "`FILE` with values of variables; may be repeated")
}

// Options are the load options, with the given catalog of plugins.
func (f *Flags) Options(cmd *cobra.Command, environ []string, catalog flows.Catalog) (flows.Options, error) {
	vars := map[string]flows.VarValue{}
	for _, entry := range environ {
		if name, text, ok := cutVar(entry, varPrefix); ok {
			vars[name] = flows.VarValue{Text: text, From: "environment variable " + varPrefix + name, Ambient: true}
		}
	}
	for _, arg := range f.vars {
		name, text, ok := cutVar(arg, "")
		if !ok {
			return flows.Options{}, cli.Usage(cmd, "--var %q: NAME=VALUE is expected", arg)
		}
		vars[name] = flows.VarValue{Text: text, From: "--var " + name}
	}
	options := flows.Options{Vars: vars, VarFiles: f.varFiles, Catalog: catalog, Now: time.Now()}
	if modules, ok := catalog.(host.Catalog); ok {
		options.Standard = standard.Plugins(modules)
	}
	return options, nil
}

func cutVar(entry, prefix string) (name, text string, ok bool) {
	entry, ok = strings.CutPrefix(entry, prefix)
	if !ok {
		return "", "", false
	}
	name, text, ok = strings.Cut(entry, "=")
	return name, text, ok && name != ""
}
