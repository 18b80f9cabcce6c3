package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
)

func rootCommand(a *cli.App) *cobra.Command {
	root := group(a, &cobra.Command{
		Use:   "flowhost",
		Short: "Runs flows whose tasks are WebAssembly plugins",
		Long: `flowhost runs flows: graphs of tasks, written in HCL, each of which calls a
function of a WebAssembly plugin in its own sandbox.`,
		Example: `  flowhost validate flows/                 check flow files, without running anything
  flowhost test flows/                     run their tests, in virtual time
  flowhost exec flows/hello.hcl            run one flow now and print its output
  flowhost run flows/                      serve the flows: schedules, messages, requests
  flowhost trigger hello --wait            ask the host for a run, and wait for its output
  flowhost runs --state failed             list runs, then show, watch, logs, cancel, retry, rerun them
  flowhost approve order@latest manager    approve or refuse what a run waits for
  flowhost plan flows/                     show what changed files would change on the host
  flowhost connection test flows/ NAME     try a connection, and report what is wrong
  flowhost schedule list                   list schedules, then pause, resume, fire, backfill them
  flowhost pause --host --reason TEXT      start no attempt until 'flowhost resume --host'
  flowhost plugin call greet.wasm greet '{"name":"world"}'`,
	})
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(a.Stdin)
	root.SetOut(a.Out)
	root.SetErr(a.Errout)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { cli.WriteHelp(a.Out, cmd) })
	root.SetUsageFunc(func(cmd *cobra.Command) error { cli.WriteHelp(a.Errout, cmd); return nil })
	root.SetFlagErrorFunc(cli.FlagError)
	root.AddCommand(
		runCommand(a), execCommand(a),
		triggerCommand(a), runsCommand(a), showCommand(a), watchCommand(a), logsCommand(a),
		cancelCommand(a), retryCommand(a), rerunCommand(a), approveCommand(a), signalCommand(a),
		pauseCommand(a), resumeCommand(a), drainCommand(a),
		scheduleCommand(a), backfillCommand(a), limitCommand(a), deadletterCommand(a),
		kvCommand(a), artifactCommand(a),
		validateCommand(a), testCommand(a), planCommand(a), graphCommand(a), fmtCommand(a), simulateCommand(a),
		connectionCommand(a), secretCommand(a),
		pluginCommand(a), natsCommand(a), schemaCommand(a), versionCommand(a),
	)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// group makes a command that only has subcommands.
func group(a *cli.App, cmd *cobra.Command) *cobra.Command {
	cmd.Args = knownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// knownCommand rejects the arguments of a group: they name no command.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.SuggestionsMinimumDistance == 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return cli.Usage(cmd, "unknown command %q%s", args[0], hint)
}
