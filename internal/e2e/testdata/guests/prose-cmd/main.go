// Command prose-cmd is a plugin that reads nothing and answers in prose, where
// JSON is expected.
package main

import "fmt"

func main() { fmt.Println("Once upon a time.") }
