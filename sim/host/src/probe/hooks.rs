//! Hooks and mappers of a probe.

use super::profiler::pass;
use super::{Event, Hook};
use clr_com::{ArgumentRange, Bool, FunctionArguments};
use clr_walker::profiling::FunctionId;
use std::ffi::c_void;

/// Lists the hooks of methods, each with its argument, its name, its parameters, and the client's id and the
/// information that it passes on; and the mappers.
macro_rules! code {
    ($($methods:pat => {
        $($argument:literal => $name:literal($($parameter:ident: $type:ty),*) $client:expr, $info:expr;)+
    })+; $($mapped:literal => $map:ident($($map_type:ty),*);)+) => {
        /// Returns the address of a function for an argument of a method, if it takes code.
        pub(super) fn address(method: &str, argument: &str) -> Option<u64> {
            let function = match (method, argument) {
                $($(($methods, $argument) => {
                    unsafe extern "system" fn hook($($parameter: $type),*) {
                        // SAFETY: what the runtime passes is there for the time of the call.
                        #[allow(unused_unsafe, reason = "not all hooks have pointers")]
                        let (client, info) = unsafe { ($client, $info) };
                        pass(&mut Event::Hook(Hook { name: $name, client, info }));
                    }
                    hook as unsafe extern "system" fn($($type),*) as *const ()
                })+)+
                $(($mapped, "mapper") => {
                    $map as unsafe extern "system" fn($($map_type),*) -> u64 as *const ()
                })+
                _ => return None,
            };
            Some(function as usize as u64)
        }
    };
}

code! {
    "SetEnterLeaveFunctionHooks" => {
        "enter" => "FunctionEnter"(client: u64) client, 0;
        "leave" => "FunctionLeave"(client: u64) client, 0;
        "tailcall" => "FunctionTailcall"(client: u64) client, 0;
    }
    "SetEnterLeaveFunctionHooks2" => {
        "enter" => "FunctionEnter2"(_f: u64, client: u64, _frame: u64, all: *const FunctionArguments)
            client, all.read_unaligned().size.into();
        "leave" => "FunctionLeave2"(_f: u64, client: u64, _frame: u64, range: *const ArgumentRange)
            client, range.read_unaligned().size.into();
        "tailcall" => "FunctionTailcall2"(_f: u64, client: u64, _frame: u64) client, 0;
    }
    // The variants without info take the same arguments; only the meaning of the second differs.
    "SetEnterLeaveFunctionHooks3" | "SetEnterLeaveFunctionHooks3WithInfo" => {
        "enter" => "FunctionEnter3"(client: u64, info: u64) client, info;
        "leave" => "FunctionLeave3"(client: u64, info: u64) client, info;
        "tailcall" => "FunctionTailcall3"(client: u64, info: u64) client, info;
    };
    "SetFunctionIDMapper" => map(FunctionId, *mut Bool);
    "SetFunctionIDMapper2" => map_2(FunctionId, *mut c_void, *mut Bool);
}

/// Maps a function to itself. It has no hooks if the receiver fails.
unsafe extern "system" fn map(function: FunctionId, is_hooked: *mut Bool) -> u64 {
    let result = pass(&mut Event::Callback("FunctionIDMapper", function.0));
    // SAFETY: the runtime's pointer, which is not NULL.
    unsafe { is_hooked.write_unaligned(Bool::from(!result.is_failure())) };
    function.0
}

/// As `map`, for a mapper with data.
unsafe extern "system" fn map_2(
    function: FunctionId,
    _client_data: *mut c_void,
    is_hooked: *mut Bool,
) -> u64 {
    // SAFETY: the arguments of the other.
    unsafe { map(function, is_hooked) }
}
