//! Exports of a profiler's library that threads of the program call, as managed code does by P/Invoke.
//!
//! A function of unmanaged code in the text [stands for](clr_scenario::Export) the export. It is called as the
//! thread enters that function, so behind the transition of the P/Invoke: the thread is preemptive, and its stack
//! has the Frame of the call.

use crate::buffers::{Buffers, kept};
use crate::report::Finding;
use clr_codegen::FunctionIndex;
use clr_scenario::{ExpectedContent, Export, ExportArgument, Scenario};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;
use std::rc::Rc;

/// Most arguments, as [`Function`] has them.
const MOST: usize = Export::MOST_ARGUMENTS;

/// An export, by the calling convention of C on the system of the library. One that takes fewer arguments, or smaller
/// ones, finds those in the same places: callers of C functions remove the arguments that they have passed.
type Function =
    unsafe extern "system" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> u64;

/// The call of an export.
pub(crate) struct Call {
    pub(crate) name: &'static str,
    function: Function,
    arguments: Vec<ExportArgument>,
    result: Option<u32>,
    expect: Vec<ExpectedContent>,
}

/// Returns the address of an export of a library.
pub(crate) type FindExport<'f> = dyn Fn(&CStr) -> Option<NonNull<c_void>> + 'f;

/// The exports that a text's program calls, by the functions that stand for them, and their buffers.
#[derive(Default)]
pub(crate) struct Exports {
    calls: BTreeMap<FunctionIndex, Rc<Call>>,
    buffers: Option<Rc<Buffers>>,
    /// The program has loaded the library.
    pub(crate) is_imported: bool,
}

impl Exports {
    /// Finds the exports of a text in a library. The buffers keep what they hold.
    ///
    /// # Errors
    /// Returns a sentence that names an export which the library does not have.
    pub(crate) fn find(
        &mut self,
        scenario: &Scenario,
        library: &FindExport<'_>,
    ) -> Result<(), String> {
        for (function, export) in &scenario.exports {
            let name = CString::new(export.name.as_str()).ok();
            let Some(address) = name.and_then(|name| library(&name)) else {
                return Err(format!("it does not export {}, which the text calls", export.name));
            };
            // SAFETY: the text says that the library exports a function of this name whose arguments are
            // integers and pointers.
            let code = unsafe { std::mem::transmute::<NonNull<c_void>, Function>(address) };
            let call = Call {
                name: kept(&export.name),
                function: code,
                arguments: export.arguments.clone(),
                result: export.result,
                expect: export.expect.clone(),
            };
            self.calls.insert(*function, Rc::new(call));
        }
        self.buffers.get_or_insert_with(|| Rc::new(Buffers::new(&scenario.buffers)));
        Ok(())
    }

    /// Returns the call of the export that a function of the program stands for, if the library is loaded, and the
    /// buffers.
    pub(crate) fn of(&self, function: FunctionIndex) -> Option<(Rc<Call>, Rc<Buffers>)> {
        Some((Rc::clone(self.calls.get(&function)?), Rc::clone(self.buffers.as_ref()?)))
    }
}

impl Call {
    /// Calls the export.
    pub(crate) fn make(&self, buffers: &Buffers) {
        let mut arguments = [0; MOST];
        for (argument, given) in arguments.iter_mut().zip(&self.arguments) {
            *argument = match *given {
                ExportArgument::Number(number) => number,
                ExportArgument::Address(buffer) => buffers.address(buffer),
                ExportArgument::Content(buffer) => buffers.number(buffer),
            };
        }
        let [first, second, third, fourth, fifth, sixth, rest @ ..] = arguments;
        let [seventh, eighth, ninth, tenth, eleventh, last] = rest;
        // SAFETY: an export of the loaded library, with the arguments that the text gives it.
        let result = unsafe {
            (self.function)(
                first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth,
                eleventh, last,
            )
        };
        if let Some(buffer) = self.result {
            buffers.set_number(buffer, result);
        }
    }

    /// Returns what is wrong with the buffers after a call: what they hold, or what is behind them.
    pub(crate) fn mistakes(&self, buffers: &Buffers) -> Vec<Finding> {
        let export = self.name;
        let content = self.expect.iter().filter_map(|expected| {
            let found = buffers.number(expected.buffer);
            let buffer = buffers.name(expected.buffer);
            let ExpectedContent { is, not, .. } = *expected;
            let finding = Finding::Content { export, buffer, is, not, found };
            (!expected.holds(found)).then_some(finding)
        });
        let behind = buffers.written_behind().map(|(buffer, size)| Finding::WroteBehind {
            callback: export,
            buffer,
            size,
        });
        content.chain(behind).collect()
    }
}
