//! The code header: the way from a method's start to its unwind data.

use super::unwind_data::{self, UnwindData};
use super::{JittedCodeError, JittedMethod, StubBlockKind};
use alloc::boxed::Box;
use alloc::vec::Vec;
use clr_unwind::{Memory, RuntimeFunction, SIZE_OF_RUNTIME_FUNCTION, Unreadable};

/// Bytes of one read at most; a read stays within a page of this size.
const PAGE: u64 = 4096;
/// Size of the word before the code.
const SIZE_OF_CODE_HEADER: u32 = 8;
/// A method has at most 65,534 exception clauses, and each has a handler and at most a filter.
const UNWIND_INFO_LIMIT: u32 = 2 * 65_534 + 1;
/// The most code of one method that is copied, in bytes.
const CODE_LIMIT: u32 = 1 << 24;

/// The places of the fields in a runtime's `RealCodeHeader`, as byte offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeHeaderLayout {
    /// Offset of `phdrMDesc`, a pointer.
    pub method_desc: u32,
    /// Offset of `nUnwindInfos`, a u32.
    pub unwind_info_count: u32,
    /// Offset of `unwindInfos`, an array of RUNTIME_FUNCTION.
    pub unwind_infos: u32,
    /// The last number in place of a pointer to the header that means a stub block.
    pub last_stub_block: StubBlockKind,
}

impl CodeHeaderLayout {
    /// The layout of .NET Core 3.1 and .NET 5 to 10, release builds for x64 of every OS.
    ///
    /// `_hpRealCodeHdr` in src/vm/codeman.h of dotnet/coreclr v3.1.23, and `RealCodeHeader` in
    /// src/coreclr/vm/codeman.h of dotnet/runtime (src/coreclr/src/vm in .NET 5): three pointers
    /// (debug, exception and GC information), `phdrMDesc`, `nUnwindInfos`, `unwindInfos`. Builds
    /// with `FEATURE_GDBJIT` have a pointer more; no published one is known. Held against every
    /// jitted method of processes of 3.1.23, 9.0.7 and 10.0.9 on Linux, and of 10.0.9 on Windows;
    /// .NET 10 states the same offsets in its data contracts. The rest is known from source.
    pub const CORE_3_1_TO_10: Self = Self {
        method_desc: 0x18,
        unwind_info_count: 0x20,
        unwind_infos: 0x24,
        last_stub_block: StubBlockKind::LAST,
    };

    /// Returns the layout of a version of .NET Core or .NET, or `None` if it is not known. For
    /// versions after .NET 10, use the runtime's data contracts.
    pub const fn of_version(major: u16, minor: u16) -> Option<Self> {
        match (major, minor) {
            (3, 1) | (5..=10, 0) => Some(Self::CORE_3_1_TO_10),
            _ => None,
        }
    }
}

impl JittedMethod {
    /// Reads the method whose code starts at `start` (VA). `size` is the size of its code in bytes,
    /// where the caller knows it, for example from `GetCodeInfo2`.
    ///
    /// # Errors
    /// [`JittedCodeError`] if a byte cannot be read, or is not what the runtime would write there.
    pub fn read<M: Memory + ?Sized>(
        memory: &M,
        layout: &CodeHeaderLayout,
        start: u64,
        size: Option<u32>,
    ) -> Result<Self, JittedCodeError> {
        let header = header_address(memory, layout, start)?;
        let method_desc = memory.read_u64(field(header, layout.method_desc))?;
        if method_desc == 0 || !method_desc.is_multiple_of(8) {
            return Err(JittedCodeError::MethodDesc { header, method_desc });
        }
        let count = memory.read_u32(field(header, layout.unwind_info_count))?;
        if count == 0 || count > UNWIND_INFO_LIMIT {
            return Err(JittedCodeError::UnwindInfoCount { header, count });
        }
        let first = field(header, layout.unwind_infos);
        let entries = used(copy(memory, first, count * SIZE_OF_RUNTIME_FUNCTION as u32)?);
        let code_rvas = check_ranges(start, first, &entries)?;
        let base = base_of(start, code_rvas.begin)?;
        let code_size = code_rvas.end - code_rvas.begin;
        let expected = size.unwrap_or(code_size).min(CODE_LIMIT);
        if code_size != expected {
            return Err(JittedCodeError::CodeSize { start, size: code_size, expected });
        }
        let UnwindData { rva, bytes } = unwind_data::read(memory, base, first, &entries)?;
        let code = copy(memory, start, code_size)?;
        Ok(Self { start, base, method_desc, code, entries, unwind_rva: rva, unwind_data: bytes })
    }
}

