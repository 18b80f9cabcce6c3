// Package door is the only way by which a guest reaches the world: it starts operations,
// waits for them and reads their answers. A door numbers the operations of one attempt,
// bounds their number, bytes and concurrency, and reports each, whatever its kind. A
// [Session] performs them.
//
// A door belongs to the goroutine of its call, which starts one goroutine for each
// operation; End waits for all of them. A driver that ignores the end of its context holds up
// nobody: its operation is reported and left behind, and whoever ends the door waits for it
// on another goroutine.
package door
