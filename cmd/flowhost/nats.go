package main

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/natsd"
)

func (a *app) natsCommand() *cobra.Command {
	cmd := a.group(&cobra.Command{
		Use:   "nats",
		Short: "Prepare an external NATS server",
	})
	cmd.AddCommand(a.natsConfigCommand())
	return cmd
}

// natsConfig is nats config with its flags.
type natsConfig struct {
	*app
	files     flowFlags
	keys, url string
}

func (a *app) natsConfigCommand() *cobra.Command {
	c := &natsConfig{app: a}
	cmd := exits(&cobra.Command{
		Use:   "config PATH...",
		Short: "Print the configuration of an external NATS server",
		Long: `Prints what an external NATS server needs to keep the engine, the operator and
clients apart as the embedded server does: accounts, exports and imports, users,
permissions and limits, in the server's configuration language. PATHs are flow
files and folders; clients may publish on the subjects to which their flows listen:
print it again when these change.

Users have keys. Their seeds are files in the directory of --keys, made where they
are missing: engine.nk and engine-app.nk for 'flowhost run --creds' and
'--app-creds', operator.nk and client.nk. With --nats, a context for each of the
latter two is written beside them, for the nats command line and for --creds of
other commands.`,
		Example: `  flowhost nats config flows/ --keys keys --nats nats://nats.internal:4222 > flowhost.conf
  flowhost run flows/ --nats nats://nats.internal:4222 --creds keys/engine.nk --app-creds keys/engine-app.nk`,
		Args: atLeast(1, "PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error { return c.print(cmd, paths) },
	}, exitInvalid, exitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&c.keys, "keys", "", "`DIRECTORY` of the users' seeds; required")
	flags.StringVar(&c.url, "nats", "", "`URL` of the server, for the contexts")
	c.files.add(flags)
	return cmd
}

func (c *natsConfig) print(cmd *cobra.Command, paths []string) error {
	if c.keys == "" {
		return usage(cmd, "--keys is missing: name a directory for the seeds of the users")
	}
	p := &planner{remote: remote{app: c.app}, files: c.files}
	set, err := p.loadWithModules(cmd, paths)
	if err != nil {
		return err
	}
	keys, err := filepath.Abs(c.keys)
	if err != nil {
		return exitf(exitInvalid, "--keys: %w", err)
	}
	text, err := natsd.ExternalConfiguration(natsd.ExternalConfig{Keys: keys, URL: c.url, Subjects: coreSubjects(set), Log: c.log(slog.LevelWarn)})
	if err != nil {
		return exitf(exitInvalid, "%w", err)
	}
	fmt.Fprint(c.out, text)
	return nil
}
