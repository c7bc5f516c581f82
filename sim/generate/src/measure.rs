//! A measure of the size of programs, which shrinking decreases.

use clr_codegen::{
    Allocation, CallForm, CallingConvention, CodeKind, ColdForm, EhClause, EhClauseKind, EntryForm,
    EpilogueCfi, Exit, FrameSet, Function, FunctionShape, Program, Realign, Release, ReturnForm,
    SaveArea, Statement, TailCallForm, UnwindData, Wrap,
};

/// The size of a program. The order is well-founded; earlier fields are more significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Measure {
    /// Number of functions.
    pub functions: usize,
    /// Number of statements in all functions.
    pub statements: usize,
    /// Number of interrupts from outside.
    pub interrupts: usize,
    /// Distance of shapes, statements and times from the plainest ones.
    pub details: u64,
}

impl Measure {
    /// Measures a program.
    #[must_use]
    pub fn of(program: &Program) -> Self {
        let mut measure = Self {
            functions: program.functions.len(),
            statements: 0,
            interrupts: program.interrupts.len(),
            details: u64::from(program.convention == CallingConvention::SystemV)
                + u64::from(program.signal_stack),
        };
        for function in &program.functions {
            measure.add_function(function);
        }
        for interrupt in &program.interrupts {
            measure.add(interrupt.after);
        }
        measure
    }

    fn add(&mut self, details: u64) {
        self.details = self.details.saturating_add(details);
    }

    fn add_function(&mut self, function: &Function) {
        self.add(match function.kind {
            CodeKind::Native => 0,
            CodeKind::Jit => 1,
            CodeKind::ReadyToRun => 2,
        });
        // Higher than the rank of a plain return, which replaces a missing end.
        self.add(function.end.map_or(1, exit));
        self.add(shape(&function.shape));
        self.add_body(&function.body);
    }

    fn add_body(&mut self, body: &[Statement]) {
        for statement in body {
            self.statements += 1;
            self.add(details(statement));
            for body in statement.bodies() {
                self.add_body(body);
            }
        }
    }
}

/// Returns the rank of an exit: a plain return is the plainest.
pub(super) fn exit(exit: Exit) -> u64 {
    match exit {
        Exit::Return(form) => match form {
            ReturnForm::Ret => 0,
            ReturnForm::RetImm => 1,
            ReturnForm::RepRet => 2,
            ReturnForm::BndRet => 3,
            ReturnForm::RexRet | ReturnForm::VzeroupperRet => 4,
        },
        Exit::TailCall(form, callee) => {
            let form = match form {
                TailCallForm::Near => 5,
                TailCallForm::Register => 6,
                TailCallForm::RegisterMemory => 7,
                TailCallForm::Memory => 8,
                TailCallForm::RegisterWithoutRex => 9,
            };
            form + u64::from(callee.0)
        }
        Exit::Computed => 10,
    }
}

fn call(form: CallForm) -> u64 {
    match form {
        CallForm::Near => 0,
        CallForm::Register => 1,
        CallForm::Memory => 2,
        CallForm::Plt => 3,
    }
}

/// Returns the rank of a statement among statements of its kind, and of the kinds that simplify to
/// it.
fn details(statement: &Statement) -> u64 {
    match statement {
        Statement::Call(form, _) => call(*form),
        Statement::SwitchStack(_) => 4,
        Statement::Clobber(register) => *register as u64,
        Statement::Store(offset) => u64::from(*offset),
        Statement::Work(n) | Statement::ClobberXmm(n) => u64::from(*n),
        Statement::Loop(times, _) => u64::from(*times),
        Statement::If(taken, _) => u64::from(!*taken),
        Statement::Exit(form) => exit(*form),
        Statement::Alloca(units) => u64::from(*units),
        Statement::Region(registers, _) => registers.len() as u64,
        Statement::Guarded(_, clauses) => clauses.iter().map(clause).sum(),
        Statement::Cold(_)
        | Statement::Funclet(_)
        | Statement::Try(..)
        | Statement::Throw
        | Statement::Trap(_)
        | Statement::Runtime(_)
        | Statement::Primitive(_)
        | Statement::Stop => 0,
    }
}

/// Returns the rank of an EH clause: higher than having none.
const fn clause(clause: &EhClause) -> u64 {
    match clause.kind {
        EhClauseKind::Catch => 1,
        EhClauseKind::Unmatched => 6,
        EhClauseKind::Finally => 2,
        EhClauseKind::Fault => 3,
        EhClauseKind::Filtered { accepts: true, .. } => 4,
        EhClauseKind::Filtered { accepts: false, .. } => 5,
    }
}

/// Returns the rank of a release.
pub(super) const fn release(release: Release) -> u64 {
    match release {
        Release::Add => 0,
        Release::AddImm32 => 2,
        Release::Pop => 3,
        Release::Lea => 1,
        Release::LeaDisp32 => 4,
        Release::R11 => 5,
        Release::Mov => 6,
        Release::Leave => 7,
    }
}

fn shape(shape: &FunctionShape) -> u64 {
    let entry = match shape.entry {
        EntryForm::Call => 0,
        EntryForm::Interrupt => 1,
        EntryForm::InterruptWithErrorCode => 2,
        EntryForm::Signal => 3,
    };
    let allocation = match shape.allocation {
        Allocation::Sub => 0,
        Allocation::SubImm32 => 1,
        Allocation::Push => 2,
        Allocation::Probes => 3,
        Allocation::ProbeLoop => 4,
        Allocation::Chkstk => 5,
    };
    let frame = shape.frame.map_or(0, |frame| {
        let set = match frame.set {
            FrameSet::AfterAllocation => 0,
            FrameSet::BeforeAllocation => 1,
            FrameSet::AfterSaves => 2,
            FrameSet::BehindPush => 3,
        };
        32 + u64::from(frame.offset) + set + u64::from(!frame.described)
    });
    let unwind = match shape.unwind {
        UnwindData::None => 0,
        UnwindData::Version1 => 1,
        UnwindData::Version2WithoutEpilogs => 2,
        UnwindData::Version2 => 3,
        UnwindData::Version3 => 4,
    };
    let wrap = match shape.wrap {
        Wrap::Whole => 0,
        Wrap::Inside => 1,
        Wrap::Apart => 2,
    };
    let realign = match shape.realign {
        Realign::No => 0,
        Realign::To32 => 1,
        Realign::To64 => 2,
    };
    let registers = shape.home.iter().flatten().count()
        + shape.pushes.len()
        + shape.saves.len()
        + shape.xmm_saves.len();
    let flags = [
        shape.save_area == SaveArea::BelowLocals,
        shape.scheduled,
        shape.handler,
        shape.cold == ColdForm::Separate,
    ];
    let flags = flags.into_iter().filter(|flag| *flag).count();
    (registers + flags) as u64
        + u64::from(shape.locals)
        + entry
        + allocation
        + release(shape.release)
        + frame
        + unwind
        + wrap
        + realign
        + u64::from(shape.arguments)
        + u64::from(shape.epilogue_cfi == EpilogueCfi::Continued)
}
