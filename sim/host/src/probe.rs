//! A profiler that makes any call, with any arguments that a profiler may pass, and notices what is
//! written to them: for tests and fuzzing (feature `probe`).
//!
//! Arguments are [`Value`]s, and pointers are made here: each points to a block of its own, with as
//! much room as the call announces. So all calls keep the promises of a profiler, and none is unsafe.

mod blocks;
mod hooks;
mod profiler;
mod table;

use crate::session::Session;
use blocks::Block;
use clr_com::{IUnknown, Interface};
use clr_walker::profiling::HResult;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;

pub use clr_com::{ArgumentKind, ArgumentSignature, MethodSignature};
pub use profiler::{Event, Frame, Hook};
pub use table::{METADATA_IDS, Table, interface_ids};

/// The greatest number of elements that a block has room for.
pub const ROOM: u32 = 0x400;

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number, an id or a handle. As an argument that the method reads or writes through: NULL.
    Number(u64),
    /// A pointer to a block that begins with these bytes. The block is padded to the size
    /// that the call announces (and a fence beyond), with zeros, or with a pattern if the method writes to it.
    Block(Vec<u8>),
}

/// A block that a method wrote to through a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Name of the argument.
    pub argument: &'static str,
    /// The block after the call: as many bytes as the call has announced.
    pub bytes: Vec<u8>,
}

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// The method.
    pub method: &'static str,
    /// The pointer that it was called through, by number.
    pub pointer: usize,
    /// The result: an HRESULT, a number of references or a BOOL.
    pub result: u64,
    /// The blocks that have changed.
    pub written: Vec<Written>,
    /// The argument behind or before whose block the method wrote, if there is one.
    pub overrun: Option<&'static str>,
    /// Number of the pointer that the method gave away, if it did.
    pub given: Option<usize>,
}

/// A pointer that the runtime has given away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pointer {
    address: usize,
    table: Table,
    /// Number of its object: pointers to one object share its references.
    object: usize,
}

/// The receiver of frames and of callbacks, which may make calls itself. A frame's result is the
/// result of the callback.
pub trait Receiver {
    /// Notices an event.
    fn receive(&self, probe: &Probe, event: &mut Event<'_>) -> HResult;
}

/// A session, and the pointers that its runtime has given away.
#[derive(Debug)]
pub struct Probe {
    session: RefCell<Option<Session>>,
    pointers: RefCell<Vec<Pointer>>,
    /// The pointer to `IUnknown` of each object, which is its identity.
    identities: RefCell<Vec<usize>>,
    elsewhere: Cell<bool>,
}

impl Probe {
    /// Begins with the runtime's object of a session: object 0, pointer 0.
    pub fn new(session: Session) -> Self {
        let info = session.info() as usize;
        Self {
            session: RefCell::new(Some(session)),
            pointers: RefCell::new(vec![Pointer { address: info, table: Table::Info, object: 0 }]),
            identities: RefCell::new(vec![info]),
            elsewhere: Cell::new(false),
        }
    }

    /// Calls `act` with the session, unless it is closed.
    pub fn with_session<T>(&self, act: impl FnOnce(&Session) -> T) -> Option<T> {
        let session = self.session.borrow().as_ref().map(Session::share);
        session.map(|session| act(&session))
    }

    /// Closes the session. Its objects may still be called.
    pub fn close(&self) {
        let closed = self.session.borrow_mut().take();
        drop(closed);
    }

    /// Makes the next calls on a thread of their own, one for each.
    pub fn set_elsewhere(&self, elsewhere: bool) {
        self.elsewhere.set(elsewhere);
    }

    /// Returns true if the next calls are made on other threads.
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere.get()
    }

    /// Returns the table of each pointer.
    pub fn tables(&self) -> Vec<Table> {
        self.pointers.borrow().iter().map(|pointer| pointer.table).collect()
    }

    /// Returns the number of the object that a pointer is one of.
    pub fn number_of_object(&self, pointer: usize) -> Option<usize> {
        self.pointers.borrow().get(pointer).map(|pointer| pointer.object)
    }

    /// Loads a profiler that passes its callbacks to a receiver. Returns the result of `Initialize`.
    pub fn initialize(&self, receiver: &dyn Receiver) -> Option<HResult> {
        self.with_session(|session| profiler::load(self, receiver, session))
    }

    /// Executes the program to its end, if there is a session. The events go to a receiver.
    pub fn run(&self, receiver: &dyn Receiver) -> bool {
        let run = || self.with_session(|session| session.run().is_ok());
        profiler::receiving(self, receiver, run) == Some(true)
    }

