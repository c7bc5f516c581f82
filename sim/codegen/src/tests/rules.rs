//! Each rule with a minimal violation, and programs that just satisfy it.

mod build;

use crate::{
    Allocation, CallForm, CallTarget, CallingConvention, CodeKind, EhClause, EhClauseKind,
    EntryForm, Exit, FrameRegister, FrameSet, Function, FunctionIndex, FunctionPart, FunctionShape,
    Interrupt, LinkError, MAX_ARGUMENTS, MAX_CLAUSES, MAX_FUNCTIONS, MAX_LOCALS, MAX_NESTING,
    MAX_PUSHES, Program, ProgramRule, Realign, Release, ReturnForm, RuntimeCall, RuntimeCallKind,
    Statement, TailCallForm, UnwindData, Wrap,
};
use Statement::{Alloca, Call, Clobber, ClobberXmm, Cold, Funclet, If, Loop, Region, Store};
use Statement::{Guarded, Stop, SwitchStack, Throw, Trap, Try, Work};
use build::*;
use clr_unwind::Gpr::{self, R12, R15, Rax, Rbp, Rbx, Rcx, Rsi, Rsp};

/// The tests of all rules. A new rule is not covered by these patterns and so needs a test.
macro_rules! rules {
    ($($name:ident: $rule:pat => $test:block)+) => {
        $(#[test] fn $name() $test)+

        #[expect(dead_code, reason = "it only has to compile")]
        fn each_rule_has_a_test(rule: ProgramRule) {
            match rule { $($rule => {})+ }
        }
    };
}

rules! {
    function_count: ProgramRule::FunctionCount => {
        let of = |count: usize| {
            let functions = (0..count)
                .map(|n| function(&format!("f{n}"), FunctionShape::default()))
                .collect();
            Program { functions, ..Program::default() }
        };
        breach(&of(0), MAIN, FunctionPart::Function, ProgramRule::FunctionCount);
        breach(&of(MAX_FUNCTIONS + 1), MAIN, FunctionPart::Function, ProgramRule::FunctionCount);
        fine(&of(1));
        fine(&of(MAX_FUNCTIONS));
    }

    names: ProgramRule::Name => {
        let named = |name: &str| program(|program| program.functions[1].name = name.into());
        for name in ["", "a b", "ä", "a-b", "main"] {
            breach(&named(name), CALLEE, FunctionPart::Function, ProgramRule::Name);
        }
        fine(&named("A.b::c_9"));
        fine(&named("Main"));
    }

    the_first_entry: ProgramRule::FirstEntry => {
        for entry in [EntryForm::Interrupt, EntryForm::InterruptWithErrorCode] {
            shape_breach(&shaped(|shape| shape.entry = entry), ProgramRule::FirstEntry);
        }
    }

    callees_stand_behind: ProgramRule::Callee => {
        for callee in [MAIN, NOBODY, FunctionIndex(u32::MAX)] {
            let exit = Exit::TailCall(TailCallForm::Near, callee);
            body_breach(0, &body(vec![Call(CallForm::Near, callee)]), ProgramRule::Callee);
            body_breach(0, &body(vec![SwitchStack(callee)]), ProgramRule::Callee);
            body_breach(0, &body(vec![Trap(callee)]), ProgramRule::Callee);
            body_breach(1, &body(vec![Work(1), Statement::Exit(exit)]), ProgramRule::Callee);
            breach(&ending(Some(exit), vec![]), MAIN, FunctionPart::End, ProgramRule::Callee);
        }
        // A function before the caller, or the caller itself.
        let back = program(|p| p.functions[1].body = vec![Call(CallForm::Near, MAIN)]);
        breach(&back, CALLEE, FunctionPart::Statement(0), ProgramRule::Callee);
        fine(&body(vec![Call(CallForm::Near, CALLEE), SwitchStack(CALLEE), Trap(ISR)]));
    }

    interrupts_are_not_called: ProgramRule::CalledInterrupt => {
        let exit = Exit::TailCall(TailCallForm::Memory, ISR);
        body_breach(0, &body(vec![Call(CallForm::Register, ISR)]), ProgramRule::CalledInterrupt);
        body_breach(0, &body(vec![SwitchStack(ISR)]), ProgramRule::CalledInterrupt);
        breach(&ending(Some(exit), vec![]), MAIN, FunctionPart::End, ProgramRule::CalledInterrupt);
    }

    handlers: ProgramRule::Handler => {
        body_breach(0, &body(vec![Trap(CALLEE)]), ProgramRule::Handler);
        for handler in [CALLEE, NOBODY] {
            let interrupts = vec![Interrupt { after: 0, handler }];
            let program = program(|program| program.interrupts = interrupts);
            breach(&program, handler, FunctionPart::Interrupt(0), ProgramRule::Handler);
        }
    }

    the_order_of_interrupts: ProgramRule::InterruptOrder => {
        let at = |times: [u64; 3]| {
            let interrupts = times.map(|after| Interrupt { after, handler: ISR });
            program(|program| program.interrupts = interrupts.into())
        };
        breach(&at([3, 5, 4]), ISR, FunctionPart::Interrupt(2), ProgramRule::InterruptOrder);
        fine(&at([0, 5, 5]));
        fine(&at([0, u64::MAX, u64::MAX]));
    }

    saved_registers: ProgramRule::Saved(_) => {
        let saves = |saves: &[Gpr]| shaped(|shape| shape.saves = saves.to_vec());
        shape_breach(&saves(&[Rbx, Rcx]), ProgramRule::Saved(Rcx));
        shape_breach(&saves(&[Rsp]), ProgramRule::Saved(Rsp));
        shape_breach(&saves(&[Rbx, Rbx]), ProgramRule::Saved(Rbx));
        shape_breach(&system_v(saves(&[Rsi])), ProgramRule::Saved(Rsi));
        fine(&saves(&[Rsi, Rbx]));
        let twice = shaped(|shape| (shape.pushes, shape.saves) = (vec![Rbx], vec![Rbx]));
        shape_breach(&twice, ProgramRule::Saved(Rbx));
        let twice = shaped(|shape| (shape.pushes, shape.home[1]) = (vec![Rbx], Some(Rbx)));
        shape_breach(&twice, ProgramRule::Saved(Rbx));
        // A volatile register is pushed only to take space.
        fine(&shaped(|shape| (shape.pushes, shape.home[1]) = (vec![Rax, Rax], Some(Rax))));
        // In a region: a register saved again, a volatile one, or one saved by an enclosing region.
        let region = |registers: &[Gpr], inner| Region(registers.to_vec(), inner);
        body_breach(0, &body(vec![region(&[Rbx], vec![])]), ProgramRule::Saved(Rbx));
        body_breach(0, &body(vec![region(&[R12, R12], vec![])]), ProgramRule::Saved(R12));
        body_breach(0, &body(vec![region(&[Rax], vec![])]), ProgramRule::Saved(Rax));
        let nested = body(vec![region(&[R12], vec![region(&[R12], vec![])])]);
        body_breach(1, &nested, ProgramRule::Saved(R12));
        fine(&body(vec![region(&[R12], vec![region(&[R15], vec![])]), region(&[R12], vec![])]));
    }

    the_stack_pointer: ProgramRule::StackPointer => {
        shape_breach(&shaped(|shape| shape.pushes = vec![Rbx, Rsp]), ProgramRule::StackPointer);
        shape_breach(&shaped(|shape| shape.home[3] = Some(Rsp)), ProgramRule::StackPointer);
    }

    saved_vector_registers: ProgramRule::SavedXmm(_) => {
        let saves = |saves: &[u8]| shaped(|shape| shape.xmm_saves = saves.to_vec());
        shape_breach(&saves(&[6, 5]), ProgramRule::SavedXmm(5));
        shape_breach(&saves(&[16]), ProgramRule::SavedXmm(16));
        shape_breach(&saves(&[7, 7]), ProgramRule::SavedXmm(7));
        shape_breach(&system_v(saves(&[6])), ProgramRule::SavedXmm(6));
        fine(&saves(&[15, 6]));
    }

    pushes: ProgramRule::Pushes => {
        let pushes = |count| shaped(|shape| shape.pushes = vec![Rax; count]);
        shape_breach(&pushes(MAX_PUSHES + 1), ProgramRule::Pushes);
        fine(&pushes(MAX_PUSHES));
    }

    home_space: ProgramRule::Home => {
        let home = shaped(|shape| shape.home[3] = Some(Rcx));
        fine(&home);
        shape_breach(&system_v(home), ProgramRule::Home);
        let isr = isr(|isr| isr.shape.home[0] = Some(Rcx));
        breach(&isr, ISR, FunctionPart::Shape, ProgramRule::Home);
    }

    locals: ProgramRule::Locals => {
        let locals = |locals| shaped(|shape| shape.locals = locals);
        for bytes in [4, 0x41, MAX_LOCALS + 8, u32::MAX - 7] {
            shape_breach(&locals(bytes), ProgramRule::Locals);
        }
        fine(&locals(8));
        fine(&locals(MAX_LOCALS));
    }

    frame_registers: ProgramRule::FrameRegister => {
        let framed = |pushes: &[Gpr], register, offset| {
            let frame = FrameRegister { offset, ..frame(register) };
            shaped(|shape| (shape.pushes, shape.frame) = (pushes.to_vec(), Some(frame)))
        };
        shape_breach(&framed(&[Rbp], Rbp, 16), ProgramRule::FrameRegister);
        shape_breach(&framed(&[Rbx], Rbp, 0), ProgramRule::FrameRegister);
        shape_breach(&framed(&[Rcx], Rcx, 0), ProgramRule::FrameRegister);
        fine(&framed(&[Rbx, Rbp], Rbx, 15));
    }

    saves_below_the_frame: ProgramRule::SavesBelowFrame => {
        let below = |described, saves: &[Gpr], xmm_saves: &[u8]| {
            let frame = FrameRegister { set: FrameSet::BeforeAllocation, described, ..frame(Rbp) };
            shaped(|shape| {
                (shape.pushes, shape.frame) = (vec![Rbp], Some(frame));
                (shape.saves, shape.xmm_saves) = (saves.to_vec(), xmm_saves.to_vec());
            })
        };
        shape_breach(&below(true, &[Rbx], &[]), ProgramRule::SavesBelowFrame);
        shape_breach(&below(true, &[], &[6]), ProgramRule::SavesBelowFrame);
        fine(&below(false, &[Rbx], &[6]));
        let mut region = below(true, &[], &[]);
        region.functions[0].body = vec![Work(1), Region(vec![Rbx], vec![])];
        body_breach(1, &region, ProgramRule::SavesBelowFrame);
        region.functions[0].body = vec![Region(vec![], vec![])];
        fine(&region);
    }

    releases: ProgramRule::Release => {
        let before = FrameRegister { set: FrameSet::BeforeAllocation, ..frame(Rbp) };
        let released = |pushes: &[Gpr], frame, release| {
            shaped(|shape| {
                (shape.pushes, shape.frame, shape.release) = (pushes.to_vec(), frame, release);
            })
        };
        for release in [Release::Lea, Release::LeaDisp32, Release::Mov, Release::Leave] {
            shape_breach(&released(&[Rbp], None, release), ProgramRule::Release);
        }
        for release in [Release::Mov, Release::Leave] {
            shape_breach(&released(&[Rbp], Some(frame(Rbp)), release), ProgramRule::Release);
            let higher = FrameRegister { offset: 1, ..before };
            shape_breach(&released(&[Rbp], Some(higher), release), ProgramRule::Release);
            fine(&released(&[Rbx, Rbp], Some(before), release));
        }
        let rbx = FrameRegister { register: Rbx, ..before };
        fine(&released(&[Rbp, Rbx], Some(rbx), Release::Mov));
        shape_breach(&released(&[Rbp, Rbx], Some(rbx), Release::Leave), ProgramRule::Release);
        shape_breach(&released(&[Rbp, Rbx], Some(before), Release::Leave), ProgramRule::Release);
        // If rsp moves, only the frame register restores it.
        for release in [Release::Add, Release::AddImm32, Release::Pop, Release::R11] {
            let mut dynamic = released(&[Rbp], Some(frame(Rbp)), release);
            fine(&dynamic);
            dynamic.functions[0].body = vec![Alloca(1)];
            body_breach(0, &dynamic, ProgramRule::Release);
        }
    }

    chkstk: ProgramRule::Chkstk => {
        let probed = shaped(|shape| shape.allocation = Allocation::Chkstk);
        fine(&probed);
        shape_breach(&system_v(probed), ProgramRule::Chkstk);
        let isr = isr(|isr| isr.shape.allocation = Allocation::Chkstk);
        breach(&isr, ISR, FunctionPart::Shape, ProgramRule::Chkstk);
    }

    leaves: ProgramRule::Leaf => {
        let mut program = leaf(Work(1));
        program.functions[0].shape.pushes = vec![Rbx];
        shape_breach(&program, ProgramRule::Leaf);
        for statement in [
            Call(CallForm::Near, CALLEE),
            Throw,
            Loop(1, vec![]),
            Cold(vec![]),
            Try(vec![], vec![]),
            Region(vec![], vec![]),
        ] {
            body_breach(0, &leaf(statement), ProgramRule::Leaf);
        }
        let mut program = leaf(If(true, vec![Statement::Exit(RET), Trap(ISR), Stop, Clobber(Rax)]));
        program.functions[0].shape.scheduled = true;
        fine(&program);
    }

    version_2: ProgramRule::Version2 => {
        let version2 = |change: fn(&mut Function)| {
            program(|program| {
                program.functions[0].shape = FunctionShape::default();
                program.functions[0].shape.unwind = UnwindData::Version2;
                change(&mut program.functions[0]);
            })
        };
        let push = |f: &mut Function| f.shape.allocation = Allocation::Push;
        shape_breach(&version2(push), ProgramRule::Version2);
        shape_breach(&version2(|f| f.shape.release = Release::Pop), ProgramRule::Version2);
        shape_breach(&version2(|f| f.shape.pushes = vec![Rbx, Rcx]), ProgramRule::Version2);
        let leave = |f: &mut Function| {
            f.shape.pushes = vec![Rbp];
            f.shape.release = Release::Leave;
            f.shape.frame = Some(FrameRegister { set: FrameSet::BeforeAllocation, ..frame(Rbp) });
        };
        shape_breach(&version2(leave), ProgramRule::Version2);
        let isr = isr(|isr| isr.shape.unwind = UnwindData::Version2);
        breach(&isr, ISR, FunctionPart::Shape, ProgramRule::Version2);
        let near = |f: &mut Function| f.end = Some(Exit::TailCall(TailCallForm::Near, CALLEE));
        breach(&version2(near), MAIN, FunctionPart::End, ProgramRule::Version2);
        // All epilogues must have one size.
        let early = |f: &mut Function| {
            f.body = vec![If(false, vec![Statement::Exit(Exit::Return(ReturnForm::RepRet))])];
        };
        breach(&version2(early), MAIN, FunctionPart::End, ProgramRule::Version2);
        fine(&version2(|f| f.body = vec![If(false, vec![Statement::Exit(RET)])]));
        fine(&version2(|f| {
            let exit = Exit::TailCall(TailCallForm::Memory, CALLEE);
            (f.body, f.end) = (vec![If(false, vec![Statement::Exit(exit)])], Some(exit));
        }));
    }

    exits_of_interrupts: ProgramRule::InterruptExit => {
        for exit in [
            Exit::Return(ReturnForm::RepRet),
            Exit::TailCall(TailCallForm::Near, NOBODY),
        ] {
            let ended = isr(|isr| isr.end = Some(exit));
            breach(&ended, ISR, FunctionPart::End, ProgramRule::InterruptExit);
            let left = isr(|isr| isr.body = vec![Statement::Exit(exit)]);
            breach(&left, ISR, FunctionPart::Statement(0), ProgramRule::InterruptExit);
        }
    }

    nesting: ProgramRule::Nesting => {
        let nested = |depth| {
            body((1..depth).fold(vec![Work(1)], |inner, _| vec![If(true, inner)]))
        };
        body_breach(MAX_NESTING, &nested(MAX_NESTING + 1), ProgramRule::Nesting);
        fine(&nested(MAX_NESTING));
    }

    clobbered_registers: ProgramRule::Clobber(_) => {
        for register in [Rsp, Rbp, R12] {
            body_breach(1, &body(vec![Clobber(Rax), Clobber(register)]), ProgramRule::Clobber(register));
        }
        let conventions = |convention| {
            let mut program = body(vec![Clobber(Rbx), Clobber(Rsi)]);
            program.convention = convention;
            program
        };
        body_breach(1, &conventions(CallingConvention::WindowsX64), ProgramRule::Clobber(Rsi));
        fine(&conventions(CallingConvention::SystemV));
        // A region saves registers only until its end.
        let region = Region(vec![R12], vec![Region(vec![], vec![Clobber(R12)])]);
        fine(&body(vec![region.clone()]));
        body_breach(3, &body(vec![region, Clobber(R12)]), ProgramRule::Clobber(R12));
        // A funclet saves only the registers that it pushes.
        let mut program = body(vec![Clobber(R12), Funclet(vec![Clobber(Rbx), Clobber(R12)])]);
        program.functions[0].shape.saves = vec![R12];
        body_breach(3, &program, ProgramRule::Clobber(R12));
    }

    clobbered_vector_registers: ProgramRule::ClobberXmm(_) => {
        for n in [6, 15, 16, 255] {
            body_breach(0, &body(vec![ClobberXmm(n)]), ProgramRule::ClobberXmm(n));
        }
        fine(&body(vec![ClobberXmm(0), ClobberXmm(5)]));
        fine(&system_v(body(vec![ClobberXmm(15)])));
        let mut program = body(vec![ClobberXmm(6), Funclet(vec![ClobberXmm(6)])]);
        program.functions[0].shape.xmm_saves = vec![6];
        body_breach(2, &program, ProgramRule::ClobberXmm(6));
    }

    stores: ProgramRule::Store => {
        for offset in [0x40, 0x3C, 4, u32::MAX - 7, u32::MAX] {
            body_breach(0, &body(vec![Store(offset)]), ProgramRule::Store);
        }
        fine(&body(vec![Store(0), Store(0x38)]));
    }

    loops: ProgramRule::Loop => {
        body_breach(0, &body(vec![Loop(0, vec![])]), ProgramRule::Loop);
        fine(&body(vec![Loop(1, vec![]), Loop(255, vec![])]));
    }

    dynamic_stack: ProgramRule::Dynamic => {
        for statement in [Alloca(1), SwitchStack(CALLEE)] {
            fine(&body(vec![statement.clone()]));
            body_breach(1, &body(vec![Funclet(vec![statement.clone()])]), ProgramRule::Dynamic);
            let mut unframed = shaped(|_| {});
            unframed.functions[0].body = vec![statement.clone()];
            body_breach(0, &unframed, ProgramRule::Dynamic);
            let mut undescribed = body(vec![statement]);
            undescribed.functions[0].shape.frame =
                Some(FrameRegister { described: false, ..frame(Rbp) });
            body_breach(0, &undescribed, ProgramRule::Dynamic);
        }
    }

    exits_inside: ProgramRule::ExitHere => {
        let exit = || vec![If(false, vec![Statement::Exit(RET)])];
        body_breach(2, &body(vec![Funclet(exit())]), ProgramRule::ExitHere);
        body_breach(2, &body(vec![Region(vec![], exit())]), ProgramRule::ExitHere);
        body_breach(2, &managed(vec![Guarded(exit(), vec![clause(EhClauseKind::Catch)])]), ProgramRule::ExitHere);
        let mut catch = clause(EhClauseKind::Catch);
        catch.body = exit();
        body_breach(3, &managed(vec![Guarded(vec![Work(1)], vec![catch])]), ProgramRule::ExitHere);
        fine(&body(vec![Cold(exit()), Loop(1, exit()), Try(exit(), exit())]));
    }

    funclets: ProgramRule::Funclet => {
        body_breach(1, &body(vec![Funclet(vec![Funclet(vec![])])]), ProgramRule::Funclet);
        let mut unframed = shaped(|_| {});
        unframed.functions[0].body = vec![Funclet(vec![])];
        body_breach(0, &unframed, ProgramRule::Funclet);
        let mut on_rbx = body(vec![Funclet(vec![])]);
        on_rbx.functions[0].shape.frame = Some(frame(Rbx));
        body_breach(0, &on_rbx, ProgramRule::Funclet);
        let isr = isr(|isr| {
            isr.shape = FunctionShape { entry: EntryForm::Interrupt, ..shape() };
            isr.body = vec![Funclet(vec![])];
        });
        breach(&isr, ISR, FunctionPart::Statement(0), ProgramRule::Funclet);
        fine(&body(vec![Funclet(vec![]), Cold(vec![Funclet(vec![Cold(vec![])])])]));
    }

    regions: ProgramRule::Region => {
        body_breach(2, &body(vec![Funclet(vec![Work(1), Region(vec![], vec![])])]), ProgramRule::Region);
        fine(&body(vec![Region(vec![], vec![Funclet(vec![])])]));
        let guarded = |body| Guarded(body, vec![clause(EhClauseKind::Finally)]);
        body_breach(1, &managed(vec![guarded(vec![Region(vec![], vec![])])]), ProgramRule::Region);
        fine(&managed(vec![Region(vec![], vec![guarded(vec![])])]));
    }

    switches_inside: ProgramRule::SwitchHere => {
        let switch = || vec![SwitchStack(CALLEE)];
        let guarded = |body| vec![Guarded(body, vec![clause(EhClauseKind::Finally)])];
        body_breach(2, &managed(guarded(vec![If(true, switch())])), ProgramRule::SwitchHere);
        fine(&managed([guarded(vec![Alloca(1)]), switch()].concat()));
    }

    guarded: ProgramRule::Guarded => {
        let guarded = || vec![Guarded(vec![], vec![clause(EhClauseKind::Catch)])];
        fine(&managed(guarded()));
        body_breach(0, &body(guarded()), ProgramRule::Guarded);
        let mut on_rbx = managed(guarded());
        on_rbx.functions[0].shape.frame = Some(frame(Rbx));
        body_breach(0, &on_rbx, ProgramRule::Guarded);
        let isr = isr(|isr| {
            isr.kind = CodeKind::Jit;
            isr.shape = FunctionShape { entry: EntryForm::Interrupt, ..shape() };
            isr.body = guarded();
        });
        breach(&isr, ISR, FunctionPart::Statement(0), ProgramRule::Guarded);
        let handler = EhClause { kind: EhClauseKind::Fault, body: guarded() };
        fine(&managed(vec![Guarded(guarded(), vec![handler]), Cold(guarded())]));
        fine(&managed(vec![Funclet(guarded())]));
    }

    clauses: ProgramRule::Clauses => {
        use EhClauseKind::{Catch, Fault, Finally};
        let filtered = || EhClauseKind::Filtered { accepts: false, filter: vec![] };
        let of = |kinds: Vec<EhClauseKind>| {
            managed(vec![Guarded(vec![], kinds.into_iter().map(clause).collect())])
        };
        for kinds in [
            vec![],
            vec![Catch, Finally],
            vec![Finally, Catch],
            vec![Fault, Fault],
            vec![filtered(), Fault],
            vec![Catch; MAX_CLAUSES + 1],
        ] {
            body_breach(0, &of(kinds), ProgramRule::Clauses);
        }
        for kinds in [vec![Finally], vec![Fault], vec![filtered(), Catch], vec![Catch; MAX_CLAUSES]] {
            fine(&of(kinds));
        }
    }

    of_unix: ProgramRule::Unix => {
        let changes: [fn(&mut FunctionShape); 5] = [
            |shape| shape.wrap = Wrap::Inside,
            |shape| shape.wrap = Wrap::Apart,
            |shape| shape.arguments = 2,
            |shape| (shape.realign, shape.pushes, shape.frame) = realigned(),
            |shape| {
                shape.pushes = vec![Rbx];
                shape.frame = Some(FrameRegister { set: FrameSet::BehindPush, ..frame(Rbx) });
            },
        ];
        for change in changes {
            let windows = shaped(change);
            shape_breach(&windows, ProgramRule::Unix);
            fine(&system_v(windows));
            let mut jitted = system_v(shaped(change));
            jitted.functions[0].kind = CodeKind::Jit;
            shape_breach(&jitted, ProgramRule::Unix);
        }
        let signal = isr(|isr| isr.shape.entry = EntryForm::Signal);
        breach(&signal, ISR, FunctionPart::Shape, ProgramRule::Unix);
        fine(&system_v(signal));
        let call = || body(vec![Call(CallForm::Plt, CALLEE)]);
        body_breach(0, &call(), ProgramRule::Unix);
        fine(&system_v(call()));
    }

    realigned_stacks: ProgramRule::Realign => {
        let realigned = |change: fn(&mut FunctionShape)| {
            system_v(shaped(|shape| {
                (shape.realign, shape.pushes, shape.frame) = realigned();
                change(shape);
            }))
        };
        fine(&realigned(|shape| shape.release = Release::Lea));
        shape_breach(&realigned(|shape| shape.frame = None), ProgramRule::Realign);
        shape_breach(&realigned(|shape| shape.pushes.reverse()), ProgramRule::Realign);
        shape_breach(&realigned(|shape| shape.release = Release::R11), ProgramRule::Realign);
        shape_breach(
            &realigned(|shape| shape.frame = Some(FrameRegister { described: false, ..frame(Rbp) })),
            ProgramRule::Realign,
        );
        let mut funclet = realigned(|_| {});
        funclet.functions[0].body = vec![Funclet(vec![])];
        body_breach(0, &funclet, ProgramRule::Funclet);
    }

    code_without_a_frame: ProgramRule::Wrap => {
        let mut both = system_v(shaped(|shape| {
            (shape.realign, shape.pushes, shape.frame) = realigned();
            shape.wrap = Wrap::Inside;
        }));
        shape_breach(&both, ProgramRule::Wrap);
        both.functions[0].shape.realign = Realign::No;
        fine(&both);
        let handler = system_v(isr(|isr| isr.shape.wrap = Wrap::Apart));
        breach(&handler, ISR, FunctionPart::Shape, ProgramRule::Wrap);
    }

    pushed_arguments: ProgramRule::Arguments => {
        let arguments = |count| system_v(shaped(|shape| shape.arguments = count));
        for count in [1, 7, 9, MAX_ARGUMENTS + 2, 255] {
            shape_breach(&arguments(count), ProgramRule::Arguments);
        }
        for count in [0, 2, MAX_ARGUMENTS] {
            fine(&arguments(count));
        }
    }

    ends: ProgramRule::EndReached => {
        for reached in [
            vec![],
            vec![If(false, vec![Stop])],
            vec![Try(vec![Throw], vec![Work(1)])],
            vec![Try(vec![Stop], vec![])],
            vec![Call(CallForm::Near, CALLEE)],
        ] {
            breach(&ending(None, reached), MAIN, FunctionPart::End, ProgramRule::EndReached);
        }
        // A catch resumes after the statement; a finally or fault does not.
        let ending_guarded = |kind| {
            let mut program = managed(vec![Guarded(vec![Throw], vec![clause(kind)])]);
            program.functions[0].end = None;
            program
        };
        let caught = ending_guarded(EhClauseKind::Catch);
        breach(&caught, MAIN, FunctionPart::End, ProgramRule::EndReached);
        fine(&ending_guarded(EhClauseKind::Finally));
        fine(&ending_guarded(EhClauseKind::Fault));
        for left in [
            vec![Stop],
            vec![Throw],
            vec![Statement::Exit(RET)],
            vec![If(true, vec![Loop(2, vec![Throw])])],
            vec![Try(vec![Throw], vec![Stop])],
            vec![Funclet(vec![Stop])],
        ] {
            fine(&ending(None, left));
        }
        let mut never = ending(None, vec![Call(CallForm::Near, CALLEE)]);
        (never.functions[1].body, never.functions[1].end) = (vec![Stop], None);
        fine(&never);
    }

    ways_through_the_runtime: ProgramRule::Runtime(_) => {
        for kind in RuntimeCallKind::ALL {
            for (managed, target) in [
                (false, None),
                (true, None),
                (false, Some(CodeKind::Native)),
                (true, Some(CodeKind::Native)),
                (false, Some(CodeKind::ReadyToRun)),
                (true, Some(CodeKind::Jit)),
            ] {
                let call = RuntimeCall { kind: *kind, target: target.map(|_| CALLEE) };
                let mut program = body(vec![Statement::Runtime(call)]);
                if managed {
                    program.functions[0].kind = CodeKind::Jit;
                }
                program.functions[1].kind = target.unwrap_or_default();
                let wanted = match kind.target() {
                    None if kind.may_name_method() => target != Some(CodeKind::Native),
                    None => target.is_none(),
                    Some(CallTarget::Unmanaged) => target == Some(CodeKind::Native),
                    Some(CallTarget::Managed) => target.is_some_and(|kind| kind != CodeKind::Native),
                };
                if wanted && managed == kind.is_in_managed_code() {
                    assert_eq!(program.check(), Ok(()));
                    let function = MAIN;
                    assert_eq!(program.link().err(), Some(LinkError::NeedsRuntime { function }));
                } else {
                    body_breach(0, &program, ProgramRule::Runtime(*kind));
                }
            }
        }
    }
}
