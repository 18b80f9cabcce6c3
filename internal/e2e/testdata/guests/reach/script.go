package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdksql"
)

func init() { sdk.Function("script", runScript) }

// script is what is done with a database, step by step: statements, in which ATTEMPT is the
// number of the attempt, and
//
//	begin, commit     of a transaction; it is left open without an end
//	read STATEMENT    reads all rows; those of the last one are the output
//	GET URL           from the connection api
//	once STEP         in the first attempt
type script struct {
	Connection string   `json:"connection"`
	Steps      []string `json:"steps"`
}

// database is a *sql.DB or a *sql.Tx.
type database interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

func runScript(ctx sdk.Context, in script) ([]string, error) {
	db := sdksql.Open(ctx, in.Connection)
	var at database = db
	var tx *sql.Tx
	output := []string{}
	for _, step := range in.Steps {
		step = strings.ReplaceAll(step, "ATTEMPT", fmt.Sprint(ctx.Call().Attempt))
		step, once := strings.CutPrefix(step, "once ")
		if once && ctx.Call().Attempt > 1 {
			continue
		}
		word, rest, _ := strings.Cut(step, " ")
		var err error
		switch word {
		case "begin":
			if tx, err = db.BeginTx(ctx, nil); err == nil {
				at = tx
			}
		case "commit":
			err = tx.Commit()
			at = db
		case "read":
			output, err = read(ctx, at, rest)
		case "GET":
			_, err = ctx.Fetch("api", sdk.Request{URL: rest})
		default:
			_, err = at.ExecContext(ctx, step)
		}
		if err != nil {
			return nil, err
		}
	}
	return output, nil
}

// read returns the first ten rows of one column.
func read(ctx context.Context, at database, text string) ([]string, error) {
	rows, err := at.QueryContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := []string{}
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		if len(found) < 10 {
			found = append(found, one)
		}
	}
	return found, rows.Err()
}
