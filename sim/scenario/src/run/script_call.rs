//! Calls of the runtime's methods by a script.

use super::script::{Script, hresult, index};
use crate::model::{ProfilerMethod, ThreadName, profiler_methods};
use clr_explore::{CurrentThread, ExaminedThread};
use clr_runtime::profiling::HResult;
use clr_walker::profiling::{
    CodeRange, FunctionId, ProfilerInfo as _, SnapshotFlags, SnapshotFrame, SnapshotRequest,
    TargetThread as _,
};

/// Token of the first class of a module: before it is the type of global functions.
const FIRST_CLASS: u32 = 0x0200_0002;

/// Implements the calls.
macro_rules! calls {
    (|$info:ident, $ip:ident, $found:ident, $function:ident, $thread:ident|
        $($(#[$doc:meta])* $method:ident => $call:expr;)*) => {
        impl Script<'_> {
            /// Calls a method about a thread.
            pub(super) fn call(
                &self,
                me: &CurrentThread<'_, '_>,
                method: ProfilerMethod,
                (of, target): (ThreadName, &ExaminedThread<'_, '_, '_>),
            ) -> HResult {
                let $info = me.info();
                let place = index(of, me);
                let $ip = || self.registers(me, of, target).map_or(0, |registers| registers.rip);
                let $found = |function: FunctionId| {
                    self.memory(me).functions.insert(place, function);
                };
                let $function = || {
                    let found = self.memory(me).functions.get(&place).copied();
                    found.unwrap_or(FunctionId(0))
                };
                let $thread = || target.id();
                match method {
                    $(ProfilerMethod::$method => hresult(&$call),)*
                }
            }
        }
    };
}

profiler_methods!(calls);
