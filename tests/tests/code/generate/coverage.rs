//! Checks that every variant of the program's types is generated. The lists are matches without
//! `_`, so that a new variant does not compile until it is added here.

use super::*;
use clr_codegen::{
    Allocation, CallForm, CallingConvention, CodeKind, ColdForm, EntryForm, EpilogueCfi, FrameSet,
    Function, HandlerKind, MAX_LOCALS, MAX_PUSHES, Realign, Release, ReturnForm, SaveArea,
    TailCallForm, UnwindData, Wrap,
};

/// Number of occurrences, by name.
#[derive(Default)]
struct Seen(BTreeMap<String, u32>);

impl Seen {
    fn add(&mut self, name: impl Into<String>) {
        *self.0.entry(name.into()).or_default() += 1;
    }

    fn add_if(&mut self, condition: bool, name: &str) {
        if condition {
            self.add(name);
        }
    }
}

/// Defines a function that names a value's variant, and a list of all names. The variants after
/// `but` belong to the runtime's code, which is not generated here, or to texts alone: a catch that does not match.
macro_rules! variants {
    ($(
        $list:ident, $function:ident: $type:ident { $($name:ident $(($($field:pat),*))?),* $(,)? }
        $(, but $other:pat)?
    )*) => {
        $(
            const $list: &[&str] = &[$(concat!(stringify!($type), "::", stringify!($name))),*];

            fn $function(value: &$type) -> &'static str {
                match value {
                    $($type::$name $(($($field),*))? => {
                        concat!(stringify!($type), "::", stringify!($name))
                    })*
                    $($other => "not drawn",)?
                }
            }
        )*
    };
}

variants! {
    CONVENTIONS, convention: CallingConvention { WindowsX64, SystemV }
    KINDS, kind: CodeKind { Jit, ReadyToRun, Native }
    ENTRIES, entry: EntryForm { Call, Interrupt, InterruptWithErrorCode, Signal }
    WRAPS, wrap: Wrap { Whole, Inside, Apart }
    REALIGNS, realign: Realign { No, To32, To64 }
    EPILOGUE_CFIS, epilogue_cfi: EpilogueCfi { Restored, Continued }
    SAVE_AREAS, save_area: SaveArea { AboveLocals, BelowLocals }
    ALLOCATIONS, allocation: Allocation { Sub, SubImm32, Push, Probes, ProbeLoop, Chkstk }
    FRAME_SETS, frame_set: FrameSet { BehindPush, BeforeAllocation, AfterAllocation, AfterSaves }
    RELEASES, release: Release { Add, AddImm32, Pop, Lea, LeaDisp32, R11, Mov, Leave }
    UNWIND_DATA, unwind: UnwindData { None, Version1, Version2, Version2WithoutEpilogs, Version3 }
    COLD_FORMS, cold: ColdForm { Chained, Separate }
    EXITS, exit: Exit { Return(_), TailCall(_, _) }, but Exit::Computed
    RETURN_FORMS, return_form: ReturnForm { Ret, RetImm, RepRet, BndRet, RexRet, VzeroupperRet }
    TAIL_CALL_FORMS, tail_call: TailCallForm {
        Near, Register, RegisterWithoutRex, RegisterMemory, Memory,
    }
    CALL_FORMS, call: CallForm { Near, Register, Memory, Plt }
    STATEMENTS, statement: Statement {
        Call(_, _), Clobber(_), ClobberXmm(_), Store(_), Work(_), Loop(_, _), If(_, _), Exit(_),
        Alloca(_), Cold(_), Region(_, _), Funclet(_), Try(_, _), Guarded(_, _), Throw, Trap(_),
        SwitchStack(_), Stop,
    }, but Statement::Runtime(_) | Statement::Primitive(_)
    CLAUSES, clause: HandlerKind { Catch, Finally, Fault, Filtered }, but HandlerKind::Unmatched
}

const LISTS: [&[&str]; 18] = [
    WRAPS,
    REALIGNS,
    EPILOGUE_CFIS,
    CONVENTIONS,
    KINDS,
    ENTRIES,
    SAVE_AREAS,
    ALLOCATIONS,
    FRAME_SETS,
    RELEASES,
    UNWIND_DATA,
    COLD_FORMS,
    EXITS,
    RETURN_FORMS,
    TAIL_CALL_FORMS,
    CALL_FORMS,
    STATEMENTS,
    CLAUSES,
];

