//! The jitted code of a code map, by the callbacks of the profiling interface.

use super::{CodeHeaderLayout, JittedCodeError, JittedMethod};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use clr_unwind::{CodeMap, CodeMapError, Convention, Memory};
use thiserror::Error;

/// The jitted bodies that were added to a code map, by function, so that they can be removed when
/// the runtime unloads the function.
///
/// A function has several bodies while tiered compilation, OSR or re-JIT replace it: all of them may
/// be on stacks, so each stays in the map until the function is unloaded.
///
/// ```no_run
/// # fn callbacks(memory: &impl clr_unwind::Memory, function: u64, start: u64, size: u32)
/// # -> Result<(), Box<dyn std::error::Error>> {
/// use clr_unwind::{CodeMap, Convention, SharedCodeMap};
/// use clr_walker::jitted::{CodeHeaderLayout, JittedMethods};
///
/// let map = SharedCodeMap::new(CodeMap::new());
/// let layout = CodeHeaderLayout::of_version(8, 0).ok_or("unknown runtime")?;
/// let mut methods = JittedMethods::new(layout, Convention::SystemV);
/// // JITCompilationFinished, DynamicMethodJITCompilationFinished, ReJITCompilationFinished; start
/// // and size come from GetCodeInfo2, or GetNativeCodeStartAddresses and GetCodeInfo4.
/// map.update(|map| methods.compiled(map, memory, function, start, Some(size)))?;
/// // DynamicMethodUnloaded.
/// map.update(|map| methods.unloaded(map, function));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JittedMethods {
    layout: CodeHeaderLayout,
    convention: Convention,
    /// Function of each body, by the body's start (VA).
    functions: BTreeMap<u64, u64>,
    /// Starts of the bodies of each function (VA).
    starts: BTreeMap<u64, Vec<u64>>,
}

/// An error in adding a jitted body to a code map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum JittedMethodsError {
    /// The body could not be read.
    #[error("{0}")]
    Code(#[from] JittedCodeError),
    /// The code header names another function than the callback: the code was freed, and its memory
    /// used again.
    #[error("the code at {start:#x} belongs to function {found:#x}, not to {expected:#x}")]
    OtherFunction {
        /// Start of the code (VA).
        start: u64,
        /// The function of the code header.
        found: u64,
        /// The function of the callback.
        expected: u64,
    },
    /// The body cannot be a region of a code map.
    #[error("{0}")]
    Region(#[from] CodeMapError),
}

impl JittedMethods {
    /// Creates an empty set. `convention` is that of the target's OS.
    pub const fn new(layout: CodeHeaderLayout, convention: Convention) -> Self {
        Self { layout, convention, functions: BTreeMap::new(), starts: BTreeMap::new() }
    }

    /// Reads the body of a `FunctionID` at `start` (VA), with `size` bytes of code where the caller
    /// knows that, and adds it to `map`. Regions that share an address with it are removed: their
    /// memory was used again.
    ///
    /// # Errors
    /// [`JittedMethodsError`] if the body cannot be read, or belongs to another function.
    pub fn compiled<M: Memory + ?Sized>(
        &mut self,
        map: &mut CodeMap<'_>,
        memory: &M,
        function: u64,
        start: u64,
        size: Option<u32>,
    ) -> Result<(), JittedMethodsError> {
        let method = JittedMethod::read(memory, &self.layout, start, size)?;
        let (found, expected) = (method.method_desc(), function);
        if found != expected {
            return Err(JittedMethodsError::OtherFunction { start, found, expected });
        }
        self.add(map, &method)?;
        Ok(())
    }

    /// Adds a method that was read before, for example found by the runtime's data contracts.
    ///
    /// # Errors
    /// [`CodeMapError`] if the method cannot be a region of a code map.
    pub fn add(
        &mut self,
        map: &mut CodeMap<'_>,
        method: &JittedMethod,
    ) -> Result<(), CodeMapError> {
        let region = method.region(self.convention)?;
        for replaced in map.replace(region) {
            self.forget(replaced.start());
        }
        let (start, function) = (method.code_range().start, method.method_desc());
        self.functions.insert(start, function);
        self.starts.entry(function).or_default().push(start);
        Ok(())
    }

    /// Removes all bodies of a `FunctionID` from `map`, before its code is freed. Returns their
    /// number.
    pub fn unloaded(&mut self, map: &mut CodeMap<'_>, function: u64) -> usize {
        let starts = self.starts.remove(&function).unwrap_or_default();
        for start in &starts {
            self.functions.remove(start);
            map.remove(*start);
        }
        starts.len()
    }

    /// Removes the bodies of all functions for which `is_unloaded` returns true, for example those of
    /// an unloaded module. Returns the number of bodies.
    pub fn unload_where(
        &mut self,
        map: &mut CodeMap<'_>,
        mut is_unloaded: impl FnMut(u64) -> bool,
    ) -> usize {
        let functions: Vec<u64> =
            self.starts.keys().copied().filter(|function| is_unloaded(*function)).collect();
        functions.into_iter().map(|function| self.unloaded(map, function)).sum()
    }

    /// Returns the starts of the bodies of a `FunctionID` (VA), the first compiled one first.
    pub fn bodies(&self, function: u64) -> &[u64] {
        self.starts.get(&function).map_or(&[], Vec::as_slice)
    }

    /// Forgets a body that another one replaced.
    fn forget(&mut self, start: u64) {
        let Some(function) = self.functions.remove(&start) else { return };
        if let Some(starts) = self.starts.get_mut(&function) {
            starts.retain(|other| *other != start);
            if starts.is_empty() {
                self.starts.remove(&function);
            }
        }
    }
}
