;; Has a global of a type that cannot be put back; counts its calls in another.
(module
  (memory (export "memory") 1)
  (global $v (mut v128) (v128.const i64x2 0 0))
  (global $n (mut i32) (i32.const 0))
  (func (export "run") (result i32) (local $n i32)
    (local.set $n (global.get $n))
    (global.set $n (i32.const 1))
    (local.get $n)))
