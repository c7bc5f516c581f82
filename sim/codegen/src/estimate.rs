//! Upper bounds of a program's cost, and the ways in which its functions end, without executing it.
//!
//! The generator keeps programs short with these estimates. Every figure errs on the high side.

use super::guarded::{EhClause, HandlerKind};
use super::program::{CallForm, Exit, Function, FunctionIndex, Program, Statement};
use super::shape::{Allocation, EntryForm, FunctionShape, Realign, Wrap};

/// The cost of a function including its callees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Maximum number of executed instructions.
    pub instructions: u64,
    /// Maximum number of bytes of stack, including what the caller or an interrupt pushes.
    pub stack: u64,
    /// The function never returns to its caller.
    pub never_returns: bool,
    /// An exception may leave the function.
    pub throws: bool,
}

/// Returns the estimates of a program's functions, by index.
pub fn functions(program: &Program) -> Vec<Estimate> {
    let mut estimates = vec![Estimate::default(); program.functions.len()];
    // Callees have higher indices, so their estimates are already there.
    for (index, function) in program.functions.iter().enumerate().rev() {
        estimates[index] = self::function(function, &estimates);
    }
    estimates
}

/// Returns the estimate of a program with its interrupts, any of which may arrive while another is
/// being handled.
pub fn program(program: &Program) -> Estimate {
    let estimates = functions(program);
    let mut total = of(&estimates, FunctionIndex(0));
    for interrupt in &program.interrupts {
        let handler = of(&estimates, interrupt.handler);
        total.instructions = total.instructions.saturating_add(handler.instructions);
        total.stack = total.stack.saturating_add(handler.stack);
    }
    total
}

/// Returns the estimate of a function whose callees' estimates are known.
pub fn function(function: &Function, estimates: &[Estimate]) -> Estimate {
    let mut cost = Cost { instructions: overhead(&function.shape), ..Cost::default() };
    cost.add_body(&function.body, 1, &function.shape, estimates);
    if let Some(Exit::TailCall(_, callee)) = function.end {
        cost.call(callee, 1, estimates);
    }
    let body = flow(&function.body, estimates);
    let end = function.end.map_or(Flow::STOPS, |exit| leave(exit, estimates));
    let end = if body.completes { end } else { Flow::STOPS };
    Estimate {
        instructions: cost.instructions,
        stack: frame(&function.shape).saturating_add(cost.dynamic).saturating_add(cost.callee),
        never_returns: !body.returns && !end.returns,
        throws: body.throws || body.escapes || end.throws,
    }
}

/// Returns the estimate of the function with the given id.
pub fn of(estimates: &[Estimate], function: FunctionIndex) -> Estimate {
    estimates.get(function.index()).copied().unwrap_or_default()
}

/// Returns the number of instructions of the prologue and the epilogue.
pub fn overhead(shape: &FunctionShape) -> u64 {
    let saves = shape.pushes.len()
        + shape.saves.len()
        + shape.xmm_saves.len()
        + shape.home.iter().flatten().count()
        + usize::from(shape.realign != Realign::No) * 4
        + usize::from(shape.wrap != Wrap::Whole) * 3;
    let scheduled = if shape.scheduled { saves as u64 + 4 } else { 0 };
    let pages = u64::from(shape.locals) / 4096 + 1;
    let allocation = match shape.allocation {
        Allocation::Sub | Allocation::SubImm32 | Allocation::Push => 0,
        Allocation::Probes => pages,
        Allocation::ProbeLoop | Allocation::Chkstk => 16 + 4 * pages,
    };
    10 + 2 * saves as u64 + scheduled + allocation
}

/// Returns the size of a frame in bytes without its dynamic part, with room for a machine frame and
/// for regions' saves.
pub fn frame(shape: &FunctionShape) -> u64 {
    let saves = 8 * (shape.pushes.len() + shape.saves.len()) + 16 * shape.xmm_saves.len();
    // The registers that the kernel saves for a signal, and the red zone.
    let signal = if shape.entry == EntryForm::Signal { 1024 } else { 0 };
    256 + signal + saves as u64 + 8 * u64::from(shape.arguments) + u64::from(shape.locals)
}

