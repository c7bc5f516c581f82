//! The methods of the runtime that a script can call, each said once: its word in a text, and its arguments.

use super::ThreadName;
use super::act::{Script, hresult, index};
use crate::keywords::Keyword;
use clr_explore::{CurrentThread, ExaminedThread};
use clr_runtime::profiling::HResult;
use clr_walker::profiling::{CodeRange, FunctionId, ProfilerInfo as _, TargetThread as _};

/// Token of the first class of a module: before it is the type of global functions.
const FIRST_CLASS: u32 = 0x0200_0002;

/// Declares the methods, and their calls by means of values with these names.
macro_rules! calls {
    (|$info:ident, $ip:ident, $found:ident, $function:ident, $thread:ident|
        $($(#[$doc:meta])* $method:ident => $call:expr;)*) => {
        /// A method of the runtime that a script can call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ProfilerMethod {
            $($(#[$doc])* $method,)*
        }

        impl Keyword for ProfilerMethod {
            const WORDS: &'static [&'static str] = &[$(stringify!($method)),*];

            fn word(self) -> &'static str {
                match self { $(Self::$method => stringify!($method),)* }
            }

            fn from_word(word: &str) -> Option<Self> {
                $(if word == stringify!($method) { return Some(Self::$method); })*
                None
            }
        }

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

calls! {
    |info, ip, found, function, thread|
    /// `GetFunctionFromIP`, with the ip of the thread's registers.
    GetFunctionFromIP => info.get_function_from_ip(ip()).map(found);
    /// `GetFunctionFromIP2`, with the same ip.
    GetFunctionFromIP2 => info.get_function_from_ip2(ip()).map(|(function, _)| found(function));
    /// `GetFunctionFromIP3`, with the same ip.
    GetFunctionFromIP3 => info.get_function_from_ip3(ip()).map(|(function, _)| found(function));
    /// `GetFunctionInfo2`, with the function that was last found on the thread.
    GetFunctionInfo2 => info.get_function_info2(function(), None, 0);
    /// `GetClassFromTokenAndTypeArgs`, with the first class of that function's module, which `GetFunctionInfo2` gives.
    GetClassFromTokenAndTypeArgs => info.get_function_info2(function(), None, 0).and_then(|it| {
        info.get_class_from_token_and_type_args(it.module, FIRST_CLASS, &[])
    });
    /// `GetCodeInfo2`, with the function that was last found on the thread.
    GetCodeInfo2 => info.get_code_info2(function(), &mut [CodeRange { start: 0, size: 0 }; 8]);
    /// `GetThreadInfo`, with the thread's id.
    GetThreadInfo => info.get_thread_info(thread());
    /// `GetHandleFromThread`, with the thread's id.
    GetHandleFromThread => info.get_handle_from_thread(thread());
    /// `GetCurrentThreadID`.
    GetCurrentThreadID => info.get_current_thread_id();
    /// `EnumThreads`, which waits for a GC in progress (H-06).
    EnumThreads => info.enum_threads();
    /// `ForceGC`, on the calling thread.
    ForceGC => info.force_gc();
    /// `InitializeCurrentThread`.
    InitializeCurrentThread => info.initialize_current_thread();
    /// `GetEventMask`.
    GetEventMask => info.get_event_mask();
}
