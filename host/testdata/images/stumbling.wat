;; Breaks in its warm-up, after it has changed something; counts its calls.
(module
  (memory (export "memory") 1)
  (global $n (mut i32) (i32.const 0))
  (func (export "flowhost_warmup") (result i32) (global.set $n (i32.const 5)) (unreachable))
  (func (export "run") (result i32) (local $n i32)
    (local.set $n (global.get $n))
    (global.set $n (i32.const 1))
    (local.get $n)))
