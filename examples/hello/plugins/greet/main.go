// Command greet is the plugin of the hello example: it greets by name.
package main

import "github.com/flowhost/flowhost/sdk"

type person struct {
	Name string `json:"name"`
}

type greeting struct {
	Text string `json:"text"`
}

func init() {
	sdk.Plugin(sdk.Info{Name: "greet", Version: "1.0.0", Description: "Greets people."})
	sdk.Function("greet", greet).Describe("Greets a person by name.")
}

func greet(ctx sdk.Context, in person) (greeting, error) {
	if in.Name == "" {
		return greeting{}, sdk.Fail("no_name", "nobody to greet: name is empty")
	}
	ctx.Log().Info("greeting", "name", in.Name)
	return greeting{Text: "Hello, " + in.Name + "!"}, nil
}

func main() {}
