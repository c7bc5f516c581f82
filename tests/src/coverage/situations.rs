//! Clauses that follow from the situation and the variant of a recorded call, in addition to its
//! events.

use clr_runtime::clause::Clause;
use clr_runtime::generation::Generation;

/// Clauses by the start of a situation.
const SITUATIONS: &[(&str, &[u16])] = &[
    ("callback:ObjectAllocated", &[129]),
    ("callback:JITCompilationStarted", &[130]),
    ("callback:ThreadCreated", &[131]),
    ("callback:RuntimeThreadSuspended", &[132]),
    ("callback:GarbageCollection", &[133]),
    ("callback:ExceptionCatcher", &[164, 134]),
    ("callback:ExceptionUnwindFinally", &[164, 134]),
    ("callback:ExceptionUnwindFunction", &[134, 166]),
    ("callback:RuntimeSuspend", &[168]),
    ("callback:UnmanagedToManagedTransition:call", &[170]),
    ("callback:ManagedToUnmanagedTransition:return", &[170]),
    ("pinvoke:own-suspension", &[167]),
    ("elt-fast", &[135]),
    ("elt-info", &[171]),
    ("Initialize", &[2]),
];

/// Clauses that say which callbacks come, in which order and mode, by the start of one of them in a sequence, with its
/// last argument.
const ORDERED: &[(&str, &[u16])] = &[
    ("callback:UnmanagedToManagedTransition:call", &[170]),
    ("callback:ManagedToUnmanagedTransition:return", &[170]),
    ("callback:ExceptionCatcher", &[164]),
    ("callback:ExceptionUnwindFinally", &[164]),
    ("callback:ExceptionUnwindFunction", &[164]),
];

/// Clauses by the start of a variant.
const VARIANTS: &[(&str, &[u16])] = &[
    ("own-id", &[13]),
    ("seed-context-size", &[22, 53]),
    ("unseeded-context-size", &[22]),
    ("seed-context-flags-zero", &[23]),
    ("seed-at-page-end", &[162]),
    ("seed-stub-or-dynamic", &[40]),
    ("destroyed-thread-id", &[159, 169, 28]),
    ("zeroed heap block", &[28]),
    ("nested", &[15]),
    ("before-SetEventMask", &[5]),
];

/// Clauses by the start of the variant of a call that ended the process.
const DEATHS: &[(&str, &[u16])] =
    &[("null-callback", &[24]), ("thread-id:", &[159, 169]), ("seed-edge", &[162])];

/// Returns the clauses that follow from the variant of a call that ended the process.
pub(super) fn of_death(variant: &str) -> impl Iterator<Item = Clause> {
    let starts = DEATHS.iter().filter(move |(start, _)| variant.starts_with(start));
    starts.flat_map(|(_, clauses)| clauses.iter().copied().map(Clause::new))
}

/// Returns the clauses that follow from a callback of a sequence, whether there was a walk in it or not.
pub(super) fn ordered(generation: Generation, callback: &str) -> impl Iterator<Item = Clause> {
    let legacy = generation.family().legacy_exceptions.then_some(Clause::new(172));
    let starts = ORDERED.iter().filter(move |(start, _)| callback.starts_with(start));
    starts.flat_map(|(_, clauses)| clauses.iter().copied().map(Clause::new)).chain(legacy)
}

/// Returns the clauses that follow from the situation and the variant of a call.
pub(super) fn shown(
    generation: Generation,
    situation: &str,
    variant: &str,
) -> impl Iterator<Item = Clause> {
    fn of(table: &'static [(&str, &[u16])], text: &str) -> impl Iterator<Item = u16> + use<> {
        let text = text.to_owned();
        let activations = table.iter().filter(move |(start, _)| text.starts_with(start));
        activations.flat_map(|(_, clauses)| clauses.iter().copied())
    }
    let legacy = generation.family().legacy_exceptions.then_some(172);
    let shown = of(SITUATIONS, situation).chain(of(VARIANTS, variant)).chain(legacy);
    shown.map(Clause::new)
}
