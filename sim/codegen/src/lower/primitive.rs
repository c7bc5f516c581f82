//! Lowering of the runtime's own code.

use super::super::link::service_address;
use super::super::primitive::{Primitive, Value, Word};
use super::super::shape::CallingConvention;
use super::stream::Place;
use super::{Frame, Funclets, Lowering};
use clr_unwind::Gpr;
use iced_x86::{Code, IcedError, Register};

/// Offset from gs, or from fs on Unix, of the thread-local slot that holds the address of the
/// Thread object.
pub const THREAD_SLOT: i64 = 0x58;

impl<'p> Lowering<'p> {
    pub(super) fn primitive(
        &mut self,
        frame: &mut Frame<'p>,
        funclets: &mut Funclets<'p>,
        primitive: &'p Primitive,
    ) -> Result<(), IcedError> {
        match primitive {
            Primitive::Set(word, value) => self.set(frame, *word, *value),
            Primitive::SetThreadFlag(offset, value) => {
                self.thread()?;
                let place = Place::At(Gpr::R11, i64::from(*offset));
                self.stream.memory_i32(Code::Mov_rm32_imm32, place, value.cast_signed())
            }
            Primitive::Service(number) => {
                self.stream.mov_imm64(Gpr::Rax, service_address(*number))?;
                self.stream.call_rax()?;
                self.returned(frame);
                Ok(())
            }
            Primitive::CallComputed => {
                self.stream.call_rax()?;
                self.returned(frame);
                Ok(())
            }
            // The unwind data describe the function as if the word were the return address.
            Primitive::PushReturnSlot(register) => self.stream.push(*register),
            Primitive::Stub(code) => self.stub(*code),
            Primitive::When(body) | Primitive::Unless(body) => {
                let over = self.stream.label();
                self.stream.registers(Code::Test_rm64_r64, Register::RAX, Register::RAX)?;
                let passes_over = match primitive {
                    Primitive::When(_) => Code::Je_rel32_64,
                    _ => Code::Jne_rel32_64,
                };
                self.stream.branch(passes_over, over)?;
                self.body(frame, funclets, body)?;
                self.stream.bind(over);
                Ok(())
            }
            Primitive::Repeat(body) => {
                let again = self.stream.label();
                self.stream.bind(again);
                self.body(frame, funclets, body)?;
                self.stream.registers(Code::Test_rm64_r64, Register::RAX, Register::RAX)?;
                self.stream.branch(Code::Jne_rel32_64, again)
            }
        }
    }

    /// Binds the label for the return address of the call just written.
    pub(super) fn returned(&mut self, frame: &mut Frame<'p>) {
        if let Some(label) = frame.next_return.take() {
            self.stream.bind(label);
        }
    }

    /// Loads the address of the Thread object into r11.
    fn thread(&mut self) -> Result<(), IcedError> {
        let segment = match self.program.convention {
            CallingConvention::WindowsX64 => Register::GS,
            CallingConvention::SystemV => Register::FS,
        };
        self.stream.load(Gpr::R11, Place::Segment(segment, THREAD_SLOT))
    }

    fn set(&mut self, frame: &mut Frame<'p>, word: Word, value: Value) -> Result<(), IcedError> {
        if value == Value::NextReturn {
            frame.next_return.get_or_insert_with(|| self.stream.label());
        }
        let frame = &*frame;
        let local = |offset: u32| frame.at(frame.layout.locals + offset);
        let into = match word {
            Word::Register(register) => register,
            _ => Gpr::Rax,
        };
        let from = match value {
            Value::Register(register) if !matches!(word, Word::Register(_)) => register,
            Value::Register(register) => {
                self.stream.mov(into, register)?;
                into
            }
            Value::Number(number) => {
                self.stream.mov_imm64(into, number)?;
                into
            }
            Value::Thread(offset) => {
                self.thread()?;
                self.stream.load(into, Place::At(Gpr::R11, i64::from(offset)))?;
                into
            }
            Value::ThreadObject => {
                self.thread()?;
                self.stream.mov(into, Gpr::R11)?;
                into
            }
            Value::Local(offset) => {
                self.stream.load(into, local(offset))?;
                into
            }
            Value::At(base, offset) => {
                self.stream.load(into, Place::At(base, i64::from(offset)))?;
                into
            }
            Value::ReturnAddress => {
                self.stream.load(into, frame.at(frame.layout.cfa() - 8))?;
                into
            }
            Value::Function(function) => {
                self.stream.load(into, Place::Absolute(self.cells.function(function)))?;
                into
            }
            Value::LocalAddress(offset) => {
                self.stream.lea(into, local(offset))?;
                into
            }
            Value::StackPointer(above) => {
                self.stream.lea(into, Place::At(Gpr::Rsp, i64::from(above)))?;
                into
            }
            Value::CallerSp => {
                self.stream.lea(into, frame.at(frame.layout.cfa()))?;
                into
            }
            Value::Pushed => {
                self.stream.lea(into, frame.at(frame.layout.allocation))?;
                into
            }
            Value::BelowPushed(bytes) => {
                let at = frame.layout.allocation.saturating_sub(bytes);
                self.stream.lea(into, frame.at(at))?;
                into
            }
            Value::NextReturn => {
                if let Some(label) = frame.next_return {
                    self.stream.lea_label(into, label)?;
                }
                into
            }
            Value::Here => {
                let label = self.stream.label();
                self.stream.bind(label);
                self.stream.lea_label(into, label)?;
                into
            }
        };
        match word {
            Word::Register(_) => Ok(()),
            Word::Local(offset) => self.stream.store(local(offset), from),
            Word::Thread(offset) => {
                self.thread()?;
                self.stream.store(Place::At(Gpr::R11, i64::from(offset)), from)
            }
            Word::At(base, offset) => self.stream.store(Place::At(base, i64::from(offset)), from),
        }
    }
}
