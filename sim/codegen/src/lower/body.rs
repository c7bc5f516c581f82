//! Lowering of bodies.

use super::super::cfi::Rule;
use super::super::marks::Role;
use super::super::program::{CallForm, FunctionIndex, Statement};
use super::super::unwind_info::Operation;
use super::guarded::Funclet;
use super::stream::Place;
use super::{ColdPart, Frame, Funclets, Lowering, PartKind, save, saved};
use clr_unwind::Gpr;
use iced_x86::{Code, IcedError, Register};

impl<'p> Lowering<'p> {
    pub(super) fn body(
        &mut self,
        frame: &mut Frame<'p>,
        funclets: &mut Funclets<'p>,
        body: &'p [Statement],
    ) -> Result<(), IcedError> {
        for statement in body {
            self.note(frame, Role::Body);
            self.statement(frame, funclets, statement)?;
        }
        self.note(frame, Role::Body);
        Ok(())
    }

    fn statement(
        &mut self,
        frame: &mut Frame<'p>,
        funclets: &mut Funclets<'p>,
        statement: &'p Statement,
    ) -> Result<(), IcedError> {
        match statement {
            Statement::Call(form, callee) => {
                self.push_arguments(frame)?;
                self.call(frame, *form, *callee)?;
                self.returned(frame);
                self.give_arguments_back(frame)
            }
            Statement::Clobber(register) => {
                let value = self.garbage();
                self.stream.mov_imm64(*register, value)
            }
            Statement::ClobberXmm(n) => {
                let value = self.garbage();
                self.stream.mov_imm64(Gpr::Rax, value)?;
                self.stream.spread_rax(*n)
            }
            Statement::Store(offset) => {
                let value = self.garbage() as i32;
                self.stream.store_imm32(frame.at(frame.layout.locals + offset), value)
            }
            Statement::Work(count) => self.work(*count),
            Statement::Loop(times, body) => self.repeat(frame, funclets, *times, body),
            Statement::If(taken, body) => {
                let over = self.stream.label();
                self.stream.registers(Code::Test_rm64_r64, Register::RSP, Register::RSP)?;
                let jump = if *taken { Code::Je_rel32_64 } else { Code::Jne_rel32_64 };
                self.stream.branch(jump, over)?;
                self.body(frame, funclets, body)?;
                self.stream.bind(over);
                Ok(())
            }
            Statement::Exit(exit) => self.epilogue(frame, *exit),
            Statement::Alloca(units) => self.stream.sub_rsp(16 * u32::from(*units), false),
            Statement::Cold(body) => self.cold(frame, body),
            Statement::Region(registers, body) => self.region(frame, funclets, registers, body),
            Statement::Funclet(body) => {
                let label = self.stream.label();
                self.call_funclet(frame, label)?;
                funclets.push_back(Funclet::called(label, body, frame.guard));
                Ok(())
            }
            Statement::Guarded(body, clauses) => self.guarded(frame, funclets, body, clauses),
            Statement::Try(body, catch) => self.try_catch(frame, funclets, body, catch),
            Statement::Throw => {
                self.landing(frame);
                self.stream.through(Code::Call_rm64, Place::Absolute(self.cells.throw()))
            }
            Statement::Trap(handler) => {
                self.landing(frame);
                if let Some(now) = &mut self.stream.now {
                    now.handler = Some(*handler);
                }
                self.stream.plain(Code::Int3);
                // The interrupted frame is looked up at the address after the breakpoint, which
                // must belong to the same function.
                self.note(frame, Role::Body);
                self.stream.plain(Code::Nopd);
                Ok(())
            }
            Statement::SwitchStack(callee) => self.switch_stack(frame, *callee),
            Statement::Stop => {
                self.stream.plain(Code::Syscall);
                Ok(())
            }
            // No valid program contains one.
            Statement::Runtime(_) => Ok(()),
            Statement::Primitive(primitive) => self.primitive(frame, funclets, primitive),
        }
    }

    /// Returns true if `function` is in the same image or heap.
    pub(super) fn is_here(&self, function: FunctionIndex) -> bool {
        self.program.functions.get(function.index()).is_some_and(|f| f.kind == self.kind)
    }

    /// Records that the next instruction is a call: exceptions thrown in it are caught at the
    /// frame's landing.
    pub(super) fn landing(&mut self, frame: &Frame<'_>) {
        if let Some(now) = &mut self.stream.now {
            now.landing = frame.landing;
            now.arguments = self.rows.arguments().cast_unsigned();
        }
    }

    fn call(
        &mut self,
        frame: &Frame<'_>,
        form: CallForm,
        callee: FunctionIndex,
    ) -> Result<(), IcedError> {
        let cell = Place::Absolute(self.cells.function(callee));
        match form {
            CallForm::Near if self.is_here(callee) => {
                self.landing(frame);
                let label = self.entries[callee.index()];
                self.stream.branch(Code::Call_rel32_64, label)
            }
            CallForm::Plt => {
                self.landing(frame);
                let entry = self.plt.iter().find(|entry| entry.function == callee);
                match entry.map(|entry| entry.label) {
                    Some(label) => self.stream.branch(Code::Call_rel32_64, label),
                    None => self.stream.through(Code::Call_rm64, cell),
                }
            }
            CallForm::Register => {
                self.stream.load(Gpr::Rax, cell)?;
                self.landing(frame);
                self.stream.call_rax()
            }
            CallForm::Near | CallForm::Memory => {
                self.landing(frame);
                self.stream.through(Code::Call_rm64, cell)
            }
        }
    }

