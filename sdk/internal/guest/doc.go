// Package guest runs one call inside a guest: it reads the call from the host,
// gives it to a function of the plugin and hands back what came of it. Package
// sdk is its face towards authors, package sdktest runs it without wasm.
//
// All that a guest knows of the world outside comes through [Host]: [Imports]
// implements it over the imports of flowhost:task/v1, sdktest natively. A new
// group of imports is a new method there.
//
// A call whose Done was used has a goroutine that ends with its function.
package guest
