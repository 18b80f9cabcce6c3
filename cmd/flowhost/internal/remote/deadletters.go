package remote

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
)

// deadLetterPage is how many dead letters one request asks for.
const deadLetterPage = 200

// EachDeadLetter gives the dead letters of a flow, or of all for "", newest first: as many
// as limit, or all for 0. more reports whether there are others.
func EachDeadLetter(ctx context.Context, client *api.Client, flow string, limit int, give func([]api.DeadLetter) error) (more bool, err error) {
	var before uint64
	for left := limit; ; {
		size := deadLetterPage
		if limit > 0 {
			size = min(left, size)
		}
		page, next, err := client.DeadLetters(ctx, flow, before, size)
		if err != nil {
			return false, err
		}
		if err := give(page); err != nil {
			return false, err
		}
		left -= len(page)
		if next == 0 || limit > 0 && left <= 0 {
			return next > 0, nil
		}
		before = next
	}
}

// DeadLetterSequences parses the numbers of dead letters.
func DeadLetterSequences(cmd *cobra.Command, args []string) ([]uint64, error) {
	var sequences []uint64
	for _, arg := range args {
		n, err := strconv.ParseUint(arg, 10, 64)
		if err != nil || n == 0 {
			return nil, cli.Usage(cmd, "%q is not the number of a dead letter: 'flowhost deadletter list' shows them", arg)
		}
		if !slices.Contains(sequences, n) {
			sequences = append(sequences, n)
		}
	}
	return sequences, nil
}

// CompleteDeadLetters completes the numbers of the latest dead letters.
func CompleteDeadLetters(ctx context.Context, client *api.Client) []string {
	letters, _, err := client.DeadLetters(ctx, "", 0, 20)
	if err != nil {
		return nil
	}
	words := make([]string, len(letters))
	for i, l := range letters {
		words[i] = cobra.CompletionWithDesc(strconv.FormatUint(l.Sequence, 10), l.Flow+" "+render.Printable(l.Code))
	}
	return words
}