/// Reads the word before the code.
fn header_address<M: Memory + ?Sized>(
    memory: &M,
    layout: &CodeHeaderLayout,
    start: u64,
) -> Result<u64, JittedCodeError> {
    let header = memory.read_u64(start.wrapping_sub(SIZE_OF_CODE_HEADER.into()))?;
    if header <= u64::from(layout.last_stub_block.0) {
        return Err(JittedCodeError::StubBlock { start, kind: StubBlockKind(header as u8) });
    }
    if header.is_multiple_of(8) {
        Ok(header)
    } else {
        Err(JittedCodeError::HeaderAddress { start, header })
    }
}

/// The RVAs of a method's code.
#[derive(Clone, Copy)]
struct CodeRvas {
    begin: u32,
    end: u32,
}

/// Removes the entries that the JIT reserved and did not write: the last ones, all zero. Seen on Windows
/// in some of the methods of each process of 3.1.23 and 8.0.4.
fn used(entries: Box<[u8]>) -> Box<[u8]> {
    let mut entries = entries.into_vec();
    while entries.len() > SIZE_OF_RUNTIME_FUNCTION
        && entries.ends_with(&[0; SIZE_OF_RUNTIME_FUNCTION])
    {
        entries.truncate(entries.len() - SIZE_OF_RUNTIME_FUNCTION);
    }
    entries.into_boxed_slice()
}

/// Checks that each function begins where the one before ends. `first` is the address of the first
/// entry (VA).
fn check_ranges(start: u64, first: u64, entries: &[u8]) -> Result<CodeRvas, JittedCodeError> {
    let mut rvas: Option<CodeRvas> = None;
    for (index, function) in functions(entries).enumerate() {
        let begin = rvas.map_or(function.begin, |rvas| rvas.end);
        if function.begin != begin || function.end <= begin {
            return Err(JittedCodeError::FunctionRange { entry: entry_address(first, index) });
        }
        let begin = rvas.map_or(begin, |rvas| rvas.begin);
        rvas = Some(CodeRvas { begin, end: function.end });
    }
    rvas.ok_or(JittedCodeError::Base { start, begin: 0 })
}

/// Returns the low address of the code heap (VA). The heap begins with the code header of its first
/// code at the latest.
fn base_of(start: u64, begin: u32) -> Result<u64, JittedCodeError> {
    let base = start.checked_sub(begin.into()).filter(|_| begin >= SIZE_OF_CODE_HEADER);
    // No RVA leads beyond the end of the address space.
    base.filter(|base| base.checked_add(u32::MAX.into()).is_some())
        .ok_or(JittedCodeError::Base { start, begin })
}

/// Returns the entries in `bytes`.
pub(super) fn functions(bytes: &[u8]) -> impl Iterator<Item = RuntimeFunction> + '_ {
    bytes.as_chunks::<SIZE_OF_RUNTIME_FUNCTION>().0.iter().map(RuntimeFunction::from_bytes)
}

/// Returns the address of entry `index` (VA).
pub(super) const fn entry_address(first: u64, index: usize) -> u64 {
    first.wrapping_add((index * SIZE_OF_RUNTIME_FUNCTION) as u64)
}

const fn field(header: u64, offset: u32) -> u64 {
    header.wrapping_add(offset as u64)
}

/// Copies `len` bytes at `address` (VA), page by page: an invented length costs no more memory than
/// there is to read.
pub(super) fn copy<M: Memory + ?Sized>(
    memory: &M,
    address: u64,
    len: u32,
) -> Result<Box<[u8]>, Unreadable> {
    let mut bytes = Vec::new();
    let len = len as usize;
    while bytes.len() < len {
        let at = address.wrapping_add(bytes.len() as u64);
        let piece = ((PAGE - at % PAGE) as usize).min(len - bytes.len());
        let mut page = [0; PAGE as usize];
        let unreadable = Unreadable { address: at, len: piece as u32 };
        let page = page.get_mut(..piece).ok_or(unreadable)?;
        memory.read(at, page)?;
        bytes.extend_from_slice(page);
    }
    Ok(bytes.into_boxed_slice())
}
