;; Does to its instance what it can. Each function returns 0 when it found the
;; instance as new, and changes it before it ends as its name says.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 2 8)
  (table $t 2 funcref)
  (elem declare func $seen)
  (global $n (mut i32) (i32.const 0))
  (global $f (mut f64) (f64.const 0))

  (func (export "_initialize")
    (global.set $n (i32.const 1))
    (i32.store (i32.const 70000) (i32.const 7)))

  (func (export "flowhost_warmup") (result i32)
    (global.set $n (i32.add (global.get $n) (i32.const 1)))
    (i32.const 0))

  ;; 0 when nothing was changed: 1 the counter, 2 a zero page, 3 an initialized
  ;; page, 4 the size, 5 the float. Changes the first three and the last.
  (func $seen (result i32)
    (if (i32.ne (global.get $n) (i32.const 2)) (then (return (i32.const 1))))
    (if (i32.load (i32.const 1000)) (then (return (i32.const 2))))
    (if (i32.ne (i32.load (i32.const 70000)) (i32.const 7)) (then (return (i32.const 3))))
    (if (i32.ne (memory.size) (i32.const 2)) (then (return (i32.const 4))))
    (if (f64.ne (global.get $f) (f64.const 0)) (then (return (i32.const 5))))
    (global.set $n (i32.const 99))
    (global.set $f (f64.const 1.5))
    (i32.store (i32.const 1000) (i32.const 1))
    (i32.store (i32.const 70000) (i32.const 8))
    (i32.const 0))

  ;; The same, 6 when grown memory is not zero or cannot be had.
  (func $grow (param $pages i32) (result i32) (local $found i32)
    (local.set $found (call $seen))
    (if (i32.ne (memory.grow (local.get $pages)) (i32.const 2)) (then (return (i32.const 6))))
    (if (i32.load (i32.const 131072)) (then (return (i32.const 6))))
    (i32.store (i32.const 131072) (i32.const 1))
    (local.get $found))

  (func (export "returns") (result i32) (call $seen))
  (func (export "grows") (result i32) (call $grow (i32.const 3)))
  (func (export "fills") (result i32) (call $grow (i32.const 6)))
  (func (export "exits") (result i32) (call $exit (call $seen)) (unreachable))
  (func (export "traps") (result i32)
    (if (call $seen) (then (return (i32.const 1))))
    (unreachable))
  (func (export "spins") (result i32)
    (if (call $seen) (then (return (i32.const 1))))
    (loop $l (br $l))
    (unreachable))
  (func $down (export "sinks") (result i32)
    (drop (call $seen))
    (i32.add (call $down) (i32.const 1)))
  (func (export "sets") (result i32)
    (if (call $seen) (then (return (i32.const 1))))
    (if (i32.eqz (ref.is_null (table.get $t (i32.const 1)))) (then (return (i32.const 7))))
    (table.set $t (i32.const 1) (ref.func $seen))
    (i32.const 0)))
