;; State that no compiler makes much use of: mutable globals of every type, tables,
;; segments that can be dropped. Like the other worlds it logs what it sees, as
;; words of 16 hexadecimal digits, and then changes all of it.
;;
;; tables.wasm is the same without the lines that end in ";; wide": it has no
;; globals of vectors and references.
(module
  (import "flowhost:task/v1" "read" (func $read (param i32 i32 i32) (result i32)))
  (import "flowhost:task/v1" "output" (func $output (param i32 i32) (result i32)))
  (import "flowhost:task/v1" "fail" (func $fail (param i32 i32) (result i32)))
  (import "flowhost:task/v1" "log" (func $log (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))

  (type $constant (func (result i32)))
  (memory (export "memory") 3 64)
  (table $functions 4 16 funcref)
  (table $externs 2 16 externref)
  (elem (table $functions) (i32.const 0) func $one $two)
  (elem $spare func $three $one)
  (data (i32.const 0) "world{\"code\":\"asked\",\"message\":\"to fail\"}")
  (data $passive "0123456789")

  (global $g_i32 (mut i32) (i32.const 41))
  (global $g_i64 (mut i64) (i64.const -41))
  (global $g_f32 (mut f32) (f32.const 1.5))
  (global $g_f64 (mut f64) (f64.const -2.5))
  (global $g_v128 (mut v128) (v128.const i64x2 0x1111111111111111 0x2222222222222222)) ;; wide
  (global $g_func (mut funcref) (ref.func $two)) ;; wide
  (global $g_extern (mut externref) (ref.null extern)) ;; wide
  (global $at (mut i32) (i32.const 1026)) ;; end of the report

  (func $one (result i32) (i32.const 1))
  (func $two (result i32) (i32.const 2))
  (func $three (result i32) (i32.const 3))

  ;; What the guest sees.

  (func $put8 (param $byte i32)
    (i32.store8 (global.get $at) (local.get $byte))
    (global.set $at (i32.add (global.get $at) (i32.const 1))))

  (func $put (param $n i64) (local $shift i64) (local $digit i32)
    (local.set $shift (i64.const 60))
    (loop $next
      (local.set $digit (i32.and (i32.wrap_i64 (i64.shr_u (local.get $n) (local.get $shift))) (i32.const 15)))
      (call $put8 (i32.add (local.get $digit)
        (select (i32.const 48) (i32.const 87) (i32.lt_u (local.get $digit) (i32.const 10)))))
      (br_if $next (i64.ge_s (local.tee $shift (i64.sub (local.get $shift) (i64.const 4))) (i64.const 0))))
    (call $put8 (i32.const 44)))

  (func $put32 (param $n i32) (call $put (i64.extend_i32_u (local.get $n))))

  (func $memory_sum (result i64) (local $sum i64) (local $p i32) (local $end i32)
    (local.set $end (i32.mul (memory.size) (i32.const 65536)))
    (loop $word
      (local.set $sum (i64.mul (i64.xor (local.get $sum) (i64.load (local.get $p))) (i64.const 0x9e3779b97f4a7c15)))
      (local.set $sum (i64.xor (local.get $sum) (i64.shr_u (local.get $sum) (i64.const 29))))
      (br_if $word (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 8))) (local.get $end))))
    (local.get $sum))

  ;; 0 for an empty element, else what its function gives
  (func $element (param $i i32) (result i32)
    (if (result i32) (ref.is_null (table.get $functions (local.get $i)))
      (then (i32.const 0))
      (else (call_indirect $functions (type $constant) (local.get $i)))))

  (func $look (local $sum i64) (local $at i32) (local $i i32)
    (local.set $sum (call $memory_sum)) ;; first, before anything is written
    (local.set $at (global.get $at))
    (call $put (local.get $sum))
    (call $put32 (memory.size))
    (call $put32 (local.get $at))
    (call $put32 (global.get $g_i32))
    (call $put (global.get $g_i64))
    (call $put32 (i32.reinterpret_f32 (global.get $g_f32)))
    (call $put (i64.reinterpret_f64 (global.get $g_f64)))
    (call $put (i64x2.extract_lane 0 (global.get $g_v128))) ;; wide
    (call $put (i64x2.extract_lane 1 (global.get $g_v128))) ;; wide
    (call $put32 (ref.is_null (global.get $g_extern))) ;; wide
    (call $put32 (table.size $externs))
    (call $put32 (table.size $functions))
    (loop $next
      (call $put32 (call $element (local.get $i)))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (table.size $functions))))
    ;; the function in the global, by way of the last element
    (table.set $functions (i32.const 3) (global.get $g_func)) ;; wide
    (call $put32 (call $element (i32.const 3))) ;; wide
    ;; traps when the segment has been dropped
    (memory.init $passive (i32.const 900) (i32.const 0) (i32.const 10)))

  (func $tell (param $from i32) (local $len i32)
    (i32.store16 (local.get $from) (i32.const 0x227b)) ;; {"
    (i32.store8 (i32.sub (global.get $at) (i32.const 1)) (i32.const 34)) ;; instead of the last comma
    (call $put8 (i32.const 58))
    (call $put8 (i32.const 49))
    (call $put8 (i32.const 125)) ;; :1}
    (local.set $len (i32.sub (global.get $at) (local.get $from)))
    (drop (call $log (i32.const 1) (i32.const 0) (i32.const 5) (local.get $from) (local.get $len)))
    (drop (call $output (local.get $from) (local.get $len))))

  ;; What the guest does.

  (func $change (param $amount i32)
    (global.set $g_i32 (i32.add (global.get $g_i32) (local.get $amount)))
    (global.set $g_i64 (i64.shl (global.get $g_i64) (i64.const 7)))
    (global.set $g_f32 (f32.add (global.get $g_f32) (f32.convert_i32_u (local.get $amount))))
    (global.set $g_f64 (f64.sub (global.get $g_f64) (f64.convert_i32_u (local.get $amount))))
    ;; one half of the vector only, each in its turn
    (if (i32.and (local.get $amount) (i32.const 1)) ;; wide
      (then (global.set $g_v128 (i64x2.replace_lane 0 (global.get $g_v128) (i64.const 3)))) ;; wide
      (else (global.set $g_v128 (i64x2.replace_lane 1 (global.get $g_v128) (i64.const 4))))) ;; wide
    (global.set $g_func (select (result funcref) (ref.func $three) (ref.null func) (i32.and (local.get $amount) (i32.const 2)))) ;; wide
    (i32.store (i32.const 70000) (local.get $amount))
    (memory.fill (i32.const 131072) (local.get $amount) (i32.const 8192))
    (i32.store (i32.const 900) (i32.const 0)))

  ;; One of the things that tables and segments can suffer, by the amount, or none.
  (func $spoil (param $what i32)
    (if (i32.and (local.get $what) (i32.const 16)) ;; traps when the segment has been dropped
      (then (table.init $functions $spare (i32.const 2) (i32.const 0) (i32.const 2))))
    (block $b7 (block $b6 (block $b5 (block $b4 (block $b3 (block $b2 (block $b1 (block $b0
      (br_table $b0 $b1 $b2 $b3 $b4 $b5 $b6 $b7 (i32.and (local.get $what) (i32.const 15))))
      (table.set $functions (i32.const 0) (ref.func $three)) (return))
      (drop (table.grow $functions (ref.func $two) (i32.const 3))) (return))
      (table.fill $functions (i32.const 0) (ref.null func) (i32.const 4)) (return))
      (table.copy $functions $functions (i32.const 0) (i32.const 1) (i32.const 1)) (return))
      (elem.drop $spare) (return))
      (data.drop $passive) (return))
      (drop (table.grow $externs (ref.null extern) (i32.const 1))) (return)))

  ;; writes to all of its new memory and gives 3 if that was not zero before
  (func $grow (param $pages i32) (result i32) (local $at i32) (local $end i32) (local $found i64)
    (local.set $at (memory.grow (local.get $pages)))
    (if (i32.eq (local.get $at) (i32.const -1)) (then (return (i32.const 4))))
    (local.set $at (i32.mul (local.get $at) (i32.const 65536)))
    (local.set $end (i32.mul (memory.size) (i32.const 65536)))
    (loop $word
      (local.set $found (i64.or (local.get $found) (i64.load (local.get $at))))
      (i64.store (local.get $at) (i64.const 7))
      (br_if $word (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (local.get $end))))
    (select (i32.const 0) (i32.const 3) (i64.eqz (local.get $found))))

  (func $deep (param $n i32) (result i32)
    (if (result i32) (local.get $n)
      (then (i32.add (i32.const 1) (call $deep (i32.sub (local.get $n) (i32.const 1)))))
      (else (i32.const 0))))

  (func $number (param $end i32) (result i32) (local $at i32) (local $n i32) (local $c i32)
    (local.set $at (i32.const 512))
    (loop $next
      (local.set $c (i32.sub (i32.load8_u (local.get $at)) (i32.const 48)))
      (if (i32.lt_u (local.get $c) (i32.const 10))
        (then (local.set $n (i32.add (i32.mul (local.get $n) (i32.const 10)) (local.get $c)))))
      (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (local.get $end))))
    (local.get $n))

  (func (export "nothing") (result i32) (i32.const 0))

  (func (export "mutate") (result i32) (local $len i32) (local $amount i32) (local $word i32)
    (local.set $len (global.get $at))
    (call $look)
    (call $tell (i32.sub (local.get $len) (i32.const 2)))
    (local.set $len (call $read (i32.const 0) (i32.const 512) (i32.const 64)))
    (local.set $amount (call $number (i32.add (i32.const 512) (local.get $len))))
    (local.set $word (i32.load16_u (i32.const 513)))
    (call $change (local.get $amount))
    (call $spoil (local.get $amount))
    (if (i32.eq (local.get $word) (i32.const 0x7274)) ;; trap
      (then (unreachable)))
    (if (i32.eq (local.get $word) (i32.const 0x7865)) ;; exit
      (then (call $exit (i32.rem_u (local.get $amount) (i32.const 3)))))
    (if (i32.eq (local.get $word) (i32.const 0x6f6c)) ;; loop
      (then (loop $again (i32.store (i32.const 2048) (local.get $len)) (br $again))))
    (if (i32.eq (local.get $word) (i32.const 0x7267)) ;; grow
      (then (return (call $grow (i32.add (i32.const 1) (i32.rem_u (local.get $amount) (i32.const 16)))))))
    (if (i32.eq (local.get $word) (i32.const 0x6166)) ;; fail
      (then (drop (call $fail (i32.const 5) (i32.const 36))) (return (i32.const 1))))
    (if (i32.eq (local.get $word) (i32.const 0x6564)) ;; deep
      (then (drop (call $deep (i32.const 5000)))))
    (if (i32.eq (local.get $word) (i32.const 0x7277)) ;; wreck
      (then
        (memory.fill (i32.const 0) (i32.or (local.get $amount) (i32.const 1)) (i32.mul (memory.size) (i32.const 65536)))
        (if (i32.and (local.get $amount) (i32.const 1)) (then (unreachable)))))
    (i32.const 0))

  ;; A funcref must be declared before code refers to it.
  (elem declare func $one $two $three))
