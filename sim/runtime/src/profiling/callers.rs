//! The callers of methods, by name.

use super::Accepts;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The callers of each method of `ICorProfilerInfo`, with their source: a table with a line for each.
const CALLERS: &str = include_str!("callers.tsv");

/// Returns the callers of a method of `ICorProfilerInfo`, given its name. A method that nobody may call has none.
pub fn callers_of(method: &str) -> Option<Accepts> {
    static ROWS: LazyLock<BTreeMap<&str, Accepts>> = LazyLock::new(|| {
        let rows = CALLERS.lines().filter_map(|line| {
            let mut cells = line.split('\t');
            let (method, callers) = (cells.next()?, cells.next()?);
            let accepts = match callers {
                "all" => Accepts::All,
                "callbacks" => Accepts::Callbacks,
                "triggers" => Accepts::TriggeringCallbacks,
                _ => return None,
            };
            Some((method, accepts))
        });
        rows.collect()
    });
    ROWS.get(method).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiling::InfoMethod;

    #[test]
    fn simulated_methods_have_the_callers_of_the_table() {
        assert_eq!(callers_of("GetILToNativeMapping"), Some(Accepts::Callbacks));
        assert_eq!(callers_of("GetILToNative"), None, "a part of a name");
        assert_eq!(callers_of("SetFunctionReJIT"), None);
        for method in InfoMethod::ALL {
            let found = callers_of(method.name());
            let own_rules = matches!(method.accepts(), Accepts::Special | Accepts::LookUps);
            assert!(found == Some(method.accepts()) || own_rules, "{}: {found:?}", method.name());
        }
    }
}
