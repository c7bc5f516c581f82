//! Calls of methods by slot, with words as arguments: for programs that make every call there is.

use crate::{
    AppDomainId, AssemblyId, ClassId, ContextId, EventProviderConfig, GcHandleId, Guid, IUnknown,
    ModuleId, ObjectHandleId, ObjectId, ProcessId, StackSnapshotCallback,
};
use clr_walker::profiling::{FunctionId, HResult, ReJitId, ThreadId};
use std::ffi::c_void;
use std::ptr::null;

/// The meaning of an argument's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArgumentKind {
    /// A number or an id.
    Number {
        /// Size in bytes.
        size: usize,
    },
    /// A pointer that the method reads from.
    In {
        /// Size of what it points to, in bytes.
        size: usize,
    },
    /// A pointer that the method writes to.
    Out {
        /// Size of what it points to, in bytes.
        size: usize,
    },
    /// A pointer to a function.
    Function,
}

/// An argument of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArgumentSignature {
    /// The name.
    pub name: &'static str,
    /// The type as the interface declares it: `*mut ModuleId`.
    pub declared: &'static str,
    /// The meaning of the word.
    pub kind: ArgumentKind,
}

/// A method of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MethodSignature {
    /// The name.
    pub name: &'static str,
    /// The arguments.
    pub arguments: &'static [ArgumentSignature],
}

/// An interface whose methods can be called by slot.
pub trait Callable: Sized {
    /// Returns the method in a slot of the vtable.
    fn method(slot: u32) -> Option<MethodSignature>;

    /// Calls the method in a slot, with a word for each argument, and returns the word of its
    /// result; `None` if there is no such slot, or too few words.
    ///
    /// # Safety
    /// The words that are pointers are as the documentation of the method demands.
    unsafe fn call(&self, slot: u32, words: &[u64]) -> Option<u64>;
}

/// A type of arguments or results.
pub(crate) trait Word: Sized {
    /// The meaning of a word of the type.
    const KIND: ArgumentKind;

    /// Makes the value of a word.
    ///
    /// # Safety
    /// A word of a function or a structure is 0 or the address of one.
    unsafe fn from_word(word: u64) -> Self;

    /// Returns the word of the value.
    fn word(&self) -> u64;
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Word for $type {
            const KIND: ArgumentKind = ArgumentKind::Number { size: size_of::<$type>() };

            unsafe fn from_word(word: u64) -> Self {
                word as $type
            }

            #[allow(clippy::cast_sign_loss, clippy::cast_lossless, reason = "the same for all types")]
            fn word(&self) -> u64 {
                *self as u64
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 i32 }

macro_rules! wrappers {
    ($($type:ident)*) => {$(
        impl Word for $type {
            const KIND: ArgumentKind = ArgumentKind::Number { size: size_of::<$type>() };

            unsafe fn from_word(word: u64) -> Self {
                $type(word as _)
            }

            fn word(&self) -> u64 {
                self.0.into()
            }
        }
    )*};
}

wrappers! {
    AppDomainId AssemblyId ClassId ContextId FunctionId GcHandleId HResult ModuleId ObjectHandleId
    ObjectId ProcessId ReJitId ThreadId
}

impl<T> Word for *mut T {
    const KIND: ArgumentKind = ArgumentKind::Out { size: size_of::<T>() };

    unsafe fn from_word(word: u64) -> Self {
        word as usize as *mut T
    }

    fn word(&self) -> u64 {
        *self as usize as u64
    }
}

impl<T> Word for *const T {
    const KIND: ArgumentKind = ArgumentKind::In { size: size_of::<T>() };

    unsafe fn from_word(word: u64) -> Self {
        word as usize as *const T
    }

    fn word(&self) -> u64 {
        *self as usize as u64
    }
}

impl Word for StackSnapshotCallback {
    const KIND: ArgumentKind = ArgumentKind::Function;

    unsafe fn from_word(word: u64) -> Self {
        // SAFETY: the word is 0, which is `None`, or the address of such a function: the caller's
        // promise.
        unsafe { std::mem::transmute::<usize, Self>(word as usize) }
    }

    fn word(&self) -> u64 {
        self.map_or(0, |function| function as usize as u64)
    }
}

/// The one structure that is passed by value: its word points to it.
impl Word for EventProviderConfig {
    const KIND: ArgumentKind = ArgumentKind::In { size: size_of::<Self>() };

    unsafe fn from_word(word: u64) -> Self {
        if word == 0 {
            return Self { name: null(), keywords: 0, level: 0, filter: null() };
        }
        // SAFETY: the word points to the structure: the caller's promise.
        unsafe { (word as usize as *const Self).read_unaligned() }
    }

    fn word(&self) -> u64 {
        std::ptr::from_ref(self) as usize as u64
    }
}

impl Word for () {
    const KIND: ArgumentKind = ArgumentKind::Number { size: 0 };

    unsafe fn from_word(_: u64) -> Self {}

    fn word(&self) -> u64 {
        0
    }
}

/// Returns an argument of this type.
pub(crate) const fn argument<T: Word>(
    name: &'static str,
    declared: &'static str,
) -> ArgumentSignature {
    ArgumentSignature { name, declared, kind: T::KIND }
}

/// Makes the value of the next word.
///
/// # Safety
/// As [`Word::from_word`].
pub(crate) unsafe fn next<T: Word>(words: &mut std::slice::Iter<'_, u64>) -> Option<T> {
    // SAFETY: the caller's promise.
    words.next().map(|word| unsafe { T::from_word(*word) })
}

impl Callable for IUnknown {
    fn method(slot: u32) -> Option<MethodSignature> {
        const QUERY: &[ArgumentSignature] = &[
            argument::<*const Guid>("riid", "*const Guid"),
            argument::<*mut *mut c_void>("object", "*mut *mut c_void"),
        ];
        let (name, arguments): (_, &[_]) = match slot {
            0 => ("QueryInterface", QUERY),
            1 => ("AddRef", &[]),
            2 => ("Release", &[]),
            _ => return None,
        };
        Some(MethodSignature { name, arguments })
    }

    unsafe fn call(&self, slot: u32, words: &[u64]) -> Option<u64> {
        let mut words = words.iter();
        // SAFETY: the pointer is valid; the caller answers for the arguments.
        unsafe {
            Some(match slot {
                0 => self.query(next(&mut words)?, next(&mut words)?).word(),
                1 => self.add_reference().word(),
                2 => self.release_reference().word(),
                _ => return None,
            })
        }
    }
}
