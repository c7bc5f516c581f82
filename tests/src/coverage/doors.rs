//! Traces of the recorder in a CLR, which the guest of the simulated runtime must have, too: the clauses that their answers
//! show.

use clr_runtime::clause::Clause;
use clr_runtime::generation::Generation;

/// Clauses by the call and the start of its answer.
const ANSWERS: &[(&str, &str, &[u16])] = &[
    ("GetFunctionFromIP(0)", "E_FAIL", &[114]),
    ("GetFunctionFromIP(of data)", "E_FAIL", &[114]),
    ("GetFunctionFromIP(0)", "CORPROF_E_ASYNCHRONOUS_UNSAFE", &[116]),
    ("GetFunctionFromIP(of the first method)", "S_OK the same", &[117]),
    ("GetFunctionFromIP2(0)", "CORPROF_E_UNSUPPORTED_CALL_SEQUENCE", &[119, 173]),
    ("GetCurrentThreadID", "CORPROF_E_NOT_MANAGED_THREAD", &[120]),
    ("GetThreadInfo(0)", "E_INVALIDARG", &[121]),
    ("GetHandleFromThread(0)", "E_INVALIDARG", &[121]),
    ("GetFunctionInfo2(with the frameInfo of another)", "E_INVALIDARG", &[123]),
    ("GetCodeInfo2(without room)", "S_OK 1", &[125]),
    ("GetFunctionFromIP2(0) in a walk", "E_FAIL as around it", &[136]),
    ("GetFunctionFromIP2(0) in a walk", "CORPROF_E_UNSUPPORTED_CALL_SEQUENCE as around it", &[136]),
    ("SuspendRuntime", "CORPROF_E_RUNTIME_UNINITIALIZED", &[126]),
    ("SuspendRuntime", "CORPROF_E_SUSPENSION_IN_PROGRESS", &[126]),
    ("ResumeRuntime alone", "CORPROF_E_UNSUPPORTED_CALL_SEQUENCE", &[127]),
    ("ForceGC", "CORPROF_E_NOT_YET_AVAILABLE", &[174]),
    ("ForceGC", "CORPROF_E_UNSUPPORTED_CALL_SEQUENCE", &[174]),
    ("ForceGC again", "S_OK", &[175]),
    ("DoStackSnapshot(NULL, 2)", "E_INVALIDARG", &[7]),
    ("DoStackSnapshot(NULL, 0) that returns S_FALSE", "CORPROF_E_STACKSNAPSHOT_ABORTED", &[105]),
];

/// Returns the clauses that hold on a runtime and that the answers of a trace show, one for each answer.
pub(super) fn shown(generation: Generation, trace: &str) -> impl Iterator<Item = Clause> {
    let answers = trace.lines().filter_map(|line| line.strip_prefix("  ")?.split_once(": "));
    let clauses = answers.flat_map(|(call, answer)| {
        let shows =
            move |(of, start, _): &&(&str, &str, &[u16])| *of == call && answer.starts_with(start);
        ANSWERS.iter().filter(shows).flat_map(|(.., clauses)| clauses.iter().copied())
    });
    clauses.map(Clause::new).filter(move |clause| clause.holds_on(generation))
}
