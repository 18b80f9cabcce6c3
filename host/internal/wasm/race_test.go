//go:build race

package wasm

// timeFactor is for the race detector, which slows down wazero's own part of a call, such
// as making the native stack larger.
const timeFactor = 4