/// Returns the number of instructions of a statement, without its bodies and its callees.
pub fn step(statement: &Statement, shape: &FunctionShape) -> u64 {
    match statement {
        Statement::Clobber(_) | Statement::Store(_) | Statement::If(..) | Statement::Stop => 2,
        Statement::Call(form, _) => {
            let through_table = if *form == CallForm::Plt { 20 } else { 0 };
            // Arguments are pushed one by one and released with one instruction.
            let passed = u64::from(shape.arguments) + u64::from(shape.arguments > 0);
            3 + passed + through_table
        }
        Statement::ClobberXmm(_) | Statement::Cold(_) => 3,
        Statement::Work(n) => u64::from(*n) + 1,
        Statement::Loop(times, _) => 4 + 4 * u64::from(*times),
        Statement::Exit(_) | Statement::Trap(_) => 6,
        Statement::Alloca(units) => 16 + u64::from(*units) / 64,
        Statement::Region(registers, _) => 4 + 2 * registers.len() as u64,
        Statement::Funclet(_) => 16 + overhead(shape),
        Statement::Guarded(_, clauses) => {
            // An EH clause has up to two funclets.
            2 + 2 * (16 + overhead(shape)) * clauses.len() as u64
        }
        Statement::Try(..) | Statement::Throw | Statement::SwitchStack(_) => 16,
        Statement::Runtime(_) | Statement::Primitive(_) => 4,
    }
}

#[derive(Default)]
struct Cost {
    instructions: u64,
    /// Bytes of dynamic stack and of the funclets' frames.
    dynamic: u64,
    /// Bytes of the callee with the largest stack.
    callee: u64,
}

impl Cost {
    fn call(&mut self, callee: FunctionIndex, times: u64, estimates: &[Estimate]) {
        let callee = of(estimates, callee);
        let instructions = callee.instructions.saturating_mul(times);
        self.instructions = self.instructions.saturating_add(instructions);
        self.callee = self.callee.max(callee.stack);
    }

    fn add_body(
        &mut self,
        body: &[Statement],
        times: u64,
        shape: &FunctionShape,
        estimates: &[Estimate],
    ) {
        for statement in body {
            let own = step(statement, shape).saturating_mul(times);
            self.instructions = self.instructions.saturating_add(own);
            match statement {
                Statement::Call(_, callee)
                | Statement::Trap(callee)
                | Statement::SwitchStack(callee)
                | Statement::Exit(Exit::TailCall(_, callee)) => {
                    self.call(*callee, times, estimates);
                }
                Statement::Loop(n, body) => {
                    self.add_body(body, times.saturating_mul((*n).into()), shape, estimates);
                }
                Statement::If(true, body) | Statement::Cold(body) | Statement::Region(_, body) => {
                    self.add_body(body, times, shape, estimates);
                }
                Statement::Funclet(body) => {
                    self.dynamic = self.dynamic.saturating_add(funclet(shape));
                    self.add_body(body, times, shape, estimates);
                }
                Statement::Guarded(_, clauses) => {
                    let funclets = funclet(shape).saturating_mul(2 * clauses.len() as u64);
                    self.dynamic = self.dynamic.saturating_add(funclets);
                    for body in statement.bodies() {
                        self.add_body(body, times, shape, estimates);
                    }
                }
                Statement::Try(body, catch) => {
                    self.add_body(body, times, shape, estimates);
                    self.add_body(catch, times, shape, estimates);
                }
                Statement::Alloca(units) => {
                    let bytes = u64::from(*units).saturating_mul(16).saturating_mul(times);
                    self.dynamic = self.dynamic.saturating_add(bytes);
                }
                Statement::Primitive(primitive) => {
                    let body = primitive.body().unwrap_or_default();
                    self.add_body(body, times, shape, estimates);
                }
                Statement::If(false, _)
                | Statement::Runtime(_)
                | Statement::Exit(Exit::Return(_) | Exit::Computed)
                | Statement::Clobber(_)
                | Statement::ClobberXmm(_)
                | Statement::Store(_)
                | Statement::Work(_)
                | Statement::Throw
                | Statement::Stop => {}
            }
        }
    }
}

