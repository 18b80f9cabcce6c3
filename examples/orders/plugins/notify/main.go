// Command notify is a plugin of the orders example: it writes the message that
// people get when something failed.
package main

import (
	"strings"

	"github.com/flowhost/flowhost/sdk"
)

type note struct {
	Text string `json:"text"`
}

type config struct {
	Channel string `json:"channel"`
}

type message struct {
	Channel string `json:"channel"`
	Text    string `json:"text"`
}

func init() {
	sdk.Plugin(sdk.Info{Name: "notify", Version: "1.0.0", Description: "Messages for people."})
	sdk.Function("notify", notify).Describe("Formats a message for the channel of the config and logs it as a warning.").Config(config{})
}

func notify(ctx sdk.Context, in note) (message, error) {
	c := config{Channel: "general"}
	if err := ctx.Config(&c); err != nil {
		return message{}, err
	}
	text := strings.TrimSpace(in.Text)
	if text == "" {
		return message{}, sdk.Fail("empty", "there is nothing to tell: text is empty")
	}
	m := message{Channel: c.Channel, Text: "[" + ctx.Call().Flow + "] " + text}
	ctx.Log().Warn(m.Text, "channel", m.Channel)
	return m, nil
}

func main() {}
