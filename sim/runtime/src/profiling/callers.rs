//! Who may call which method.

use super::Accepts;

/// The callers of each method of `ICorProfilerInfo`, with their source: a table with a line for each.
pub const CALLERS: &str = include_str!("callers.tsv");

/// Returns the callers of a method of `ICorProfilerInfo`, given its name. A method that nobody may call has none.
pub fn callers_of(method: &str) -> Option<Accepts> {
    let row =
        |line: &'static str| line.strip_prefix(method)?.strip_prefix('\t')?.split('\t').next();
    match CALLERS.lines().find_map(row)? {
        "all" => Some(Accepts::All),
        "callbacks" => Some(Accepts::Callbacks),
        "triggers" => Some(Accepts::TriggeringCallbacks),
        _ => None,
    }
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
