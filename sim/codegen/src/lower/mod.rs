//! Lowering of functions to instructions with the facts that their unwind data must describe.
//!
//! All positions here are indices of instructions: linking assigns the addresses.

mod body;
mod epilogue;
mod guarded;
mod primitive;
mod prologue;
mod stream;
mod stub;
mod unix;

pub(super) use guarded::{Guard, GuardClause};
pub use primitive::THREAD_SLOT;
pub(super) use prologue::Described;
pub(super) use stream::{Note, Stream};
pub(super) use unix::{Helper, HelperKind};

use super::cfi::{Row, Rowed, Rows, Rule};
use super::guarded::FuncletKind;
use super::layout::FrameLayout;
use super::marks::{Role, WindowsMistake};
use super::program::{CodeKind, Function, FunctionIndex, Program, Statement};
use super::shape::{CallingConvention, ColdForm, EntryForm, FunctionShape, Realign, UnwindData};
use super::unwind_info::Operation;
use clr_unwind::Gpr;
use guarded::Funclet;
use iced_x86::{Code, IcedError};
use std::collections::VecDeque;
use stream::{Label, Place};

/// A range of instructions with unwind data of its own.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Function that the part belongs to.
    pub function: FunctionIndex,
    /// The first instruction, and the one after the last.
    pub begin: u32,
    pub end: u32,
    /// The instruction after the prologue.
    pub prologue_end: u32,
    pub kind: PartKind,
    /// Operations of the prologue, in order.
    pub described: Vec<Described>,
    /// The frame register and its offset in units of 16 bytes.
    pub frame: Option<(Gpr, u8)>,
    /// For each epilogue, its first pop and the instruction after the epilogue.
    pub epilogues: Vec<(u32, u32)>,
    /// The epilogues as version 3 describes them.
    pub undone: Vec<Undone>,
    /// Kind of the funclet that the part is, or is a part of.
    pub funclet: Option<FuncletKind>,
}

/// An epilogue from the release of the allocation on.
#[derive(Clone, Debug)]
pub(super) struct Undone {
    /// The first instruction, and the one after the last.
    pub begin: u32,
    pub end: u32,
    /// The operations that are undone, the first one first, with their instructions.
    pub operations: Vec<(u32, Operation)>,
}

/// The relation of a part's unwind data to that of other parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartKind {
    /// The function itself, or a funclet.
    Root,
    /// A part chained to another part, given by index.
    Chained(usize),
    /// A cold part as gcc makes it: all operations apply from its first byte on.
    Separate,
}

/// The instructions of one image or heap.
#[derive(Debug)]
pub(super) struct Lowered {
    pub stream: Stream,
    /// Locations of the callers' registers at each instruction.
    pub rows: Rows,
    pub parts: Vec<Part>,
    /// First instruction of each contiguous run that is to be aligned.
    pub pieces: Vec<u32>,
    /// Guarded statements, each after those around it.
    pub guards: Vec<Guard>,
    /// First instruction of each function of this kind.
    pub entries: Vec<(FunctionIndex, u32)>,
    /// First instruction of the helper that unwind data names as the language-specific handler.
    pub personality: u32,
    /// Code that belongs to no function.
    pub helpers: Vec<Helper>,
    /// Entries of the procedure linkage table: their functions and their first instructions.
    pub plt: Vec<(FunctionIndex, u32)>,
    /// Instruction whose address each slot of the procedure linkage table holds initially, by
    /// index; empty without a table.
    pub plt_slots: Vec<u32>,
}

/// Addresses of the cells through which code finds addresses that are not known when it is
/// generated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    /// Address of the first cell (VA).
    pub base: u64,
    /// Number of functions of the program.
    pub functions: u64,
}

impl Cells {
    /// Number of cells before those of the functions.
    pub(super) const SERVICES: u64 = 2;

    /// Returns the address of the cell for the service that cuts the stack.
    pub(super) const fn throw(self) -> u64 {
        self.base
    }

    /// Returns the address of the cell that holds the end of the next stack to switch to.
    pub(super) const fn stack(self) -> u64 {
        self.base + 8
    }

