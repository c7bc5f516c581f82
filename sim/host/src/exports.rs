//! Exports of a profiler's library that threads of the program call, as managed code does by P/Invoke.
//!
//! A function of unmanaged code in the text [stands for](clr_scenario::Export) the export. It is called as the
//! thread enters that function, so behind the transition of the P/Invoke: the thread is preemptive, and its stack
//! has the Frame of the call.

use clr_codegen::FunctionIndex;
use clr_scenario::{Export, Scenario};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;

/// Most arguments, as [`Function`] has them.
const MOST: usize = Export::MOST_ARGUMENTS;

/// An export. One that takes fewer arguments, or smaller ones, finds those in the same places: callers of C
/// functions remove the arguments that they have passed.
type Function = unsafe extern "system" fn(u64, u64, u64, u64, u64, u64) -> u64;

/// The call of an export.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    function: Function,
    arguments: [u64; MOST],
}

/// Returns the address of an export of a library.
pub(crate) type FindExport<'f> = dyn Fn(&CStr) -> Option<NonNull<c_void>> + 'f;

/// The exports that a text's program calls, by the functions that stand for them.
#[derive(Default)]
pub(crate) struct Exports(BTreeMap<FunctionIndex, Call>);

impl Exports {
    /// Finds the exports of a text in a library.
    ///
    /// # Errors
    /// Returns a sentence that names an export which the library does not have.
    pub(crate) fn find(scenario: &Scenario, library: &FindExport<'_>) -> Result<Self, String> {
        let mut found = BTreeMap::new();
        for (function, export) in &scenario.exports {
            let name = CString::new(export.name.as_str()).ok();
            let Some(address) = name.and_then(|name| library(&name)) else {
                return Err(format!("it does not export {}, which the text calls", export.name));
            };
            let mut arguments = [0; MOST];
            for (argument, given) in arguments.iter_mut().zip(&export.arguments) {
                *argument = *given;
            }
            // SAFETY: the text says that the library exports a function of this name whose arguments are
            // integers.
            let code = unsafe { std::mem::transmute::<NonNull<c_void>, Function>(address) };
            // Journals have names of the program's life: there is one for each export, once.
            let name = Box::leak(export.name.clone().into_boxed_str());
            found.insert(*function, Call { name, function: code, arguments });
        }
        Ok(Self(found))
    }

    /// Returns the call of the export that a function of the program stands for, if the library is loaded.
    pub(crate) fn of(&self, function: FunctionIndex) -> Option<Call> {
        self.0.get(&function).copied()
    }
}

impl Call {
    /// Calls the export.
    pub(crate) fn make(self) {
        let [first, second, third, fourth, fifth, sixth] = self.arguments;
        // SAFETY: an export of the loaded library, with the arguments that the text gives it.
        unsafe { (self.function)(first, second, third, fourth, fifth, sixth) };
    }
}
