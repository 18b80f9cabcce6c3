;; The tightest loop that still does something: a load, an exor and an addition
;; in each round. The input is the number of rounds.
(module
  (import "flowhost:task/v1" "read" (func $read (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)

  (func (export "nothing") (result i32) i32.const 0)

  (func $rounds (result i64) (local $at i32) (local $end i32) (local $n i64)
    (local.set $end (call $read (i32.const 0) (i32.const 0) (i32.const 32)))
    (block $done
      (loop $digit
        (br_if $done (i32.ge_s (local.get $at) (local.get $end)))
        (local.set $n (i64.add (i64.mul (local.get $n) (i64.const 10))
          (i64.sub (i64.load8_u (local.get $at)) (i64.const 48))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $digit)))
    (local.get $n))

  (func (export "run") (result i32) (local $n i64) (local $i i64) (local $sum i32)
    (local.set $n (call $rounds))
    (block $done
      (loop $round
        (br_if $done (i64.ge_u (local.get $i) (local.get $n)))
        (local.set $sum (i32.xor (local.get $sum)
          (i32.load (i32.and (i32.wrap_i64 (local.get $i)) (i32.const 0xfffc)))))
        (local.set $i (i64.add (local.get $i) (i64.const 1)))
        (br $round)))
    (i32.store (i32.const 64) (local.get $sum))
    (i32.const 0))

  (func (export "spin") (result i32) (loop $again (br $again)) (unreachable)))