    /// Returns the address of the cell that holds the address of a function.
    pub(super) const fn function(self, id: FunctionIndex) -> u64 {
        self.base + 8 * (Self::SERVICES + id.0 as u64)
    }

    /// Returns the address of a slot of the procedure linkage table.
    pub(super) const fn plt(self, slot: u32) -> u64 {
        self.base + 8 * (Self::SERVICES + self.functions + slot as u64)
    }
}

/// Lowers the functions of one kind.
///
/// `stride` is the distance in bytes between the stacks that functions switch to.
pub(super) fn lower(
    program: &Program,
    kind: CodeKind,
    cells: Cells,
    stride: u64,
) -> Result<Lowered, IcedError> {
    let mut stream = Stream::default();
    let entries = program.functions.iter().map(|_| stream.label()).collect();
    let chkstk = stream.label();
    let mut lowering = Lowering {
        program,
        kind,
        cells,
        stream,
        rows: Rows::default(),
        helpers: Vec::new(),
        plt: Vec::new(),
        entries,
        chkstk,
        needs_chkstk: false,
        parts: Vec::new(),
        guards: Vec::new(),
        pieces: Vec::new(),
        cold: VecDeque::new(),
        stride: stride as i32,
        salt: 0,
    };
    lowering.procedure_linkage_table()?;
    let mut entries = Vec::new();
    for (index, function) in program.functions.iter().enumerate() {
        if function.kind == kind {
            let id = FunctionIndex(index as u32);
            entries.push((id, lowering.stream.here()));
            lowering.function(id, function)?;
            // The JIT does not split methods.
            if kind == CodeKind::Jit {
                lowering.cold_parts()?;
            }
        }
    }
    lowering.cold_parts()?;
    let personality = lowering.helpers()?;
    let Lowering { mut stream, rows, parts, pieces, guards, helpers, plt, .. } = lowering;
    stream.resolve();
    let plt_slots = unix::plt_slots(&plt, &helpers);
    let plt = plt.iter().map(|entry| (entry.function, entry.begin)).collect();
    Ok(Lowered {
        stream,
        rows,
        parts,
        pieces,
        guards,
        entries,
        personality,
        helpers,
        plt,
        plt_slots,
    })
}

/// The funclets of a function that have not been written yet.
type Funclets<'p> = VecDeque<Funclet<'p>>;

struct Lowering<'p> {
    program: &'p Program,
    kind: CodeKind,
    cells: Cells,
    stream: Stream,
    rows: Rows,
    helpers: Vec<Helper>,
    /// Functions that have an entry in the procedure linkage table.
    plt: Vec<unix::PltEntry>,
    /// By function; bound only for those of this kind.
    entries: Vec<Label>,
    chkstk: Label,
    needs_chkstk: bool,
    parts: Vec<Part>,
    guards: Vec<Guard>,
    pieces: Vec<u32>,
    cold: VecDeque<ColdPart<'p>>,
    /// Distance in bytes between the stacks that functions switch to.
    stride: i32,
    /// Counter that makes the values written by code differ.
    salt: u64,
}

/// A body that is placed separately.
struct ColdPart<'p> {
    frame: Frame<'p>,
    body: &'p [Statement],
    start: Label,
    back: Label,
    /// The row at the entry of the part.
    row: Rowed,
}

/// The function or funclet that is being lowered, and the position in it.
#[derive(Clone)]
struct Frame<'p> {
    id: FunctionIndex,
    function: &'p Function,
    layout: FrameLayout,
    /// Index of the part whose unwind data describes the frame here.
    describing: usize,
    /// Index of the part that is being written.
    part: usize,
    /// Kind of the funclet, `None` for the function itself.
    funclet: Option<FuncletKind>,
    landing: Option<Label>,
    /// Index of the innermost guarded statement that protects the code being written.
    guard: Option<u32>,
    next_counter: u32,
    next_region_save: u32,
    /// The body moves rsp.
    dynamic: bool,
    /// Label of the address after the next call.
    next_return: Option<Label>,
}

