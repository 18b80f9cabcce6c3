package messages

// Header is what the fuzzer of headers calls.
var Header = header
