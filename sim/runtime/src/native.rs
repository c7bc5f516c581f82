//! Native code: modules with their unwind data, and named helpers.

use clr_unwind::CodeMap;

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
    pub const fn map(&self) -> &CodeMap<'a> {
        &self.map
    }

    /// Returns the function at `address` (VA).
    pub fn function(&self, address: u64) -> Option<&NativeFunction> {
        let after = self.functions.partition_point(|function| function.start <= address);
        self.functions.get(after.checked_sub(1)?).filter(|function| address < function.end)
    }

    /// Returns the method that the FCall at `entry` (VA) implements.
    pub fn fcall_method(&self, entry: u64) -> Option<u64> {
        let index = self.fcalls.binary_search_by_key(&entry, |(other, _)| *other).ok()?;
        self.fcalls.get(index).map(|(_, method)| *method)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_at_each_of_their_bytes_in_any_order_of_adding() {
        let mut code = NativeCode::default();
        for start in [0x3000, 0x1000, 0x2000, 0x1100] {
            let (name, module) = (format!("f{start:x}"), "coreclr.dll".to_owned());
            code.add_function(NativeFunction { start, end: start + 0x80, name, module });
        }
        for start in [0x1000, 0x1100, 0x2000, 0x3000] {
            for (address, is_inside) in
                [(start - 1, false), (start, true), (start + 0x7F, true), (start + 0x80, false)]
            {
                let expected = is_inside.then(|| format!("f{start:x}"));
                let found = code.function(address).map(|function| function.name.clone());
                assert_eq!(found, expected, "{address:#x}");
            }
        }
        assert_eq!(NativeCode::default().function(0x1000), None);
    }

    #[test]
    fn fcalls_are_found_by_their_entry_alone() {
        let mut code = NativeCode::default();
        for entry in [0x30, 0x10, 0x40, 0x20] {
            code.add_fcall(entry, entry + 1);
        }
        for entry in [0x10, 0x20, 0x30, 0x40] {
            assert_eq!(code.fcall_method(entry), Some(entry + 1));
            assert_eq!(code.fcall_method(entry + 1), None);
        }
    }
}