    /// Calls the method in a slot of a pointer's table. Events during the call go to a receiver.
    pub fn call(
        &self,
        pointer: usize,
        slot: u32,
        values: &[Value],
        receiver: &dyn Receiver,
    ) -> Option<Called> {
        let of = *self.pointers.borrow().get(pointer)?;
        let method = of.table.method(slot)?;
        if values.len() < method.arguments.len() {
            return None;
        }
        let mut words = Vec::new();
        let mut blocks = Vec::new();
        for (index, argument) in method.arguments.iter().enumerate() {
            let word = match blocks::block_of(&method, values, index) {
                Some(block) => {
                    let address = block.address();
                    blocks.push((*argument, block));
                    address
                }
                None => blocks::word_of(&method, values, index),
            };
            words.push(word);
        }
        let call = || {
            // SAFETY: objects outlive their references and, up to a number that no test reaches,
            // their session. Each pointer is to a block of the size that is announced with it.
            unsafe { of.table.call(of.address, slot, &words) }
        };
        let result = if self.elsewhere.get() {
            std::thread::scope(|scope| scope.spawn(call).join().ok().flatten())
        } else {
            profiler::receiving(self, receiver, call)
        }?;
        Some(self.judge(&method, of.table, (pointer, values), result, &blocks))
    }

    fn judge(
        &self,
        method: &MethodSignature,
        table: Table,
        (pointer, values): (usize, &[Value]),
        result: u64,
        blocks: &[(ArgumentSignature, Block)],
    ) -> Called {
        let overrun = blocks.iter().find(|(_, block)| !block.is_fenced());
        let mut called = Called {
            method: method.name,
            pointer,
            result,
            written: Vec::new(),
            overrun: overrun.map(|(argument, _)| argument.name),
            given: None,
        };
        for (argument, block) in blocks {
            if let Some(bytes) = block.changed() {
                called.written.push(Written { argument: argument.name, bytes });
            }
        }
        if !HResult(result as u32).is_failure() {
            called.given = self.given(method, table, values, &called);
            blocks::read_lent(method, blocks);
        }
        called
    }

    /// Takes the pointer that a method gave away.
    fn given(
        &self,
        method: &MethodSignature,
        table: Table,
        values: &[Value],
        called: &Called,
    ) -> Option<usize> {
        let given = match (table, method.name) {
            (_, "QueryInterface") => table.of(&iid_of(method, values)),
            (_, "Clone") => table,
            (Table::Info, "EnumThreads") => Table::Threads,
            (Table::Info, "EnumModules") => Table::Modules,
            (Table::Info, "EnumJITedFunctions" | "EnumJITedFunctions2") => Table::Functions,
            (Table::Info, "EnumModuleFrozenObjects" | "EnumerateNonGCObjects") => Table::Objects,
            (Table::Info, "EnumNgenModuleMethodsInliningThisMethod") => Table::Methods,
            (Table::Info, "GetModuleMetaData" | "GetTokenAndMetaDataFromFunction") => {
                Table::Import.of(&iid_of(method, values))
            }
            _ => return None,
        };
        let pointers = ["object", "enumerator", "out", "import"];
        let pointer = called.written.iter().find(|one| pointers.contains(&one.argument))?;
        let address = u64::from_ne_bytes(pointer.bytes.as_slice().try_into().ok()?) as usize;
        let mut pointers = self.pointers.borrow_mut();
        let mut known = pointers.iter();
        let found = known.position(|known| known.address == address && known.table == given);
        if address == 0 || found.is_some() {
            return found;
        }
        let object = self.object_at(address);
        pointers.push(Pointer { address, table: given, object });
        Some(pointers.len() - 1)
    }

    /// Returns the number of the object behind a pointer, by COM's rule of identity: all pointers to an
    /// object answer with the same one if they are asked for `IUnknown`.
    fn object_at(&self, address: usize) -> usize {
        // SAFETY: the runtime has given the pointer away. Its reference is the test's.
        let pointer = ManuallyDrop::new(unsafe { IUnknown::from_raw(address as *mut _) });
        // The new reference is given back at once.
        let identity = pointer.as_ref().and_then(|one| one.cast::<IUnknown>().ok());
        let identity = identity.map_or(address, |identity| identity.as_raw() as usize);
        let mut identities = self.identities.borrow_mut();
        if let Some(known) = identities.iter().position(|known| *known == identity) {
            return known;
        }
        identities.push(identity);
        identities.len() - 1
    }
}

/// Returns the id that a call asks for.
fn iid_of(method: &MethodSignature, values: &[Value]) -> [u8; 16] {
    let mut iid = [0; 16];
    let at = method.arguments.iter().position(|argument| argument.name == "riid");
    if let Some(Value::Block(bytes)) = at.and_then(|at| values.get(at)) {
        iid.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    }
    iid
}
