;; Changes a table when it is initialized; counts its calls.
(module
  (memory (export "memory") 1)
  (table $t 1 funcref)
  (elem declare func $run)
  (global $n (mut i32) (i32.const 0))
  (func (export "_initialize") (table.set $t (i32.const 0) (ref.func $run)))
  (func $run (export "run") (result i32) (local $n i32)
    (if (ref.is_null (table.get $t (i32.const 0))) (then (return (i32.const 9))))
    (local.set $n (global.get $n))
    (global.set $n (i32.const 1))
    (local.get $n)))
