//go:build !race

package wasm

const timeFactor = 1