impl<'p> Frame<'p> {
    fn shape(&self) -> &'p FunctionShape {
        &self.function.shape
    }

    /// Returns the memory `offset` bytes above the value of rsp after the function's fixed
    /// allocation.
    fn at(&self, offset: u32) -> Place {
        let offset = i64::from(offset);
        match self.layout.frame_register(self.shape()) {
            Some((register, distance)) if self.dynamic || self.funclet.is_some() => {
                Place::At(register, offset - i64::from(distance))
            }
            _ => Place::At(Gpr::Rsp, offset),
        }
    }

    /// Returns true if unwinding from the body must undo anything.
    fn has_frame(&self, convention: CallingConvention) -> bool {
        let mut home = self.shape().home.iter().flatten();
        self.funclet.is_some()
            || self.layout.allocation + self.layout.pushed > 0
            || home.any(|register| convention.is_nonvolatile(*register))
            || self.shape().entry.has_machine_frame()
    }
}

impl<'p> Lowering<'p> {
    fn note(&mut self, frame: &Frame<'_>, role: Role) {
        let guard = frame.guard;
        self.stream.now = Some(Note { function: Some(frame.id), role, guard, ..Note::HELPER });
    }

    fn mistake(&mut self, mistake: Option<WindowsMistake>) {
        if let Some(now) = &mut self.stream.now {
            now.mistake = mistake;
        }
    }

    /// Changes the row, since the instructions so far have changed the locations of the callers'
    /// registers.
    fn row(&mut self, change: impl Fn(&mut Row)) {
        self.rows.change(self.stream.here(), change);
    }

