//! Native code: modules with their unwind data, and named helpers.

use clr_walker::code_map::CodeMap;

/// Native code of a process.
#[derive(Clone, Debug, Default)]
pub struct NativeCode<'a> {
    map: CodeMap<'a>,
    /// Ascending by start.
    functions: Vec<NativeFunction>,
    /// Entry points of FCalls, with the methods that they implement; ascending by address.
    fcalls: Vec<(u64, u64)>,
}

/// A native function, for explanations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeFunction {
    /// First byte (VA).
    pub start: u64,
    /// End (VA, exclusive).
    pub end: u64,
    /// Name of the function, such as `JIT_WriteBarrier`.
    pub name: String,
    /// Name of the module, such as `coreclr.dll`.
    pub module: String,
}

impl<'a> NativeCode<'a> {
    /// Creates native code that is unwound by `map`.
    #[must_use]
    pub fn new(map: CodeMap<'a>) -> Self {
        Self { map, functions: Vec::new(), fcalls: Vec::new() }
    }

    /// Adds the name of a function.
    pub fn add_function(&mut self, function: NativeFunction) {
        let at = self.functions.partition_point(|other| other.start < function.start);
        self.functions.insert(at, function);
    }

    /// Makes `entry` (VA) the FCall that implements the method with this FunctionID.
    pub fn add_fcall(&mut self, entry: u64, method: u64) {
        let at = self.fcalls.partition_point(|(other, _)| *other < entry);
        self.fcalls.insert(at, (entry, method));
    }

    /// Returns the code map with the unwind data.
    #[must_use]
    pub const fn map(&self) -> &CodeMap<'a> {
        &self.map
    }

    /// Returns the function at `address` (VA).
    #[must_use]
    pub fn function(&self, address: u64) -> Option<&NativeFunction> {
        let after = self.functions.partition_point(|function| function.start <= address);
        self.functions.get(after.checked_sub(1)?).filter(|function| address < function.end)
    }

    /// Returns the method that the FCall at `entry` (VA) implements.
    #[must_use]
    pub fn fcall_method(&self, entry: u64) -> Option<u64> {
        let index = self.fcalls.binary_search_by_key(&entry, |(other, _)| *other).ok()?;
        self.fcalls.get(index).map(|(_, method)| *method)
    }
}