    fn work(&mut self, count: u8) -> Result<(), IcedError> {
        for step in 0..count {
            match step % 4 {
                0 => self.stream.immediate(Code::Add_rm32_imm8, Register::EAX, 7)?,
                1 => self.stream.registers(Code::Xor_r32_rm32, Register::ECX, Register::EAX)?,
                2 => self.stream.registers(Code::Imul_r32_rm32, Register::EAX, Register::ECX)?,
                _ => self.stream.filler()?,
            }
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        frame: &mut Frame<'p>,
        funclets: &mut Funclets<'p>,
        times: u8,
        body: &'p [Statement],
    ) -> Result<(), IcedError> {
        let counter = frame.layout.counters + 8 * frame.next_counter;
        frame.next_counter += 1;
        self.stream.store_imm32(frame.at(counter), i32::from(times))?;
        let again = self.stream.label();
        self.stream.bind(again);
        self.body(frame, funclets, body)?;
        self.stream.memory_i32(Code::Sub_rm64_imm8, frame.at(counter), 1)?;
        self.stream.branch(Code::Jne_rel32_64, again)
    }

    fn cold(&mut self, frame: &mut Frame<'p>, body: &'p [Statement]) -> Result<(), IcedError> {
        let (start, back) = (self.stream.label(), self.stream.label());
        self.stream.registers(Code::Test_rm64_r64, Register::RSP, Register::RSP)?;
        self.stream.branch(Code::Jne_rel32_64, start)?;
        self.stream.bind(back);
        let row = self.rows.now();
        self.cold.push_back(ColdPart { frame: frame.clone(), body, start, back, row });
        // The cold body's loops and regions have slots of their own.
        frame.next_counter += loops(body);
        frame.next_region_save += region_saves(body);
        Ok(())
    }

    /// Writes the body as a part with a chained UNWIND_INFO that saves more registers. Another part
    /// without those saves follows.
    fn region(
        &mut self,
        frame: &mut Frame<'p>,
        funclets: &mut Funclets<'p>,
        registers: &[Gpr],
        body: &'p [Statement],
    ) -> Result<(), IcedError> {
        let (outer, landing) = (frame.describing, frame.landing.take());
        let register = self.parts[outer].frame;
        self.end_part(frame.part)?;
        frame.part = self.begin_part(frame.id, PartKind::Chained(outer), register, frame.funclet);
        frame.describing = frame.part;
        let first = frame.layout.region_saves + 8 * frame.next_region_save;
        frame.next_region_save += registers.len() as u32;
        let slots = (first..).step_by(8);
        for (&register, at) in registers.iter().zip(slots.clone()) {
            self.stream.store(frame.at(at), register)?;
            self.row(|row| row.set(register, saved(&frame.layout, frame.shape(), at)));
            let Operation::Save(register, at) = save(&frame.layout, frame.shape(), register, at)
            else {
                continue;
            };
            self.describe(frame, Operation::Save(register, at));
        }
        self.parts[frame.part].prologue_end = self.stream.here();
        self.body(frame, funclets, body)?;
        for (&register, at) in registers.iter().zip(slots) {
            self.stream.load(register, frame.at(at))?;
            self.row(|row| row.set(register, Rule::Same));
        }
        self.end_part(frame.part)?;
        frame.part = self.begin_part(frame.id, PartKind::Chained(outer), register, frame.funclet);
        frame.describing = outer;
        frame.landing = landing;
        Ok(())
    }

    fn try_catch(
        &mut self,
        frame: &mut Frame<'p>,
        funclets: &mut Funclets<'p>,
        body: &'p [Statement],
        catch: &'p [Statement],
    ) -> Result<(), IcedError> {
        let (landing, end) = (self.stream.label(), self.stream.label());
        let outer = frame.landing.replace(landing);
        self.body(frame, funclets, body)?;
        frame.landing = outer;
        self.stream.branch(Code::Jmp_rel32_64, end)?;
        self.stream.bind(landing);
        self.body(frame, funclets, catch)?;
        self.stream.bind(end);
        Ok(())
    }

    fn switch_stack(&mut self, frame: &Frame<'_>, callee: FunctionIndex) -> Result<(), IcedError> {
        let stack = Place::Absolute(self.cells.stack());
        self.stream.memory_i32(Code::Sub_rm64_imm32, stack, self.stride)?;
        self.stream.load(Gpr::Rsp, stack)?;
        // Exceptions thrown on the other stack are not caught here, since rsp would stay there.
        if let Some(now) = &mut self.stream.now {
            now.switches_stack = true;
        }
        self.stream.through(Code::Call_rm64, Place::Absolute(self.cells.function(callee)))?;
        self.note(frame, Role::Body);
        // An interrupt must not find the stack marked as free while rsp still points into it.
        if let Some((register, distance)) = frame.layout.frame_register(frame.shape()) {
            self.stream.lea(Gpr::Rsp, Place::At(register, -i64::from(distance)))?;
        }
        self.stream.memory_i32(Code::Add_rm64_imm32, stack, self.stride)
    }
}

fn loops(body: &[Statement]) -> u32 {
    let is_loop = |statement: &Statement| u32::from(matches!(statement, Statement::Loop(..)));
    body.iter().map(|statement| statement.sum(&is_loop)).sum()
}

fn region_saves(body: &[Statement]) -> u32 {
    let saves = |statement: &Statement| match statement {
        Statement::Region(registers, _) => registers.len() as u32,
        _ => 0,
    };
    body.iter().map(|statement| statement.sum(&saves)).sum()
}