    /// Returns a value that is used nowhere else.
    fn garbage(&mut self) -> u64 {
        self.salt += 1;
        let mut x = self.salt.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ self.kind as u64;
        x = (x ^ x >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        x ^ x >> 32
    }

    fn begin_part(
        &mut self,
        id: FunctionIndex,
        kind: PartKind,
        frame: Option<(Gpr, u8)>,
        funclet: Option<FuncletKind>,
    ) -> usize {
        let here = self.stream.here();
        self.parts.push(Part {
            function: id,
            begin: here,
            end: here,
            prologue_end: here,
            kind,
            described: Vec::new(),
            frame,
            epilogues: Vec::new(),
            undone: Vec::new(),
            funclet,
        });
        self.parts.len() - 1
    }

    /// Ends a part here, after adding an instruction if the part is empty.
    fn end_part(&mut self, part: usize) -> Result<(), IcedError> {
        if self.parts[part].begin == self.stream.here() {
            self.stream.filler()?;
        }
        self.parts[part].end = self.stream.here();
        Ok(())
    }

    fn function(&mut self, id: FunctionIndex, function: &'p Function) -> Result<(), IcedError> {
        self.pieces.push(self.stream.here());
        let shape = &function.shape;
        let described = shape.frame.filter(|frame| frame.described);
        let part = self.begin_part(
            id,
            PartKind::Root,
            described.map(|frame| (frame.register, frame.offset)),
            None,
        );
        let mut frame = Frame {
            id,
            function,
            layout: FrameLayout::new(function, self.program.convention),
            describing: part,
            part,
            funclet: None,
            landing: None,
            guard: None,
            next_counter: 0,
            next_region_save: 0,
            dynamic: moves_rsp(&function.body),
            next_return: None,
        };
        self.stream.bind(self.entries[id.index()]);
        self.rows.begin(self.stream.here(), Row::at_entry(shape.entry));
        let wrapped = self.before_wrapped(&frame)?;
        self.prologue(&frame)?;
        self.note(&frame, Role::Body);
        if let Some(psp) = frame.layout.psp {
            self.stream.store(frame.at(psp), Gpr::Rsp)?;
        }
        let mut funclets = VecDeque::new();
        self.body(&mut frame, &mut funclets, &function.body)?;
        if let Some(exit) = function.end {
            self.last_epilogue(&frame, exit, &wrapped)?;
        } else if self.stream.has_label_here() {
            // Execution never gets here, but no jump may leave the function.
            self.stream.plain(Code::Int3);
        }
        self.behind_wrapped(&frame, wrapped)?;
        self.end_part(frame.part)?;
        self.funclets(&mut frame, funclets)
    }

    fn cold_parts(&mut self) -> Result<(), IcedError> {
        while let Some(cold) = self.cold.pop_front() {
            self.cold_part(cold)?;
        }
        Ok(())
    }

    fn cold_part(&mut self, cold: ColdPart<'p>) -> Result<(), IcedError> {
        let ColdPart { mut frame, body, start, back, row } = cold;
        if self.kind != CodeKind::Jit {
            self.pieces.push(self.stream.here());
        }
        let separate = frame.shape().cold == ColdForm::Separate;
        let register = self.parts[frame.describing].frame;
        let kind = if separate { PartKind::Separate } else { PartKind::Chained(frame.describing) };
        let part = self.begin_part(frame.id, kind, register, frame.funclet);
        if separate {
            self.parts[part].described = self.all_described(frame.describing);
        }
        frame.part = part;
        frame.describing = part;
        self.stream.bind(start);
        self.rows.go_on(self.stream.here(), &row);
        self.note(&frame, Role::Body);
        let mut funclets = VecDeque::new();
        self.body(&mut frame, &mut funclets, body)?;
        self.note(&frame, Role::Body);
        // A region inside ends with a part chained to this one, so it does not make a difference
        // here.
        let scanned = frame.shape().unwind == UnwindData::Version1;
        let jumps_out = separate && scanned && frame.has_frame(self.program.convention);
        self.mistake(jumps_out.then_some(WindowsMistake::ColdJump));
        self.stream.branch(Code::Jmp_rel32_64, back)?;
        self.mistake(None);
        self.end_part(frame.part)?;
        self.funclets(&mut frame, funclets)
    }

    /// Returns the operations of all prologues up the chain of `part`, in order.
    fn all_described(&self, part: usize) -> Vec<Described> {
        let part = &self.parts[part];
        let mut described = match part.kind {
            PartKind::Chained(parent) => self.all_described(parent),
            PartKind::Root | PartKind::Separate => Vec::new(),
        };
        described.extend_from_slice(&part.described);
        described
    }

    /// Writes the code that belongs to no function, and returns the first instruction of the
    /// language-specific handler.
    fn helpers(&mut self) -> Result<u32, IcedError> {
        self.stream.now = None;
        self.rows.begin(self.stream.here(), Row::at_entry(EntryForm::Call));
        if self.needs_chkstk {
            self.pieces.push(self.stream.here());
            self.stream.bind(self.chkstk);
            prologue::chkstk(&mut self.stream)?;
        }
        self.pieces.push(self.stream.here());
        let personality = self.stream.here();
        self.stream.plain(Code::Retnq);
        self.helper(HelperKind::Personality, personality);
        self.signal_trampoline()?;
        Ok(personality)
    }
}

fn moves_rsp(body: &[Statement]) -> bool {
    let moves = |statement: &Statement| matches!(statement, Statement::Alloca(_));
    body.iter().any(|statement| statement.contains(&moves))
}

/// Returns the location of a register saved `at` bytes above the value of rsp after the fixed
/// allocation.
fn saved(layout: &FrameLayout, shape: &FunctionShape, at: u32) -> Rule {
    let from = |origin: u32| at.cast_signed().wrapping_sub(origin.cast_signed());
    match layout.frame_register(shape) {
        Some((register, distance)) if shape.realign != Realign::No => {
            Rule::By(register, from(distance))
        }
        _ => Rule::At(from(layout.cfa())),
    }
}

/// Returns the operation for a register saved `at` bytes above the value of rsp after the fixed
/// allocation.
fn save(layout: &FrameLayout, shape: &FunctionShape, register: Gpr, at: u32) -> Operation {
    let below = if shape.saves_lie_below_frame() { layout.allocation } else { 0 };
    Operation::Save(register, at.wrapping_sub(below))
}
