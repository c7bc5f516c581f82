//! Exceptions, compared with a direct interpretation of the programs.

use super::*;
use crate::tests::reference::Reference;
use RuntimeCallKind::Rethrow;
use clr_codegen::{FrameRegister, FrameSet};
use clr_machine::SplitMix64;
use clr_runtime::ExceptionState;

pub(super) fn managed(name: &str, kind: CodeKind, body: Vec<Statement>) -> Function {
    let mut function = function(name, kind, body);
    function.shape.pushes = vec![Gpr::Rbp, Gpr::Rbx];
    function.shape.frame = Some(FrameRegister {
        register: Gpr::Rbp,
        offset: 0,
        set: FrameSet::AfterSaves,
        described: false,
    });
    function
}

pub(super) fn call(callee: u32) -> Statement {
    Statement::Call(CallForm::Near, FunctionIndex(callee))
}

pub(super) fn throw(kind: RuntimeCallKind) -> Statement {
    runtime(kind, None)
}

pub(super) fn clause(kind: EhClauseKind, body: Vec<Statement>) -> EhClause {
    EhClause { kind, body }
}

struct Dice(SplitMix64);

impl Dice {
    const fn roll(&mut self, sides: u64) -> u64 {
        self.0.draw() % sides
    }
}

/// Number of functions that act; they are followed by functions that only record their calls.
const FUNCTIONS: u32 = 4;
const MARKS: u32 = 24;

struct Generated {
    dice: Dice,
    next_mark: u32,
}

impl Generated {
    fn program(seed: u64) -> Program {
        let mut generated = Self { dice: Dice(SplitMix64(seed)), next_mark: 0 };
        let mut functions = Vec::new();
        for index in 0..FUNCTIONS {
            let kind =
                if generated.dice.roll(3) == 0 { CodeKind::ReadyToRun } else { CodeKind::Jit };
            let mut body = vec![Statement::Clobber(Gpr::Rbx)];
            if index == 0 && generated.dice.roll(4) != 0 {
                // Only a second exception gets past this.
                let kind = EhClauseKind::Catch;
                let catch = clause(kind, vec![generated.mark()]);
                body.push(Statement::Guarded(generated.body(index, 3, false), vec![catch]));
            } else {
                body.extend(generated.body(index, 3, false));
            }
            let mut function = managed(&format!("App.F{index}"), kind, body);
            if generated.dice.roll(2) == 0 {
                function.shape.locals = 0x48;
            }
            functions.push(function);
        }
        for index in 0..MARKS {
            let body = vec![Statement::Work(1)];
            functions.push(function(&format!("Mark.M{index}"), CodeKind::Jit, body));
        }
        Program { functions, ..Program::default() }
    }

    fn mark(&mut self) -> Statement {
        self.next_mark += 1;
        call(FUNCTIONS + (self.next_mark - 1) % MARKS)
    }

    fn call(&mut self, callee: u32) -> Statement {
        match self.dice.roll(6) {
            0 => runtime(ReflectionCall, Some(callee)),
            1 => runtime(ClassConstructor, Some(callee)),
            _ => call(callee),
        }
    }

    fn body(&mut self, function: u32, depth: u32, in_catch: bool) -> Vec<Statement> {
        let mut body = vec![self.mark()];
        for _ in 0..=self.dice.roll(2) {
            let statement = match self.dice.roll(10) {
                0 => throw(Raise),
                1 => throw(NullDereference),
                2 if in_catch => throw(Rethrow),
                4..=6 if function + 1 < FUNCTIONS => self.call(function + 1),
                4..=9 if depth > 0 => self.guarded(function, depth - 1),
                _ => self.mark(),
            };
            body.push(statement);
        }
        body
    }

    fn guarded(&mut self, function: u32, depth: u32) -> Statement {
        let body = self.body(function, depth, false);
        let clauses = match self.dice.roll(4) {
            0 => vec![clause(EhClauseKind::Finally, self.body(function, depth, false))],
            1 => vec![clause(EhClauseKind::Fault, self.body(function, depth, false))],
            _ => (0..=self.dice.roll(2)).map(|_| self.catch(function, depth)).collect(),
        };
        Statement::Guarded(body, clauses)
    }

