;; One operation from its start to its end, and nothing else: what it costs a guest that is
;; as small as can be.
(module
  (import "flowhost:task/v1" "op_start" (func $start (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "flowhost:task/v1" "op_wait" (func $wait (param i32 i32 i32) (result i32)))
  (import "flowhost:task/v1" "op_read" (func $read (param i32 i32 i32 i32 i32) (result i32)))
  (import "flowhost:task/v1" "op_close" (func $close (param i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "http")
  (data (i32.const 16) "{\"url\":\"/x\"}")

  (func (export "nothing") (result i32) i32.const 0)

  (func (export "once") (result i32) (local $ticket i32)
    (local.set $ticket (call $start (i32.const 0) (i32.const 4) (i32.const 16) (i32.const 12) (i32.const 0) (i32.const 0)))
    (i32.store (i32.const 64) (local.get $ticket))
    (drop (call $wait (i32.const 64) (i32.const 1) (i32.const -1)))
    (drop (call $read (local.get $ticket) (i32.const 0) (i32.const 0) (i32.const 128) (i32.const 4096)))
    (drop (call $read (local.get $ticket) (i32.const 1) (i32.const 0) (i32.const 8192) (i32.const 4096)))
    (call $close (local.get $ticket))))
