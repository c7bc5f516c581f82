//! Lowering of guarded statements and funclets.

use super::super::cfi::Row;
use super::super::guarded::{EhClause, EhClauseKind, FuncletKind, HandlerKind};
use super::super::marks::Role;
use super::super::program::{FunctionIndex, Statement};
use super::super::shape::{CallingConvention, EntryForm};
use super::stream::{Label, Place};
use super::{Frame, Funclets, Lowering, PartKind};
use clr_unwind::Gpr;
use iced_x86::{Code, IcedError};

/// A guarded statement.
#[derive(Clone, Debug)]
pub(in super::super) struct Guard {
    /// Function that contains the statement.
    pub function: FunctionIndex,
    /// Index of the guarded statement around this one.
    pub outer: Option<u32>,
    /// Number of guarded statements around this one.
    pub depth: u32,
    pub clauses: Vec<GuardClause>,
}

/// An EH clause of a guarded statement.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct GuardClause {
    pub kind: HandlerKind,
    pub handler: Label,
    pub filter: Option<Label>,
    /// Place at which execution resumes after a catch.
    pub resume: Label,
}

/// A funclet that has not been written yet.
pub(super) struct Funclet<'p> {
    label: Label,
    body: &'p [Statement],
    kind: FuncletKind,
    result: FuncletResult,
    /// Index of the innermost guarded statement that protects the funclet.
    guard: Option<u32>,
}

/// The value that a funclet returns in rax.
#[derive(Clone, Copy)]
enum FuncletResult {
    /// Nothing.
    None,
    /// The address to resume at, returned by a catch.
    Resume(Label),
    /// The decision of a filter: true to catch the exception.
    Accepts(bool),
}

impl<'p> Funclet<'p> {
    /// Creates a funclet that is called only by its function.
    pub(super) const fn called(label: Label, body: &'p [Statement], guard: Option<u32>) -> Self {
        Self { label, body, kind: FuncletKind::Handler, result: FuncletResult::None, guard }
    }
}

impl<'p> Lowering<'p> {
    /// Writes the body with its labels, then a call of the `Finally` handler, which the body does
    /// not protect.
    pub(super) fn guarded(
        &mut self,
        frame: &mut Frame<'p>,
        funclets: &mut Funclets<'p>,
        body: &'p [Statement],
        clauses: &'p [EhClause],
    ) -> Result<(), IcedError> {
        let (outer, resume) = (frame.guard, self.stream.label());
        let depth = |index: u32| self.guards.get(index as usize).map_or(0, |guard| guard.depth + 1);
        let guard = Guard {
            function: frame.id,
            outer,
            depth: outer.map_or(0, depth),
            clauses: clauses
                .iter()
                .map(|clause| self.clause(clause, resume, outer, funclets))
                .collect(),
        };
        frame.guard = Some(self.guards.len() as u32);
        let finally = guard.clauses.iter().find(|clause| clause.kind == HandlerKind::Finally);
        let finally = finally.map(|clause| clause.handler);
        self.guards.push(guard);
        self.note(frame, Role::Body);
        let begin = self.stream.here();
        self.body(frame, funclets, body)?;
        if self.stream.here() == begin {
            // A protected range must not be empty.
            self.stream.plain(Code::Nopd);
        }
        frame.guard = outer;
        self.note(frame, Role::Body);
        if let Some(finally) = finally {
            self.call_funclet(frame, finally)?;
        }
        self.stream.bind(resume);
        Ok(())
    }

    /// Creates the labels of an EH clause and queues its funclets. The handler is protected by the
    /// guarded statements around the guarded statement, not by the statement itself.
    fn clause(
        &mut self,
        clause: &'p EhClause,
        resume: Label,
        guard: Option<u32>,
        funclets: &mut Funclets<'p>,
    ) -> GuardClause {
        let filter = match &clause.kind {
            EhClauseKind::Filtered { accepts, filter } => {
                let label = self.stream.label();
                funclets.push_back(Funclet {
                    label,
                    body: filter,
                    kind: FuncletKind::Filter,
                    result: FuncletResult::Accepts(*accepts),
                    // An exception thrown by a filter ends with the filter.
                    guard: None,
                });
                Some(label)
            }
            EhClauseKind::Catch
            | EhClauseKind::Unmatched
            | EhClauseKind::Finally
            | EhClauseKind::Fault => None,
        };
        let handler = self.stream.label();
        let result =
            if clause.catches() { FuncletResult::Resume(resume) } else { FuncletResult::None };
        let kind = FuncletKind::Handler;
        funclets.push_back(Funclet { label: handler, body: &clause.body, kind, result, guard });
        GuardClause { kind: clause.kind.handler(), handler, filter, resume }
    }

    /// Calls a funclet in the normal course of its function, not for an exception.
    pub(super) fn call_funclet(
        &mut self,
        frame: &Frame<'_>,
        label: Label,
    ) -> Result<(), IcedError> {
        let psp = frame.layout.psp.unwrap_or(0);
        self.stream.load(self.establisher(), frame.at(psp))?;
        self.landing(frame);
        self.stream.branch(Code::Call_rel32_64, label)
    }

    /// Returns the register in which a funclet receives the establisher frame of its function.
    const fn establisher(&self) -> Gpr {
        match self.program.convention {
            CallingConvention::WindowsX64 => Gpr::Rcx,
            CallingConvention::SystemV => Gpr::Rdi,
        }
    }

    /// Writes the queued funclets, and those of statements inside them.
    pub(super) fn funclets(
        &mut self,
        frame: &mut Frame<'p>,
        mut funclets: Funclets<'p>,
    ) -> Result<(), IcedError> {
        while let Some(funclet) = funclets.pop_front() {
            self.funclet(frame, &funclet, &mut funclets)?;
        }
        Ok(())
    }

    /// Writes a funclet, which has a frame of its own in which rbp is the function's frame
    /// register.
    fn funclet(
        &mut self,
        parent: &mut Frame<'p>,
        funclet: &Funclet<'p>,
        funclets: &mut Funclets<'p>,
    ) -> Result<(), IcedError> {
        let kind = Some(funclet.kind);
        let part = self.begin_part(parent.id, PartKind::Root, None, kind);
        let psp = parent.layout.psp.unwrap_or(0);
        let allocation = parent.layout.funclet_allocation();
        let mut frame = Frame {
            part,
            describing: part,
            landing: None,
            funclet: kind,
            guard: funclet.guard,
            ..parent.clone()
        };
        self.stream.bind(funclet.label);
        self.rows.begin(self.stream.here(), Row::at_entry(EntryForm::Call));
        self.funclet_prologue(&frame, allocation)?;
        self.note(&frame, Role::Body);
        let (register, distance) =
            parent.layout.frame_register(parent.shape()).unwrap_or((Gpr::Rbp, 0));
        // The slot has the same offset in the frames of the function and of its funclets, so
        // either's address will do.
        self.stream.load(register, Place::At(self.establisher(), i64::from(psp)))?;
        self.stream.store(Place::At(Gpr::Rsp, i64::from(psp)), register)?;
        self.stream.lea(register, Place::At(register, i64::from(distance)))?;
        self.body(&mut frame, funclets, funclet.body)?;
        parent.next_counter = frame.next_counter;
        match funclet.result {
            FuncletResult::None => {}
            FuncletResult::Resume(label) => self.stream.lea_label(Gpr::Rax, label)?,
            FuncletResult::Accepts(accepts) => {
                self.stream.mov_imm32(Gpr::Rax, u32::from(accepts))?;
            }
        }
        self.funclet_epilogue(&frame, allocation)?;
        self.end_part(frame.part)
    }
}
