package declared

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/flowfiles"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run/access"
)

// Files are flow files and settings, with the flags that select them.
type Files struct {
	App   *cli.App
	flags flowfiles.Flags
}

// AddFlags adds the flags with which files are loaded.
func (f *Files) AddFlags(flags *pflag.FlagSet) {
	f.flags.AddFlags(flags)
	f.flags.AddConfig(flags)
}

// Load loads flow files and settings, and shows their problems; errors end the command.
func (f *Files) Load(cmd *cobra.Command, paths []string) (*Site, error) {
	ctx, a := cmd.Context(), f.App
	h, err := serve.NewHost(ctx, settings.Settings{}, nil, nil, a.Log(slog.LevelWarn))
	if err != nil {
		return nil, err
	}
	defer serve.CloseHost(h)
	s, options, err := f.flags.WithSettings(cmd, a, paths[0], host.Catalog{Host: h, Discard: true})
	if err != nil {
		return nil, err
	}
	set, err := flowfiles.Load(ctx, a, paths, options)
	if err != nil {
		return nil, err
	}
	return &Site{Set: set, settings: s}, nil
}

// Names completes names in the shell, with nothing if the files have errors.
func (f *Files) Names(cmd *cobra.Command, paths []string, names func(*Site) []string) ([]string, cobra.ShellCompDirective) {
	quiet := Files{App: &cli.App{Environ: f.App.Environ, Out: render.NewTerminal(io.Discard, os.Getenv), Errout: render.NewTerminal(io.Discard, os.Getenv)}, flags: f.flags}
	site, err := quiet.Load(cmd, paths)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names(site), cobra.ShellCompDirectiveDefault
}

// Site is what is declared in files.
type Site struct {
	*flows.Set
	settings settings.Settings
}

// Use reaches outside as the host would with these files.
func (s *Site) Use(ctx context.Context, do func(context.Context, *serve.Outside) error) error {
	outside, err := serve.NewOutside(s.settings, slog.New(slog.DiscardHandler)) // do reports what is wrong
	if err != nil {
		return err
	}
	defer outside.Close()
	outside.Deploy(s.Set)
	return do(ctx, outside)
}

// Connection is a connection as lists show it.
type Connection struct {
	Name     string   `json:"connection"`
	Prefix   string   `json:"prefix,omitempty"` // of the flows that see it
	Type     string   `json:"type"`
	Target   string   `json:"target"`           // without credentials
	Access   string   `json:"access,omitempty"` // of a database
	Operator bool     `json:"operator"`         // it is of the settings
	Declared string   `json:"declared"`         // "flows/shop.hcl:7"
	Flows    []string `json:"flows"`            // to which it is granted
	seenBy   string   // a flow
}

// Connections returns the connections of the files and the settings.
func (s *Site) Connections() []Connection {
	var all []Connection
	for _, d := range s.DeclaredConnections() {
		c := Connection{
			Name: d.Block.Name, Prefix: d.Prefix, Type: d.Block.Type, Target: d.Block.Target(), Operator: d.Operator, Declared: place(d.Range),
			Flows: []string{},
		}
		if d.Block.SQL != nil {
			c.Access = string(d.Block.SQL.Access)
		}
		for _, f := range s.Flows {
			if s.Connection(f.Name, c.Name) != d.Block {
				continue
			}
			c.seenBy = f.Name
			if slices.ContainsFunc(f.AllTasks(), func(t *flows.Task) bool { return slices.Contains(t.Grants.Connections, c.Name) }) {
				c.Flows = append(c.Flows, f.Name)
			}
		}
		all = append(all, c)
	}
	return all
}

// FullName is the name with the directory of the flows that see it.
func (c Connection) FullName() string { return c.Prefix + c.Name }

// Flow is one that sees the connection, and to which it is granted if there is one.
func (c *Connection) Flow() string {
	if len(c.Flows) > 0 {
		return c.Flows[0]
	}
	if c.seenBy != "" {
		return c.seenBy
	}
	return c.Prefix
}

// Secret is a secret as lists show it.
type Secret struct {
	Name        string   `json:"secret"`
	Prefix      string   `json:"prefix,omitempty"` // of the flows that see it
	Source      string   `json:"source"`
	Operator    bool     `json:"operator"` // it is of the settings
	Declared    string   `json:"declared"`
	Connections []string `json:"connections"` // that use it
	Flows       []string `json:"flows"`       // whose tasks it is handed to
	flow        string   // that uses it, or sees it
}

// FullName is the name with the directory of the flows that see it.
func (x Secret) FullName() string { return x.Prefix + x.Name }

// Flow is one that uses the secret, or else one that sees it.
func (x *Secret) Flow() string {
	if x.flow == "" {
		return x.Prefix
	}
	return x.flow
}

// Secrets returns the secrets of the files and the settings.
func (s *Site) Secrets() []Secret {
	var all []Secret
	for _, d := range s.DeclaredSecrets() {
		x := Secret{
			Name: d.Block.Name, Prefix: d.Prefix, Source: d.Block.Source(), Operator: d.Operator, Declared: place(d.Range),
			Connections: []string{}, Flows: []string{},
		}
		for _, c := range s.DeclaredConnections() {
			if (d.Operator || !c.Operator && c.Block.Folder == d.Block.Folder) && slices.Contains(c.Block.Secrets(), x.Name) {
				x.Connections = append(x.Connections, c.Block.Name)
			}
		}
		for _, f := range s.Flows {
			if s.Secret(f.Name, x.Name) != d.Block {
				continue
			}
			handed := slices.ContainsFunc(f.AllTasks(), func(t *flows.Task) bool { return hands(&t.Grants.Grants, x.Name) })
			if handed {
				x.Flows = append(x.Flows, f.Name)
			}
			if x.flow == "" || handed || s.connects(f, x.Name) {
				x.flow = f.Name
			}
		}
		all = append(all, x)
	}
	return all
}

// connects reports whether a flow is granted a connection that uses a secret.
func (s *Site) connects(f *flows.Flow, secret string) bool {
	return slices.ContainsFunc(f.AllTasks(), func(t *flows.Task) bool {
		return slices.ContainsFunc(t.Grants.Connections, func(name string) bool {
			c := s.Connection(f.Name, name)
			return c != nil && slices.Contains(c.Secrets(), secret)
		})
	})
}

// hands reports whether a grant hands a secret to the guest.
func hands(g *access.Grants, secret string) bool {
	for _, name := range g.Secrets {
		if name == secret {
			return true
		}
	}
	return false
}

// place is where a block begins.
func place(at hcl.Range) string { return fmt.Sprintf("%s:%d", at.Filename, at.Start.Line) }
