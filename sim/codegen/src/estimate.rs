//! What a program costs at most, and where its functions lead, without running it.
//!
//! The generator keeps programs short by it. Every figure errs towards too much.

use super::guarded::{Clause, HandlerKind};
use super::program::{CallForm, Exit, Function, FunctionId, Program, Statement};
use super::shape::{Allocation, Entry, FunctionShape, Realign, Wrap};

/// What a function costs, with all that it calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The most instructions that are executed.
    pub instructions: u64,
    /// The most bytes of stack, from what its caller or an interrupt pushes.
    pub stack: u64,
    /// It never returns to its caller.
    pub never_returns: bool,
    /// Something thrown may leave it.
    pub throws: bool,
}

/// Estimates of a program's functions, by index.
#[must_use]
pub fn functions(program: &Program) -> Vec<Estimate> {
    let mut estimates = vec![Estimate::default(); program.functions.len()];
    // Callees stand behind, so their estimates are there.
    for (index, function) in program.functions.iter().enumerate().rev() {
        estimates[index] = self::function(function, &estimates);
    }
    estimates
}

/// The estimate of a program with its interrupts, any of which may come while another is served.
#[must_use]
pub fn program(program: &Program) -> Estimate {
    let estimates = functions(program);
    let mut total = of(&estimates, FunctionId(0));
    for interrupt in &program.interrupts {
        let handler = of(&estimates, interrupt.handler);
        total.instructions = total.instructions.saturating_add(handler.instructions);
        total.stack = total.stack.saturating_add(handler.stack);
    }
    total
}

/// The estimate of a function whose callees' estimates are known.
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

/// The estimate of a function by its id.
pub fn of(estimates: &[Estimate], function: FunctionId) -> Estimate {
    estimates.get(function.index()).copied().unwrap_or_default()
}

/// Instructions of prologue and epilogue.
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

/// Bytes of a frame but for its dynamic part, with room for a machine frame and for regions' saves.
pub fn frame(shape: &FunctionShape) -> u64 {
    let saves = 8 * (shape.pushes.len() + shape.saves.len()) + 16 * shape.xmm_saves.len();
    // What the kernel saves for a signal, with the part of the stack that it leaves alone.
    let signal = if shape.entry == Entry::Signal { 1024 } else { 0 };
    256 + signal + saves as u64 + 8 * u64::from(shape.arguments) + u64::from(shape.locals)
}

/// Instructions of a statement itself: without its bodies, and without what it calls.
pub fn step(statement: &Statement, shape: &FunctionShape) -> u64 {
    match statement {
        Statement::Clobber(_) | Statement::Store(_) | Statement::If(..) | Statement::Stop => 2,
        Statement::Call(form, _) => {
            let through_table = if *form == CallForm::Plt { 20 } else { 0 };
            // They are pushed one by one, and given back at once.
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
            // A clause has up to two funclets.
            2 + 2 * (16 + overhead(shape)) * clauses.len() as u64
        }
        Statement::Try(..) | Statement::Throw | Statement::SwitchStack(_) => 16,
        Statement::Runtime(_) | Statement::Primitive(_) => 4,
    }
}

#[derive(Default)]
struct Cost {
    instructions: u64,
    /// Bytes of dynamic stack and of funclets' frames.
    dynamic: u64,
    /// Bytes of the callee that takes the most.
    callee: u64,
}

impl Cost {
    fn call(&mut self, callee: FunctionId, times: u64, estimates: &[Estimate]) {
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

/// Bytes of a funclet's frame.
pub fn funclet(shape: &FunctionShape) -> u64 {
    128 + 8 * shape.pushes.len() as u64
}

/// Where a body can lead.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Flow {
    /// To what stands behind it.
    pub completes: bool,
    /// Back to the caller.
    pub returns: bool,
    /// To a catch around it.
    pub throws: bool,
    /// Past all catches of the function.
    pub escapes: bool,
}

impl Flow {
    const STAYS: Self = Self { completes: true, returns: false, throws: false, escapes: false };
    const STOPS: Self = Self { completes: false, ..Self::STAYS };
}

/// Where a body can lead: the callees' estimates say which calls come back.
pub fn flow(body: &[Statement], estimates: &[Estimate]) -> Flow {
    let mut all = Flow::STAYS;
    for statement in body {
        let one = match statement {
            // Nothing thrown on another stack or in a region is caught in the function.
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
                    // As the rules have it, even if nothing reaches the catch.
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

/// Where a guarded statement can lead, if its handlers are called.
fn guarded(body: &[Statement], clauses: &[Clause], estimates: &[Estimate]) -> Flow {
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
            HandlerKind::Fault => {}
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
