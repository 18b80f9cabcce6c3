package main

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/remote"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
)

// kvCodes are the exit codes of the commands on keys.
var kvCodes = []int{cli.ExitFailed, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted}

func kvCommand(a *cli.App) *cobra.Command {
	cmd := group(a, &cobra.Command{
		Use:   "kv",
		Short: "Read and write the key-value buckets of tasks",
		Long: `Reads and writes the key-value buckets that tasks use by their grant kv. Each put gives
the key a new revision; --revision changes only the revision that was read.

The commands need the operator's credentials, which they find in the data directory.`,
		Example: `  flowhost kv buckets
  flowhost kv list counters
  flowhost kv get counters orders.eu
  flowhost kv put settings rates @rates.json --revision 7`,
	})
	cmd.AddCommand(kvBucketsCommand(a), kvListCommand(a), kvGetCommand(a), kvPutCommand(a), kvRemoveCommand(a))
	return cmd
}

func kvBucketsCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	asJSON := false
	cmd := cli.Exits(&cobra.Command{
		Use:   "buckets",
		Short: "List buckets and their size",
		Long: `Lists the buckets of a host with the number of their keys and their size. Keys that
were deleted within the last hour are counted.`,
		Example: `  flowhost kv buckets
  flowhost kv buckets --json | jq 'select(.bytes > 1e8)'`,
		Args: cli.Between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				all, err := client.KVBuckets(ctx)
				if err != nil {
					return err
				}
				columns := &render.Columns{Names: []string{"BUCKET", "KEYS", "SIZE", "MAXIMUM"}, States: -1}
				return render.List(a.Out, all, asJSON, columns, bucketRow)
			})
		},
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line, for each bucket")
	r.AddFlags(cmd.Flags())
	return cmd
}

func bucketRow(b api.KVBucket) []string {
	most := ""
	if b.MaxBytes > 0 {
		most = render.Size(b.MaxBytes)
	}
	return []string{b.Bucket, fmt.Sprint(b.Keys), render.Size(int64(b.Bytes)), most}
}

func kvListCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	var prefix string
	var limit int
	var asJSON bool
	cmd := cli.Exits(&cobra.Command{
		Use:   "list BUCKET",
		Short: "List the keys of a bucket, in their order",
		Example: `  flowhost kv list counters
  flowhost kv list counters --prefix orders. -n 0 --json | jq -r .key`,
		Args:              cli.Between(1, 1, "BUCKET"),
		ValidArgsFunction: r.CompleteEach(remote.CompleteBuckets),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return cli.Usage(cmd, "--limit %d: an integer from 0 is expected; 0 is all keys", limit)
			}
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				columns := &render.Columns{Names: []string{"KEY", "REVISION"}, States: -1}
				more, err := remote.EachKey(ctx, client, args[0], prefix, limit, func(page []api.KVKey) error {
					return render.List(a.Out, page, asJSON, columns, func(k api.KVKey) []string { return []string{k.Key, fmt.Sprint(k.Revision)} })
				})
				if err == nil && more && a.Out.Interactive {
					a.Say("there are more keys: -n 0 shows all")
				}
				return err
			})
		},
	}, cli.ExitInvalid, cli.ExitUnreachable, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVar(&prefix, "prefix", "", "only keys that begin with this `TEXT`")
	flags.IntVarP(&limit, "limit", "n", 100, "maximum `NUMBER` of keys, 0 for all")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object per line, for each key")
	r.AddFlags(flags)
	return cmd
}

// keptValue is the JSON form of a key's value: as text, or in base64 when it is not UTF-8.
type keptValue struct {
	Bucket   string    `json:"bucket"`
	Key      string    `json:"key"`
	Revision uint64    `json:"revision"`
	Created  time.Time `json:"created"`
	Value    *string   `json:"value,omitempty"`
	Data     []byte    `json:"data,omitempty"`
}

func kvGetCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	asJSON := false
	cmd := cli.Exits(&cobra.Command{
		Use:   "get BUCKET KEY",
		Short: "Print the value of a key",
		Long: `Prints the bytes of a value as they are, without a newline. With --json it prints the
revision, too. A key that does not exist ends with exit code 1.`,
		Example: `  flowhost kv get counters orders.eu
  flowhost kv get settings rates > rates.json
  flowhost kv get settings rates --json | jq .revision`,
		Args:              cli.Between(2, 2, "BUCKET or KEY"),
		ValidArgsFunction: r.CompleteEach(remote.CompleteBuckets, remote.CompleteKeys),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				entry, err := client.KVGet(ctx, args[0], args[1])
				if err != nil {
					return err
				}
				if !asJSON {
					_, err := a.Out.Write(entry.Value)
					return err
				}
				kept := keptValue{Bucket: args[0], Key: args[1], Revision: entry.Revision, Created: entry.Created}
				if text := string(entry.Value); utf8.ValidString(text) {
					kept.Value = &text
				} else {
					kept.Data = entry.Value
				}
				return a.PrintJSON(kept)
			})
		},
	}, kvCodes...)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object with value, or data in base64 if it is not UTF-8")
	r.AddFlags(cmd.Flags())
	return cmd
}

// revisionFlag is --revision: nil unless it is given.
func revisionFlag(cmd *cobra.Command, revision uint64) *uint64 {
	if cmd.Flags().Changed("revision") {
		return &revision
	}
	return nil
}

func kvPutCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	var revision uint64
	var ttl time.Duration
	var asJSON bool
	cmd := cli.Exits(&cobra.Command{
		Use:   "put BUCKET KEY [VALUE]",
		Short: "Write a key",
		Long: `Writes a key and prints its new revision. VALUE is the value itself, @FILE, or - for
stdin, which is read without a VALUE, too. A bucket that does not exist is created.

With --revision the key is written only if it has that revision; 0 means that it does
not exist. Otherwise the command ends with exit code 1 and changes nothing.`,
		Example: `  flowhost kv put settings region eu
  flowhost kv put settings rates @rates.json --revision 7
  date | flowhost kv put settings checked --ttl 1h`,
		Args:              cli.Between(2, 3, "BUCKET or KEY"),
		ValidArgsFunction: r.CompleteEach(remote.CompleteBuckets, remote.CompleteKeys),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("ttl") && ttl < time.Second {
				return cli.Usage(cmd, "--ttl %s: a duration of at least 1s is expected", ttl)
			}
			value, err := a.ReadBytes(append(args, "-")[2])
			if err != nil {
				return err
			}
			put := api.KVPutRequest{Value: value, KVRequest: api.KVRequest{
				Bucket: args[0], Key: args[1], Revision: revisionFlag(cmd, revision), TTL: ttl.Milliseconds(),
			}}
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				revision, err := client.KVPut(ctx, put)
				if err != nil {
					return err
				}
				if asJSON {
					return a.PrintJSON(api.KVKey{Key: args[1], Revision: revision})
				}
				_, err = fmt.Fprintln(a.Out, revision)
				return err
			})
		},
	}, kvCodes...)
	flags := cmd.Flags()
	flags.Uint64Var(&revision, "revision", 0, "`REVISION` that the key must have, 0 if it must not exist")
	flags.DurationVar(&ttl, "ttl", 0, "`DURATION` after which the key is deleted, such as 90s or 24h; default: never")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object with key and revision")
	r.AddFlags(flags)
	return cmd
}

func kvRemoveCommand(a *cli.App) *cobra.Command {
	r := &remote.Host{App: a}
	var revision uint64
	var asJSON bool
	cmd := cli.Exits(&cobra.Command{
		Use:   "rm BUCKET KEY",
		Short: "Remove a key",
		Long: `Removes a key, which need not exist. With --revision it is removed only if it has that
revision; otherwise the command ends with exit code 1 and changes nothing.`,
		Example: `  flowhost kv rm counters orders.eu
  flowhost kv rm settings rates --revision 7`,
		Args:              cli.Between(2, 2, "BUCKET or KEY"),
		ValidArgsFunction: r.CompleteEach(remote.CompleteBuckets, remote.CompleteKeys),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.Use(cmd, func(ctx context.Context, client *api.Client) error {
				if err := client.KVDelete(ctx, args[0], args[1], revisionFlag(cmd, revision)); err != nil {
					return err
				}
				if asJSON {
					return a.PrintJSON(map[string]any{"bucket": args[0], "key": args[1], "removed": true})
				}
				a.Say("key %s of bucket %s is removed", args[1], args[0])
				return nil
			})
		},
	}, kvCodes...)
	flags := cmd.Flags()
	flags.Uint64Var(&revision, "revision", 0, "`REVISION` that the key must have")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	r.AddFlags(flags)
	return cmd
}
