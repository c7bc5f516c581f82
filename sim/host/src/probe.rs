//! A profiler that makes any call, with any arguments that a profiler may pass, and notices what is
//! written to them: for tests and fuzzing (feature `probe`).
//!
//! Arguments are [`Value`]s, and pointers are made here: each points to a block of its own, with as
//! much room as the call announces. So all calls keep the promises of a profiler, and none is unsafe.

mod blocks;
mod profiler;

use crate::session::Session;
use blocks::Block;
use clr_com::{
    Callable, Guid, ICorProfilerInfo15, ICorProfilerModuleEnum, ICorProfilerThreadEnum,
    IMetaDataImport, IMetaDataImport2, Interface,
};
use clr_walker::profiling::HResult;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;

pub use clr_com::{ArgumentKind, ArgumentSignature, MethodSignature};
pub use profiler::{Event, Frame};

/// The greatest number of elements that a block has room for.
pub const ROOM: u32 = 0x400;

/// The tables of methods that objects have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// `ICorProfilerInfo15`.
    Info,
    /// `ICorProfilerThreadEnum`.
    Threads,
    /// `ICorProfilerModuleEnum`.
    Modules,
    /// `IMetaDataImport2`.
    Import,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Info, Self::Threads, Self::Modules, Self::Import];

    /// Returns the method in a slot.
    #[must_use]
    pub fn method(self, slot: u32) -> Option<MethodSignature> {
        match self {
            Self::Info => ICorProfilerInfo15::method(slot),
            Self::Threads => ICorProfilerThreadEnum::method(slot),
            Self::Modules => ICorProfilerModuleEnum::method(slot),
            Self::Import => IMetaDataImport2::method(slot),
        }
    }

    /// Returns the number of slots.
    #[must_use]
    pub fn slots(self) -> u32 {
        (0..u32::MAX).take_while(|slot| self.method(*slot).is_some()).count() as u32
    }

    /// Calls the method in a slot of an object.
    ///
    /// # Safety
    /// The address is that of an object with this table, and the words keep a profiler's promises.
    unsafe fn call(self, object: usize, slot: u32, words: &[u64]) -> Option<u64> {
        unsafe fn through<I: Interface + Callable>(
            object: usize,
            slot: u32,
            words: &[u64],
        ) -> Option<u64> {
            // SAFETY: the caller's promise. The reference is not this pointer's, so it is not released.
            let pointer = ManuallyDrop::new(unsafe { I::from_raw(object as *mut _) }?);
            // SAFETY: the caller's promise.
            unsafe { pointer.call(slot, words) }
        }
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Info => through::<ICorProfilerInfo15>(object, slot, words),
                Self::Threads => through::<ICorProfilerThreadEnum>(object, slot, words),
                Self::Modules => through::<ICorProfilerModuleEnum>(object, slot, words),
                Self::Import => through::<IMetaDataImport2>(object, slot, words),
            }
        }
    }
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number, an id or a handle. As an argument that the method reads or writes through: NULL.
    Number(u64),
    /// A pointer to a block that begins with these bytes. What the call announces to have in it, and
    /// more is there as zeros or, if the method writes it, as a pattern.
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
    /// The object, by number.
    pub object: usize,
    /// The result: an HRESULT, a number of references or a BOOL.
    pub result: u64,
    /// The blocks that have changed.
    pub written: Vec<Written>,
    /// The argument behind or before whose block the method wrote, if there is one.
    pub overrun: Option<&'static str>,
    /// Number of the object that the method gave away, if it did.
    pub given: Option<usize>,
}

/// An object that the runtime has given away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Object {
    address: usize,
    table: Table,
}

/// The receiver of frames and of callbacks, which may make calls itself. A frame's result is the
/// result of the callback.
pub trait Receiver {
    /// Notices an event.
    fn receive(&self, probe: &Probe, event: &mut Event<'_>) -> HResult;
}

/// A session, and the objects that its runtime has given away.
#[derive(Debug)]
pub struct Probe {
    session: RefCell<Option<Session>>,
    objects: RefCell<Vec<Object>>,
    elsewhere: Cell<bool>,
}

impl Probe {
    /// Begins with the runtime's object of a session, which is object 0.
    #[must_use]
    pub fn new(session: Session) -> Self {
        let info = Object { address: session.info() as usize, table: Table::Info };
        Self {
            session: RefCell::new(Some(session)),
            objects: RefCell::new(vec![info]),
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
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere.get()
    }

    /// Returns the table of each object.
    #[must_use]
    pub fn tables(&self) -> Vec<Table> {
        self.objects.borrow().iter().map(|object| object.table).collect()
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

    /// Calls the method in a slot of an object. Events during the call go to a receiver.
    pub fn call(
        &self,
        object: usize,
        slot: u32,
        values: &[Value],
        receiver: &dyn Receiver,
    ) -> Option<Called> {
        let of = *self.objects.borrow().get(object)?;
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
        Some(self.judge(&method, of.table, object, result, &blocks))
    }

    fn judge(
        &self,
        method: &MethodSignature,
        table: Table,
        object: usize,
        result: u64,
        blocks: &[(ArgumentSignature, Block)],
    ) -> Called {
        let overrun = blocks.iter().find(|(_, block)| !block.is_fenced());
        let mut called = Called {
            method: method.name,
            object,
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
            called.given = self.given(method, table, object, &called);
            blocks::read_lent(method, blocks);
        }
        called
    }

    /// Takes the object that a method gave away.
    fn given(
        &self,
        method: &MethodSignature,
        table: Table,
        object: usize,
        called: &Called,
    ) -> Option<usize> {
        let given = match (table, method.name) {
            (_, "QueryInterface" | "Clone") => table,
            (Table::Info, "EnumThreads") => Table::Threads,
            (Table::Info, "EnumModules") => Table::Modules,
            (Table::Info, "GetModuleMetaData" | "GetTokenAndMetaDataFromFunction") => Table::Import,
            _ => return None,
        };
        let pointers = ["object", "enumerator", "out", "import"];
        let pointer = called.written.iter().find(|one| pointers.contains(&one.argument))?;
        let address = u64::from_ne_bytes(pointer.bytes.as_slice().try_into().ok()?) as usize;
        let mut objects = self.objects.borrow_mut();
        let mut known = objects.iter();
        let found = known.position(|known| known.address == address && known.table == given);
        if method.name == "QueryInterface" {
            debug_assert_eq!(found, Some(object), "an object of this table answers for itself");
        }
        if address == 0 || found.is_some() {
            return found;
        }
        objects.push(Object { address, table: given });
        Some(objects.len() - 1)
    }
}

/// Returns the ids of interfaces that a test may ask for, as they are in memory; those of metadata
/// come first.
#[must_use]
pub fn interface_ids() -> Vec<[u8; 16]> {
    let others = [
        IMetaDataImport2::IID,
        IMetaDataImport::IID,
        clr_com::IUnknown::IID,
        ICorProfilerThreadEnum::IID,
        ICorProfilerModuleEnum::IID,
    ];
    let bytes = |iid: Guid| {
        let mut bytes = [0; 16];
        let fields = [
            &iid.data1.to_ne_bytes()[..],
            &iid.data2.to_ne_bytes(),
            &iid.data3.to_ne_bytes(),
            &iid.data4,
        ];
        bytes.iter_mut().zip(fields.concat()).for_each(|(to, from)| *to = from);
        bytes
    };
    others.into_iter().chain(crate::object::INFO_IDS).map(bytes).collect()
}
