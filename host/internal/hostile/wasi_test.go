package hostile

import (
	"encoding/binary"
	"time"
)

const wasi = "wasi_snapshot_preview1"

func errno(params ...byte) signature { return signature{params, []byte{i32}} }

// files is guests that reach for files, which no call here was granted.
func files() []attack {
	pathOpen := imported{wasi, "path_open", errno(i32, i32, i32, i32, i32, i64, i64, i32, i32)}
	symlink := imported{wasi, "path_symlink", errno(i32, i32, i32, i32, i32)}
	renumber := imported{wasi, "fd_renumber", errno(i32, i32)}
	opens := func(path string) code { // from the directory in local 0
		return seq(get(0), number(1), number(16), number(len(path)), number(0), number64(-1), number64(-1), number(0), number(0), call(0))
	}
	const absolute, up = "/etc/hostname", "../../../../etc/hostname"
	// perFolder fails the call with 1 if something is granted in any directory.
	perFolder := func(what imported, path string, body code) func() []byte {
		return guest{
			imports: []imported{what}, data: []code{at(16, path)},
			functions: []function{{export: "run", kind: task, locals: code{1, 1, i32}, body: seq(
				upTo(0, 1_000, 1, body, eqz, ifThen, number(1), ret, end), number(0))}},
		}.bytes
	}
	return []attack{
		{name: "files/hoard", what: "files opened again and again", want: succeeds, module: perFolder(pathOpen, ".", opens("."))},
		{name: "files/absolute path", what: "a file by its absolute path", want: succeeds, module: perFolder(pathOpen, absolute, opens(absolute))},
		{name: "files/way up", what: "a file above the folder", want: succeeds, module: perFolder(pathOpen, up, opens(up))},
		{name: "files/symlink", what: "a link to the host's files", want: succeeds, module: perFolder(symlink, up,
			seq(number(16), number(len(up)), get(0), number(16+len(up)-8), number(8), call(0)))},
		{name: "files/renumber", what: "a descriptor of number 2^31-1, in a table that is an array",
			want: succeeds, peak: 200, module: guest{
				imports:   []imported{renumber},
				functions: []function{{export: "run", kind: task, body: seq(number(1), number(1<<31-1), call(0), drop, number(0))}},
			}.bytes},
		{name: "files/renumber higher and higher", what: "descriptors of large numbers, again and again",
			want: timesOut + "|" + succeeds, peak: 200, module: guest{
				imports: []imported{renumber},
				functions: []function{{export: "run", kind: task, locals: code{1, 1, i32}, body: seq(number(1), set(0),
					upTo(0, 1<<30, 1<<20, get(0), get(0), number(1<<20), add, call(0), drop), number(0))}},
			}.bytes},
		{name: "files/closed streams", what: "standard streams closed, then written to", want: succeeds, module: guest{
			imports: []imported{fdWrite, {wasi, "fd_close", errno(i32)}},
			data:    []code{at(0, words(0, 64))},
			functions: []function{{export: "run", kind: task, body: seq(
				many(3, seq(number(0), call(1), drop, number(1), call(1), drop, number(2), call(1), drop)),
				number(1), number(0), number(1), number(32), call(0), drop, number(0))}},
		}.bytes},
	}
}

var poll = imported{wasi, "poll_oneoff", errno(i32, i32, i32, i32)}

// clockSubscription waits for a time to pass, for sleep at address 0: user data,
// the kind clock, the clock, time, precision, flags.
func clockSubscription(wait time.Duration) string {
	subscription := make([]byte, 48)
	binary.LittleEndian.PutUint32(subscription[16:], 1)
	binary.LittleEndian.PutUint64(subscription[24:], uint64(wait))
	return string(subscription)
}

// sleep calls function f, which is poll.
func sleep(f int) code { return seq(number(0), number(64), number(1), number(128), call(f), drop) }

// sleeps is guests that wait in the host for longer than they may.
func sleeps() []attack {
	sleeper := func(wait time.Duration, body func(sleep code) code) func() []byte {
		return guest{
			imports: []imported{poll}, data: []code{at(0, clockSubscription(wait))},
			functions: []function{{export: "run", kind: task, body: body(sleep(0))}},
		}.bytes
	}
	once := func(sleep code) code { return seq(sleep, number(0)) }
	return []attack{
		{name: "sleep/hour", what: "one long sleep", want: timesOut, module: sleeper(time.Hour, once)},
		{name: "sleep/centuries", what: "a sleep as long as a number can say", want: timesOut, module: sleeper(1<<63-1, once)},
		{name: "sleep/negative", what: "a sleep of 2^64-1 ns, less than nothing for who reads it as signed", want: timesOut + "|" + succeeds, module: sleeper(-1, once)},
		{name: "sleep/short ones", what: "sleeps of a millisecond, again and again", want: timesOut,
			module: sleeper(time.Millisecond, func(sleep code) code { return forever(sleep) })},
		{name: "sleep/yield", what: "yields, again and again", want: timesOut, module: guest{
			imports:   []imported{{wasi, "sched_yield", task}},
			functions: []function{{export: "run", kind: task, body: forever(call(0), drop)}},
		}.bytes},
		{name: "sleep/time", what: "the clock read again and again", want: timesOut, module: guest{
			imports:   []imported{{wasi, "clock_time_get", errno(i32, i64, i32)}},
			functions: []function{{export: "run", kind: task, body: forever(number(0), number64(0), number(0), call(0), drop)}},
		}.bytes},
	}
}

// exitsEarly is guests that end themselves where nobody expects it.
func exitsEarly() []attack {
	exit := func(status int) code { return seq(number(status), call(0)) }
	in := func(place string, status int) func() []byte {
		g := guest{imports: []imported{procExit}, functions: []function{
			{export: "run", kind: task, body: number(0)}, inner(exit(status)),
		}}
		switch place {
		case "start":
			g.start = 2
		case "run":
			g.functions[0].body = seq(exit(status), number(0))
		default:
			g.functions[1].export = place
		}
		return g.bytes
	}
	return []attack{
		{name: "exit/start", what: "an exit before anything is called", want: exits, module: in("start", 7)},
		{name: "exit/start, as if well", what: "the same with status 0: the function was never called", want: exits, module: in("start", 0)},
		{name: "exit/_initialize", what: "an exit in the initialization", want: exits, module: in("_initialize", 7)},
		{name: "exit/_initialize, as if well", what: "the same with status 0: the function was never called", want: exits, module: in("_initialize", 0)},
		{name: "exit/task", what: "an exit in the middle of the work", want: exits, module: in("run", 1)},
		{name: "exit/as if canceled", what: "the status that wazero uses for a call that is cut off", want: exits, module: in("run", -1)},
		{name: "exit/as if late", what: "the status that wazero uses for the deadline", want: exits, module: in("run", -0x10000001)},
		{name: "exit/in a loop", what: "an exit that a guest hopes to survive", want: exits, module: guest{
			imports:   []imported{procExit},
			functions: []function{{export: "run", kind: task, body: forever(exit(3))}},
		}.bytes},
		{name: "trap/start", what: "a trap before anything is called", want: traps, module: guest{
			functions: []function{{export: "run", kind: task, body: number(0)}, inner(unreachable)}, start: 1,
		}.bytes},
		{name: "trap/data", what: "data that does not fit into memory", want: traps, module: guest{
			functions: []function{{export: "run", kind: task, body: number(0)}}, data: []code{at(-4, "1234567890")},
		}.bytes},
	}
}
