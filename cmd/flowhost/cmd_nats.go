package main

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/flowfiles"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
)

func natsCommand(a *cli.App) *cobra.Command {
	cmd := group(a, &cobra.Command{
		Use:   "nats",
		Short: "Configure an external NATS server",
	})
	cmd.AddCommand(natsConfigCommand(a))
	return cmd
}

// natsConfig is nats config with its flags.
type natsConfig struct {
	*cli.App
	files     flowfiles.Flags
	keys, url string
}

func natsConfigCommand(a *cli.App) *cobra.Command {
	c := &natsConfig{App: a}
	cmd := cli.Exits(&cobra.Command{
		Use:   "config PATH...",
		Short: "Print the configuration of an external NATS server",
		Long: `Prints the configuration with which an external NATS server separates the engine, the
operator and clients as the embedded server does: accounts, exports and imports, users,
permissions and limits. PATHs are flow files and directories; clients may publish on
the subjects that these flows listen to, so print the configuration again when the
subjects change.

Users authenticate with keys. The command stores their seeds in the directory of --keys
and creates the missing ones: engine.nk and engine-app.nk for 'flowhost run --creds'
and '--app-creds', operator.nk and client.nk. With --nats it also writes a context for
each of the latter two, for the nats command line and for --creds of other commands.`,
		Example: `  flowhost nats config flows/ --keys keys --nats nats://nats.internal:4222 > flowhost.conf
  flowhost run flows/ --nats nats://nats.internal:4222 --creds keys/engine.nk --app-creds keys/engine-app.nk`,
		Args: cli.AtLeast(1, "PATH"),
		RunE: func(cmd *cobra.Command, paths []string) error { return c.print(cmd, paths) },
	}, cli.ExitInvalid, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&c.keys, "keys", "", "`DIRECTORY` of the users' seeds; required")
	flags.StringVar(&c.url, "nats", "", "`URL` of the server, for the contexts")
	c.files.AddFlags(flags)
	return cmd
}

func (c *natsConfig) print(cmd *cobra.Command, paths []string) error {
	if c.keys == "" {
		return cli.Usage(cmd, "--keys is required: it names the directory of the users' seeds")
	}
	set, err := loadWithModules(c.App, cmd, &c.files, paths)
	if err != nil {
		return err
	}
	keys, err := filepath.Abs(c.keys)
	if err != nil {
		return cli.Exitf(cli.ExitInvalid, "--keys: %w", err)
	}
	text, err := natsd.ExternalConfiguration(natsd.ExternalConfig{Keys: keys, URL: c.url, Subjects: serve.CoreSubjects(set), Log: c.Log(slog.LevelWarn)})
	if err != nil {
		return cli.Exitf(cli.ExitInvalid, "%w", err)
	}
	fmt.Fprint(c.Out, text)
	return nil
}