/// Situations that no single variant shows.
const SITUATIONS: &[&str] = &[
    "an uncaught throw",
    "a throw caught two frames above",
    "an interrupt from outside",
    "two interrupts from outside",
    "three jumps in a row",
    "no end",
    "no end behind a call",
    "a described frame register",
    "a frame register that is not described",
    "rbx as the frame register",
    "r13 as the frame register",
    "the greatest frame offset",
    "the most locals",
    "several pages of locals",
    "an immediate of 8 bits at its limit",
    "as many pushes as there may be",
    "a volatile register pushed",
    "a nonvolatile register in the home space",
    "a volatile register in the home space",
    "all xmm saves",
    "xmm saves and dynamic stack",
    "a mov save",
    "a scheduled prologue",
    "a handler",
    "a region that saves",
    "a body not taken",
    "a Statement::Call in a funclet",
    "a Statement::Trap in a funclet",
    "a Statement::Clobber in a funclet",
    "a Statement::Call in a region",
    "a Statement::Exit in a try",
    "a Statement::Throw in a funclet",
    "a Statement::Call in a guarded",
    "a Statement::Guarded in a guarded",
    "a Statement::Guarded in a handler",
    "a Statement::Guarded in a funclet",
    "a Statement::Guarded in a region",
    "a Statement::Cold in a guarded",
    "a Statement::Cold in a handler",
    "several clauses",
    "a filter that accepts",
    "a filter that does not",
    "a version 2 exit inside",
    "kinds that call each other",
    "pushed arguments",
    "an alternate stack for signals",
    "an exit in the middle that nothing is remembered before",
];

#[test]
fn everything_occurs() {
    let mut seen = Seen::default();
    for program in programs(&Size::SMALL, 6_000).chain(programs(&Size::TINY, 4_000)) {
        see_program(&program, &mut seen);
    }
    let wanted = LISTS.into_iter().flatten().chain(SITUATIONS);
    let rare: Vec<_> =
        wanted.filter(|name| seen.0.get(**name).is_none_or(|times| *times < 3)).collect();
    assert!(rare.is_empty(), "{rare:#?}\n{:#?}", seen.0);
}

#[test]
fn chains_are_deep() {
    let mut depths = 0;
    for program in programs(&Size::DEEP, 300) {
        let mut depth = vec![0; program.functions.len()];
        for (index, function) in program.functions.iter().enumerate().rev() {
            let mut deepest = 0;
            for_each(&function.body, &mut |statement, _| {
                if let Statement::Call(_, callee) = statement {
                    deepest = deepest.max(depth[callee.index()]);
                }
            });
            depth[index] = deepest + 1;
            if let Some(Exit::TailCall(_, callee)) = function.end {
                depth[index] = depth[index].max(depth[callee.index()]);
            }
        }
        depths += depth[0];
    }
    // Some chains end in a handler, and jumps remove frames.
    assert!(depths / 300 >= 31, "{}", depths / 300);
}

fn see_program(program: &Program, seen: &mut Seen) {
    seen.add(convention(&program.convention));
    seen.add_if(!program.interrupts.is_empty(), "an interrupt from outside");
    seen.add_if(program.interrupts.len() > 1, "two interrupts from outside");
    seen.add_if(program.signal_stack > 0, "an alternate stack for signals");
    let estimates = estimate::functions(program);
    seen.add_if(estimates[0].throws, "an uncaught throw");
    for function in &program.functions {
        see_shape(program, function, seen);
        see_body(program, function, &estimates, seen);
        let mut jumps = 0;
        let mut end = function.end;
        while let Some(Exit::TailCall(_, callee)) = end {
            jumps += 1;
            end = program.functions[callee.index()].end;
        }
        seen.add_if(jumps >= 3, "three jumps in a row");
        seen.add_if(function.end.is_none(), "no end");
        let calls = matches!(function.body.last(), Some(Statement::Call(..)));
        seen.add_if(function.end.is_none() && calls, "no end behind a call");
        if let Some(end) = function.end {
            see_exit(end, seen);
        }
    }
}

fn see_exit(way: Exit, seen: &mut Seen) {
    seen.add(exit(&way));
    seen.add(match &way {
        Exit::Return(form) => return_form(form),
        Exit::TailCall(form, _) => tail_call(form),
        Exit::Computed => exit(&way),
    });
}

