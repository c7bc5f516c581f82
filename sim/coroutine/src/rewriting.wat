;; Switches between coroutines, for rewriting.rs. It says what the numbers are: offsets in its `Switch`.
(module
  (import "clrsim" "memory" (memory 0))
  (import "clrsim" "__stack_pointer" (global $stack (mut i32)))
  (import "clrsim" "__indirect_function_table" (table 0 funcref))
  ;; The pass Asyncify takes their places.
  (import "asyncify" "start_unwind" (func $start_unwind (param i32)))
  (import "asyncify" "stop_unwind" (func $stop_unwind))
  (import "asyncify" "start_rewind" (func $start_rewind (param i32)))
  (import "asyncify" "stop_rewind" (func $stop_rewind))
  (type $enter (func (param i32)))

  (func (export "resume") (param $switch i32) (result i32)
    (local $own i32)
    (local.set $own (global.get $stack))
    (global.set $stack (i32.load offset=8 (local.get $switch)))
    (if (i32.load offset=12 (local.get $switch))
      (then
        (i32.store offset=12 (local.get $switch) (i32.const 2))
        (call $start_rewind (local.get $switch))))
    (call_indirect (type $enter) (local.get $switch) (i32.load offset=16 (local.get $switch)))
    (global.set $stack (local.get $own))
    (if (i32.load offset=12 (local.get $switch))
      (then (call $stop_unwind)))
    (i32.load offset=12 (local.get $switch)))

  (func (export "suspend") (param $switch i32)
    ;; The functions go on, and this one is the last.
    (if (i32.eq (i32.load offset=12 (local.get $switch)) (i32.const 2))
      (then
        (i32.store offset=12 (local.get $switch) (i32.const 0))
        (call $stop_rewind))
      (else
        (i32.store offset=8 (local.get $switch) (global.get $stack))
        (i32.store offset=12 (local.get $switch) (i32.const 1))
        (call $start_unwind (local.get $switch))))))
