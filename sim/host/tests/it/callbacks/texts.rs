//! The texts that the callbacks are raised by.

/// An exception passes a `finally` of its caller, and is caught by the caller's caller.
pub(crate) const CATCH: &str = r#"
function "App.Main" kind="jit" { push "rbp"; frame "rbp" set="after-saves"; body { guarded { call "App.Middle" }; on-catch { work 1 } } }
function "App.Middle" kind="jit" { push "rbp"; frame "rbp" set="after-saves"; body { guarded { call "App.Thrower" }; on-finally { work 1 } } }
function "App.Thrower" kind="jit" { body { raise } }
stop "end"
"#;

/// A filter refuses an exception, and one accepts it.
pub(crate) const FILTERS: &str = r#"
function "App.Main" kind="jit" { push "rbp"; frame "rbp" set="after-saves";
    body { guarded { call "App.Middle" }; on-filter { work 1 }; on-catch { work 1 } }
}
function "App.Middle" kind="jit" { push "rbp"; frame "rbp" set="after-saves";
    body { guarded { call "App.Thrower" }; on-filter accepts=#false { work 1 }; on-catch { work 1 } }
}
function "App.Thrower" kind="jit" { body { raise } }
stop "end"
"#;

/// An exception is thrown again, by a catch and by the native code that runs a class constructor; then another
/// one is thrown by the hardware.
pub(crate) const AGAIN: &str = r#"
function "App.Main" kind="jit" { push "rbp"; frame "rbp" set="after-saves";
    body {
        new
        guarded { call "App.Middle" }
        on-catch { work 1 }
        guarded { class-constructor "App.Init" }
        on-catch { work 1 }
        guarded { call "App.Faults" }
        on-catch { work 1 }
    }
}
function "App.Middle" kind="jit" { push "rbp"; frame "rbp" set="after-saves";
    body { guarded { call "App.Thrower" }; on-catch { rethrow } }
}
function "App.Faults" kind="jit" { body { null-dereference } }
function "App.Init" kind="jit" { body { call "App.Thrower" } }
function "App.Thrower" kind="jit" { body { raise } }
stop "end"
"#;

/// Calls between managed and unmanaged code.
pub(crate) const TRANSITIONS: &str = r#"
function "App.Main" kind="jit" {
    body {
        p-invoke-stub "Lib.Each"
        p-invoke-vararg "Lib.Print"
        p-invoke-calli "Lib.Each"
        com-call "Lib.Com"
        p-invoke-stub "Lib.Each"
    }
}
function "Lib.Each" { body { reverse-p-invoke "App.Back" } }
function "Lib.Com" { body { com-method "App.Served" } }
function "Lib.Print" { body { work 1 } }
function "App.Back" kind="jit" { body { work 1 } }
function "App.Served" kind="jit" { body { work 1 } }
stop "end"
"#;

/// Methods are compiled, searched for, and unloaded.
pub(crate) const CODE: &str = r#"
function "App.Main" kind="jit" {
    body {
        first-call "App.Late"
        first-call "App.Ready"
        first-call "App.Emitted"
        first-call "Plugin.Run"
        unload-dynamic-method "App.Emitted"
        unload-assembly "Plugin.Run"
    }
}
module "App.dll" { type "App" }
module "Plugin.dll" { type "Plugin" }
function "App.Late" kind="jit" { inlines "App.Ready" }
function "App.Ready" kind="ready-to-run"
function "App.Emitted" kind="jit" method="dynamic"
function "Plugin.Run" kind="jit"
stop "end"
"#;

/// Objects, handles and GCs: each second GC does not move objects.
pub(crate) const HEAP: &str = r#"
function "App.Main" kind="jit" {
    body {
        destroy-handle
        new
        new
        create-handle
        collect-compacting
        new-with-gc
        destroy-handle
        collect-compacting
        name-thread
    }
}
stop "end"
"#;

/// GCs and a handle before any object.
pub(crate) const EMPTY_HEAP: &str = r#"
function "App.Main" kind="jit" { body { collect; create-handle; collect } }
stop "end"
"#;

/// The object of a finalizer is queued.
pub(crate) const FINALIZER: &str = r#"
function "App.Main" kind="jit" { body { new-finalizable "App.Finalize"; collect; await-finalizers } }
function "App.Finalize" kind="jit"
thread "main" start="App.Main"
thread "finalizer" finalizer=#true
stop "end"
"#;

/// A server GC's thread makes the GC.
pub(crate) const SERVER_GC: &str = r#"
function "App.Main" kind="jit" { body { new; collect; new-with-gc } }
thread "main"
thread "gc" gc=#true
stop "end"
"#;

/// The program does not name what it is about.
pub(crate) const UNNAMED: &str = r#"
function "App.Main" kind="jit" {
    body { load-assembly; unload-assembly; unload-dynamic-method; dynamic-helper }
}
stop "end"
"#;

/// The process ends with its first thread.
pub(crate) const EXIT: &str = r#"
function "App.Main" kind="jit" { body { work 1 } }
thread "main" exits=#true
stop "end"
"#;

pub(crate) const ALL: &[&str] = &[
    CATCH,
    FILTERS,
    AGAIN,
    TRANSITIONS,
    CODE,
    HEAP,
    EMPTY_HEAP,
    FINALIZER,
    SERVER_GC,
    UNNAMED,
    EXIT,
];
