// Command warehouse is a plugin of the nightly example: it stands for what copies
// tables and tells people about it. Nothing is copied, and nothing is sent.
package main

import (
	"hash/fnv"

	"github.com/flowhost/flowhost/sdk"
)

type table struct {
	Region string `json:"region"`
	Table  string `json:"table"`
}

type copied struct {
	Table string `json:"table"`
	Rows  int    `json:"rows"`
}

type chatNote struct {
	Text string `json:"text"`
}

type letter struct {
	Subject string `json:"subject"`
}

type sent struct {
	By string `json:"by"`
}

type config struct {
	Room string `json:"room"` // where chat messages go; none without it
}

func init() {
	sdk.Plugin(sdk.Info{Name: "warehouse", Version: "1.0.0", Description: "Copies tables, and tells people."})
	sdk.Function("copy_table", copyTable).Describe("Copies one table, and counts its rows.")
	sdk.Function("chat", chat).Describe("Writes to the chat room of the config.").Config(config{})
	sdk.Function("mail", mail).Describe("Writes a mail.")
}

// copyTable makes up a number of rows, the same for the same table.
func copyTable(ctx sdk.Context, t table) (copied, error) {
	name := t.Region + "." + t.Table
	h := fnv.New32a()
	h.Write([]byte(name))
	rows := int(h.Sum32() % 1000)
	ctx.Log().Info("copied", "table", name, "rows", rows)
	return copied{Table: name, Rows: rows}, nil
}

func chat(ctx sdk.Context, note chatNote) (sent, error) {
	var c config
	if err := ctx.Config(&c); err != nil {
		return sent{}, err
	}
	if c.Room == "" {
		return sent{}, sdk.Fail("room", "the config names no chat room")
	}
	ctx.Log().Info(note.Text, "room", c.Room)
	return sent{By: "chat"}, nil
}

func mail(ctx sdk.Context, l letter) (sent, error) {
	ctx.Log().Info(l.Subject)
	return sent{By: "mail"}, nil
}

func main() {}
