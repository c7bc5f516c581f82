//! The operations that need unsafe code: reading this thread's registers and stack, and calling C.
//!
//! Invariant of the module: a [`Stack`] covers memory between the stack pointer of a function that
//! has not returned and the end of the main thread's stack, which stays mapped and readable as long
//! as the process lives. The memory is read through raw pointers, never as a slice, since frames in
//! it have variables that are written meanwhile. Saved registers and return addresses have the same
//! value at every reading.
#![allow(unsafe_code, reason = "the one module that may")]

use clr_walker::memory::{Memory, Unreadable};
use clr_walker::registers::{Gpr, Registers};
use std::arch::asm;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;

/// The stack of the main thread from a live frame up to its end.
///
/// A value exists only during the call of [`with_stack`], and on that thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stack<'s> {
    from: u64,
    to: u64,
    /// Marks the stack as neither `Send` nor usable after the call.
    bound: PhantomData<(&'s (), *const ())>,
}

/// Usual limit of a stack's size in bytes.
const LARGEST: u64 = 8 << 20;

/// Calls `work` with the current registers and stack. Returns `None` if the stack is not in the
/// given mapping.
#[inline(never)]
pub(crate) fn with_stack(
    mapping: &std::ops::Range<u64>,
    work: &mut dyn FnMut(&Registers, Stack<'_>),
) -> Option<()> {
    let registers = here();
    let from = registers.rsp();
    // The mapping grows as it is used, and never by more than the usual limit.
    if mapping.end.checked_sub(from).is_none_or(|len| len == 0 || len > LARGEST) {
        return None;
    }
    work(&registers, Stack { from, to: mapping.end, bound: PhantomData });
    Some(())
}

/// Returns the registers of the function that this one is inlined into.
#[expect(clippy::inline_always, reason = "they would be those of a frame that is gone")]
#[inline(always)]
fn here() -> Registers {
    let mut values = [0_u64; 8];
    // SAFETY: the code reads registers, and writes the eight words of `values`.
    unsafe {
        asm!(
            "lea rax, [rip]",
            "mov [rcx], rax",
            "mov [rcx + 8], rsp",
            "mov [rcx + 16], rbx",
            "mov [rcx + 24], rbp",
            "mov [rcx + 32], r12",
            "mov [rcx + 40], r13",
            "mov [rcx + 48], r14",
            "mov [rcx + 56], r15",
            in("rcx") values.as_mut_ptr(),
            out("rax") _,
            options(nostack, preserves_flags),
        );
    }
    let [rip, rsp, rbx, rbp, r12, r13, r14, r15] = values;
    let mut registers = Registers { rip, ..Registers::default() };
    for (register, value) in [
        (Gpr::Rsp, rsp),
        (Gpr::Rbx, rbx),
        (Gpr::Rbp, rbp),
        (Gpr::R12, r12),
        (Gpr::R13, r13),
        (Gpr::R14, r14),
        (Gpr::R15, r15),
    ] {
        registers.set(register, value);
    }
    registers
}

impl Stack<'_> {
    /// Returns the lowest address (VA).
    pub(crate) const fn start(&self) -> u64 {
        self.from
    }

    /// Returns the length in bytes.
    pub(crate) const fn len(&self) -> u64 {
        self.to - self.from
    }

    /// Replaces the content of `bytes` by a copy of the first `limit` bytes, or of all bytes if
    /// there are fewer.
    pub(crate) fn copy(&self, bytes: &mut Vec<u8>, limit: usize) {
        let len = (self.to - self.from).min(limit as u64) as usize;
        bytes.clear();
        bytes.reserve(len);
        // SAFETY: `len` bytes from `from` are mapped (the module's invariant), the vector has
        // capacity for them, and a vector on the heap does not overlap the stack.
        unsafe {
            std::ptr::copy_nonoverlapping(self.from as *const u8, bytes.as_mut_ptr(), len);
            bytes.set_len(len);
        }
    }
}

impl Memory for Stack<'_> {
    #[inline]
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        let end = address.checked_add(buffer.len() as u64).ok_or(unreadable)?;
        if address < self.from || end > self.to {
            return Err(unreadable);
        }
        for (byte, at) in buffer.iter_mut().zip(address..) {
            // SAFETY: the byte lies in the stack (the module's invariant).
            *byte = unsafe { (at as *const u8).read_volatile() };
        }
        Ok(())
    }

    #[inline]
    fn read_u64(&self, address: u64) -> Result<u64, Unreadable> {
        if address < self.from || address > self.to - 8 || !address.is_multiple_of(8) {
            return Err(Unreadable { address, len: 8 });
        }
        // SAFETY: eight aligned bytes that lie in the stack (the module's invariant).
        Ok(unsafe { (address as *const u64).read_volatile() })
    }
}