/// Returns the size of a funclet's frame in bytes.
pub fn funclet(shape: &FunctionShape) -> u64 {
    128 + 8 * shape.pushes.len() as u64
}

/// The ways in which a body can end.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is independent")]
pub struct Flow {
    /// The body continues with the statement that follows.
    pub completes: bool,
    /// The body returns to the caller.
    pub returns: bool,
    /// The body throws to a catch around it.
    pub throws: bool,
    /// The body throws past all catches of the function.
    pub escapes: bool,
}

impl Flow {
    const STAYS: Self = Self { completes: true, returns: false, throws: false, escapes: false };
    const STOPS: Self = Self { completes: false, ..Self::STAYS };
}

/// Returns the ways in which a body can end. The callees' estimates determine which calls return.
pub fn flow(body: &[Statement], estimates: &[Estimate]) -> Flow {
    let mut all = Flow::STAYS;
    for statement in body {
        let one = match statement {
            // Exceptions thrown on another stack or in a region are not caught in the function.
            Statement::SwitchStack(callee) => {
                let callee = of(estimates, *callee);
                Flow { completes: !callee.never_returns, escapes: callee.throws, ..Flow::STOPS }
            }
            Statement::Region(_, body) => {
                let body = flow(body, estimates);
                Flow { throws: false, escapes: body.throws || body.escapes, ..body }
            }
            Statement::Call(_, callee) | Statement::Trap(callee) => {
                let callee = of(estimates, *callee);
                Flow { completes: !callee.never_returns, throws: callee.throws, ..Flow::STOPS }
            }
            Statement::Loop(_, body)
            | Statement::If(true, body)
            | Statement::Cold(body)
            | Statement::Funclet(body) => flow(body, estimates),
            Statement::Try(body, catch) => {
                let (body, catch) = (flow(body, estimates), flow(catch, estimates));
                Flow {
                    // The rules assume this even if nothing reaches the catch.
                    completes: body.completes || catch.completes,
                    returns: body.returns || catch.returns,
                    throws: body.throws && catch.throws,
                    escapes: body.escapes || catch.escapes,
                }
            }
            Statement::Guarded(body, clauses) => guarded(body, clauses, estimates),
            Statement::Exit(exit) => leave(*exit, estimates),
            Statement::Primitive(primitive) => {
                let body = flow(primitive.body().unwrap_or_default(), estimates);
                Flow { completes: true, ..body }
            }
            Statement::Throw => Flow { throws: true, ..Flow::STOPS },
            Statement::Stop => Flow::STOPS,
            Statement::If(false, _)
            | Statement::Clobber(_)
            | Statement::ClobberXmm(_)
            | Statement::Store(_)
            | Statement::Work(_)
            | Statement::Runtime(_)
            | Statement::Alloca(_) => Flow::STAYS,
        };
        all.returns |= one.returns;
        all.throws |= one.throws;
        all.escapes |= one.escapes;
        if !one.completes {
            return Flow { completes: false, ..all };
        }
    }
    all
}

/// Returns the ways in which a guarded statement can end if its handlers are called.
fn guarded(body: &[Statement], clauses: &[EhClause], estimates: &[Estimate]) -> Flow {
    let mut all = flow(body, estimates);
    for clause in clauses {
        for body in clause.bodies() {
            let inner = flow(body, estimates);
            all.throws |= inner.throws;
            all.escapes |= inner.escapes;
        }
        let completes = flow(&clause.body, estimates).completes;
        match clause.kind.handler() {
            HandlerKind::Catch | HandlerKind::Filtered => all.completes |= completes,
            HandlerKind::Finally => all.completes &= completes,
            HandlerKind::Fault | HandlerKind::Unmatched => {}
        }
    }
    all
}

fn leave(exit: Exit, estimates: &[Estimate]) -> Flow {
    match exit {
        Exit::Return(_) | Exit::Computed => Flow { returns: true, ..Flow::STOPS },
        Exit::TailCall(_, callee) => {
            let callee = of(estimates, callee);
            Flow { returns: !callee.never_returns, throws: callee.throws, ..Flow::STOPS }
        }
    }
}