    fn catch(&mut self, function: u32, depth: u32) -> EhClause {
        let kind = if self.dice.roll(2) == 0 {
            EhClauseKind::Catch
        } else {
            let filter = self.body(function, depth, false);
            EhClauseKind::Filtered { accepts: self.dice.roll(2) == 0, filter }
        };
        clause(kind, self.body(function, depth, true))
    }
}

/// Executes a program. Returns the marks that it reaches, and true if it ends without an uncaught
/// exception.
fn execute(program: &Program, generation: Generation, first: u32) -> Option<(Vec<u32>, bool)> {
    const LIMIT: u32 = 1_000_000;
    let build = Build::new(program, &BTreeMap::new(), generation).unwrap();
    let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
    let marks: BTreeMap<u64, u32> = (first..program.functions.len() as u32)
        .map(|mark| {
            let placed = build.expanded().placed[mark as usize];
            (build.linked().entries[placed.index()], mark)
        })
        .collect();
    let mut found = Vec::new();
    for _ in 0..LIMIT {
        if !world.is_serving(0)
            && let Some(mark) = marks.get(&world.rip(0).unwrap())
        {
            found.push(*mark);
            let rsp = world.activations(0)[0].registers.rsp();
            assert!(world.is_cooperative(0) && rsp < top_frame(&mut world), "{generation}");
        }
        if world.step(0).unwrap() == StepEvent::Ended {
            let unhandled = world.is_unhandled(0);
            if !unhandled {
                assert_eq!(world.shadow_stack(0).unwrap().callers(), []);
                nothing_is_left(&mut world);
            }
            return Some((found, !unhandled));
        }
    }
    None
}

fn top_frame(world: &mut World<'_>) -> u64 {
    let object = world.object(0).unwrap();
    let runtime = world.runtime();
    ThreadObject(object).top_frame(&*runtime.memory.borrow()).unwrap()
}

fn nothing_is_left(world: &mut World<'_>) {
    assert_eq!(top_frame(world), FRAME_TOP);
    let os = world.os(0).unwrap();
    let exceptions = world.runtime().thread(os, |thread| thread.exceptions.clone()).unwrap();
    assert_eq!(exceptions, ExceptionState::default());
}

#[test]
fn handlers_run_in_the_order_of_a_plain_reading() {
    let (mut ran, mut uncaught, mut marks) = (0, 0, 0);
    for seed in 0..400 {
        let program = Generated::program(seed);
        let plain = Reference::run(&program, FUNCTIONS, true, false);
        for generation in Generation::ALL {
            let catches = !super::leaving::passes_through_reflection(generation);
            let unwinds = generation.hides_exception_handling();
            let expected = Reference::run(&program, FUNCTIONS, catches, unwinds);
            let found = execute(&program, generation, FUNCTIONS);
            assert_eq!(found.as_ref(), Some(&expected), "seed {seed}, {generation}: {program:#?}");
        }
        ran += 1;
        uncaught += u32::from(!plain.1);
        marks += plain.0.len();
    }
    assert!(ran - uncaught > 200 && uncaught > 50 && marks > 4_000, "{ran} {uncaught} {marks}");
}

/// A method is left once, not with each of its funclets that an exception leaves on the way.
#[test]
fn a_method_is_searched_once_with_its_funclet() {
    let guarded =
        |body, catch| Statement::Guarded(vec![body], vec![clause(EhClauseKind::Catch, catch)]);
    let inner = guarded(throw(Raise), vec![throw(Raise)]);
    let main = managed("App.Main", CodeKind::Jit, vec![guarded(inner, Vec::new())]);
    let program = Program { functions: vec![main], ..Program::default() };
    for generation in Generation::ALL {
        let mut found = Vec::new();
        in_callbacks(&program, generation, |_, kind| {
            found.extend(kind.strip_prefix("ExceptionSearch"));
        });
        let once = ["FunctionEnter", "CatcherFound", "FunctionLeave"];
        assert_eq!(found, [once, once].concat(), "{generation}");
    }
}
