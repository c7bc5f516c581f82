//! Hooks and mappers of a probe.

use super::profiler::pass;
use super::{Event, Hook};
use clr_com::{ArgumentRange, Bool, FunctionArguments};
use clr_walker::profiling::FunctionId;
use std::ffi::c_void;

/// Returns the address of a function for an argument of a method, if it takes code.
pub(super) fn address(method: &str, argument: &str) -> Option<u64> {
    let functions: [*const (); 3] = match method {
        "SetEnterLeaveFunctionHooks" => [
            enter as unsafe extern "system" fn(u64) as *const (),
            leave as unsafe extern "system" fn(u64) as *const (),
            tailcall as unsafe extern "system" fn(u64) as *const (),
        ],
        "SetEnterLeaveFunctionHooks2" => [
            enter_2 as unsafe extern "system" fn(u64, u64, u64, *const FunctionArguments)
                as *const (),
            leave_2 as unsafe extern "system" fn(u64, u64, u64, *const ArgumentRange) as *const (),
            tailcall_2 as unsafe extern "system" fn(u64, u64, u64) as *const (),
        ],
        // Those without information have the same arguments, of which the second is another.
        "SetEnterLeaveFunctionHooks3" | "SetEnterLeaveFunctionHooks3WithInfo" => [
            enter_3 as unsafe extern "system" fn(u64, u64) as *const (),
            leave_3 as unsafe extern "system" fn(u64, u64) as *const (),
            tailcall_3 as unsafe extern "system" fn(u64, u64) as *const (),
        ],
        "SetFunctionIDMapper" => {
            [map as unsafe extern "system" fn(FunctionId, *mut Bool) -> u64 as *const (); 3]
        }
        "SetFunctionIDMapper2" => {
            [map_2 as unsafe extern "system" fn(FunctionId, *mut c_void, *mut Bool) -> u64
                as *const (); 3]
        }
        _ => return None,
    };
    let [enter, leave, tailcall] = functions.map(|function| function as usize as u64);
    match argument {
        "enter" | "mapper" => Some(enter),
        "leave" => Some(leave),
        "tailcall" => Some(tailcall),
        _ => None,
    }
}

fn hooked(name: &'static str, client: u64, info: u64) {
    pass(&mut Event::Hook(Hook { name, client, info }));
}

unsafe extern "system" fn enter(client: u64) {
    hooked("FunctionEnter", client, 0);
}

unsafe extern "system" fn leave(client: u64) {
    hooked("FunctionLeave", client, 0);
}

unsafe extern "system" fn tailcall(client: u64) {
    hooked("FunctionTailcall", client, 0);
}

unsafe extern "system" fn enter_2(
    _function: u64,
    client: u64,
    _frame: u64,
    arguments: *const FunctionArguments,
) {
    // SAFETY: the runtime passes arguments for the time of the call.
    let arguments = unsafe { arguments.read_unaligned() };
    hooked("FunctionEnter2", client, arguments.size.into());
}

unsafe extern "system" fn leave_2(
    _function: u64,
    client: u64,
    _frame: u64,
    range: *const ArgumentRange,
) {
    // SAFETY: the runtime passes a range for the time of the call.
    let range = unsafe { range.read_unaligned() };
    hooked("FunctionLeave2", client, range.size.into());
}

unsafe extern "system" fn tailcall_2(_function: u64, client: u64, _frame: u64) {
    hooked("FunctionTailcall2", client, 0);
}

unsafe extern "system" fn enter_3(client: u64, info: u64) {
    hooked("FunctionEnter3", client, info);
}

unsafe extern "system" fn leave_3(client: u64, info: u64) {
    hooked("FunctionLeave3", client, info);
}

unsafe extern "system" fn tailcall_3(client: u64, info: u64) {
    hooked("FunctionTailcall3", client, info);
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