unsafe extern "C" {
    fn backtrace(buffer: *mut *mut c_void, size: c_int) -> c_int;
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// A C function that writes the return addresses of this thread to a buffer.
type Backtrace = unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int;

fn call(function: Backtrace, addresses: &mut [u64]) -> usize {
    let size = c_int::try_from(addresses.len()).unwrap_or(c_int::MAX);
    // SAFETY: both functions of this type write at most `size` pointers; u64 is one on this target.
    let count = unsafe { function(addresses.as_mut_ptr().cast(), size) };
    usize::try_from(count).unwrap_or(0)
}

/// Writes the return addresses of this thread by glibc's `backtrace`, and returns their number.
pub(crate) fn glibc(addresses: &mut [u64]) -> usize {
    call(backtrace, addresses)
}

/// Memory for a ucontext_t or an unw_cursor_t, which are smaller (968 and 1016 bytes).
#[repr(C, align(16))]
struct Room([u64; 512]);

type GetContext = unsafe extern "C" fn(*mut Room) -> c_int;
type InitLocal = unsafe extern "C" fn(*mut Room, *mut Room) -> c_int;
type Advance = unsafe extern "C" fn(*mut Room) -> c_int;
type GetRegister = unsafe extern "C" fn(*mut Room, c_int, *mut u64) -> c_int;

/// The functions of libunwind that the benchmark uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Libunwind {
    backtrace: Backtrace,
    get_context: GetContext,
    init_local: InitLocal,
    step: Advance,
    get_register: GetRegister,
}

impl Libunwind {
    const RTLD_NOW: c_int = 2;
    const UNW_X86_64_RIP: c_int = 16;

    /// Loads libunwind if it is installed. Loading at run time needs no headers, and so no feature
    /// of this crate.
    pub(crate) fn load() -> Option<Self> {
        // SAFETY: loading the library runs its constructors, which have no preconditions.
        let library = unsafe { dlopen(c"libunwind.so.8".as_ptr(), Self::RTLD_NOW) };
        if library.is_null() {
            return None;
        }
        let find = |name: &CStr| {
            // SAFETY: the library was opened and is never closed.
            let address = unsafe { dlsym(library, name.as_ptr()) };
            (!address.is_null()).then_some(address)
        };
        // SAFETY: these are functions of libunwind.so.8, whose interface is fixed by that number,
        // and they have these types (libunwind-x86_64.h and libunwind-common.h).
        unsafe {
            Some(Self {
                backtrace: std::mem::transmute::<*mut c_void, Backtrace>(find(c"unw_backtrace")?),
                get_context: std::mem::transmute::<*mut c_void, GetContext>(find(
                    c"_Ux86_64_getcontext",
                )?),
                init_local: std::mem::transmute::<*mut c_void, InitLocal>(find(
                    c"_ULx86_64_init_local",
                )?),
                step: std::mem::transmute::<*mut c_void, Advance>(find(c"_ULx86_64_step")?),
                get_register: std::mem::transmute::<*mut c_void, GetRegister>(find(
                    c"_ULx86_64_get_reg",
                )?),
            })
        }
    }

    /// Writes the return addresses of this thread by `unw_backtrace`, and returns their number.
    pub(crate) fn backtrace(&self, addresses: &mut [u64]) -> usize {
        call(self.backtrace, addresses)
    }

    /// Does the same by `unw_step` and `unw_get_reg`, the interface that gives more registers than
    /// rip.
    #[inline(never)]
    pub(crate) fn steps(&self, addresses: &mut [u64]) -> usize {
        let (mut context, mut cursor) = (Room([0; 512]), Room([0; 512]));
        let mut found = 0;
        // SAFETY: both buffers are large enough, the context outlives the cursor, and the context
        // is that of this function, which does not return before the last step.
        unsafe {
            if (self.get_context)(&raw mut context) != 0
                || (self.init_local)(&raw mut cursor, &raw mut context) != 0
            {
                return 0;
            }
            for address in addresses {
                if (self.step)(&raw mut cursor) <= 0
                    || (self.get_register)(&raw mut cursor, Self::UNW_X86_64_RIP, address) != 0
                {
                    break;
                }
                found += 1;
            }
        }
        found
    }
}