fn see_shape(program: &Program, function: &Function, seen: &mut Seen) {
    use clr_unwind::Gpr;
    let shape = &function.shape;
    let volatile = |register: &Gpr| !program.convention.is_nonvolatile(*register);
    seen.add(kind(&function.kind));
    seen.add(entry(&shape.entry));
    seen.add(save_area(&shape.save_area));
    seen.add(allocation(&shape.allocation));
    seen.add(release(&shape.release));
    seen.add(unwind(&shape.unwind));
    seen.add(cold(&shape.cold));
    seen.add(wrap(&shape.wrap));
    seen.add(realign(&shape.realign));
    seen.add(epilogue_cfi(&shape.epilogue_cfi));
    seen.add_if(shape.arguments > 0, "pushed arguments");
    if let Some(frame) = shape.frame {
        seen.add(frame_set(&frame.set));
        seen.add_if(frame.described, "a described frame register");
        seen.add_if(!frame.described, "a frame register that is not described");
        seen.add_if(frame.register == Gpr::Rbx, "rbx as the frame register");
        seen.add_if(frame.register == Gpr::R13, "r13 as the frame register");
        seen.add_if(frame.offset == 15, "the greatest frame offset");
    }
    let home = || shape.home.iter().flatten();
    seen.add_if(shape.locals == MAX_LOCALS, "the most locals");
    seen.add_if((0x2000..0x10000).contains(&shape.locals), "several pages of locals");
    let at_limit = shape.locals == 0x78 || shape.locals == 0x80;
    seen.add_if(at_limit, "an immediate of 8 bits at its limit");
    seen.add_if(shape.pushes.len() == MAX_PUSHES, "as many pushes as there may be");
    seen.add_if(shape.pushes.iter().any(volatile), "a volatile register pushed");
    seen.add_if(home().any(|r| !volatile(r)), "a nonvolatile register in the home space");
    seen.add_if(home().any(volatile), "a volatile register in the home space");
    seen.add_if(shape.xmm_saves.len() == 10, "all xmm saves");
    let dynamic = function.body.iter().any(|one| matches!(one, Statement::Alloca(_)));
    seen.add_if(dynamic && !shape.xmm_saves.is_empty(), "xmm saves and dynamic stack");
    seen.add_if(!shape.saves.is_empty(), "a mov save");
    seen.add_if(shape.scheduled, "a scheduled prologue");
    seen.add_if(shape.handler, "a handler");
}

fn see_body(
    program: &Program,
    function: &Function,
    estimates: &[estimate::Estimate],
    seen: &mut Seen,
) {
    for_each(&function.body, &mut |one, outer| {
        let name = statement(one);
        seen.add(name);
        match one {
            Statement::Call(form, callee) => {
                seen.add(call(form));
                let other = program.functions[callee.index()].kind;
                seen.add_if(other != function.kind, "kinds that call each other");
                let body = &program.functions[callee.index()].body;
                let throws = |one: &Statement| *one == Statement::Throw;
                let deeper = !body.iter().any(|one| one.contains(&throws));
                let caught = outer.contains(&"try") && estimates[callee.index()].throws;
                seen.add_if(caught && deeper, "a throw caught two frames above");
            }
            Statement::Exit(exit) => {
                see_exit(*exit, seen);
                let version2 = function.shape.unwind == UnwindData::Version2;
                seen.add_if(version2, "a version 2 exit inside");
                let goes_on = function.shape.epilogue_cfi == EpilogueCfi::Continued;
                seen.add_if(goes_on, "an exit in the middle that nothing is remembered before");
            }
            Statement::If(false, _) => seen.add("a body not taken"),
            Statement::Guarded(_, clauses) => {
                seen.add_if(clauses.len() > 1, "several clauses");
                for one in clauses {
                    seen.add(clause(&one.kind.handler()));
                    if let EhClauseKind::Filtered { accepts, .. } = one.kind {
                        seen.add_if(accepts, "a filter that accepts");
                        seen.add_if(!accepts, "a filter that does not");
                    }
                }
            }
            Statement::Region(registers, _) => {
                seen.add_if(!registers.is_empty(), "a region that saves");
            }
            _ => {}
        }
        for outer in outer {
            seen.add(format!("a {name} in a {outer}"));
        }
    });
}

/// Calls `visit` with every statement and the names of the enclosing ones.
fn for_each(body: &[Statement], visit: &mut impl FnMut(&Statement, &[&str])) {
    fn go<'a>(
        body: &[Statement],
        outer: &mut Vec<&'a str>,
        visit: &mut impl FnMut(&Statement, &[&'a str]),
    ) {
        for statement in body {
            visit(statement, outer);
            let place = match statement {
                Statement::Funclet(_) => "funclet",
                Statement::Region(..) => "region",
                Statement::Try(..) => "try",
                Statement::Guarded(..) => "guarded",
                _ => "body",
            };
            let other =
                if matches!(statement, Statement::Guarded(..)) { "handler" } else { "catch" };
            for (number, inner) in statement.bodies().enumerate() {
                outer.push(if number == 0 { place } else { other });
                go(inner, outer, visit);
                outer.pop();
            }
        }
    }
    go(body, &mut Vec::new(), visit);
}
