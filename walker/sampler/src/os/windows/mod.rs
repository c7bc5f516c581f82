//! Windows on x64: suspended threads, the loader's notifications and lists.
//!
//! The few functions of the system are declared here. A crate with all of them would bring its import
//! libraries, or need a linker's tool to make them.

mod contracts;

pub use contracts::{contracts, stops_by};

use super::{Image, Segment};
use clr_unwind::{CodeMap, CodeMapError, Convention, Memory, PeImage, Registers, Unreadable};
use clr_walker::mixed::Policy;
use clr_walker::profiling::{StackBounds, StackRoot, ThreadContext};
use std::ffi::c_void;
use std::fmt::{Display, Formatter};
use std::fs::File;
use std::os::windows::io::AsRawHandle;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The policies that this system allows; the first one is the default.
pub const POLICIES: &[Policy] = &[Policy::Seeded, Policy::Unseeded, Policy::FramePointers];
/// The calling convention of all code.
pub const CONVENTION: Convention = Convention::WindowsX64;
/// Name of the runtime's library.
pub const RUNTIME: &str = "coreclr.dll";
/// The system, as recordings name it.
pub const NAME: &str = "Windows x64";
/// The end of a thread's stack: `RtlUserThreadStart` returns to 0.
pub const ROOT: StackRoot = StackRoot::ReturnAddress(0);

type Handle = *mut c_void;
/// `INVALID_HANDLE_VALUE`.
const INVALID: Handle = null_mut::<c_void>().wrapping_byte_sub(1);

#[link(name = "kernel32")]
unsafe extern "system" {
    fn CloseHandle(handle: Handle) -> i32;
    fn CreateFileMappingW(
        file: Handle,
        attributes: *const c_void,
        protection: u32,
        size_high: u32,
        size_low: u32,
        name: *const u16,
    ) -> Handle;
    fn CreateToolhelp32Snapshot(flags: u32, process: u32) -> Handle;
    fn GetCurrentProcess() -> Handle;
    fn GetCurrentProcessId() -> u32;
    fn GetCurrentThreadId() -> u32;
    fn GetCurrentThreadStackLimits(low: *mut u64, high: *mut u64);
    fn GetLastError() -> u32;
    fn GetThreadContext(thread: Handle, context: *mut Context) -> i32;
    fn GetThreadDescription(thread: Handle, text: *mut *mut u16) -> i32;
    fn LocalFree(memory: *mut u16) -> *mut u16;
    fn MapViewOfFile(mapping: Handle, access: u32, high: u32, low: u32, len: usize) -> *mut c_void;
    fn Module32FirstW(snapshot: Handle, entry: *mut ModuleEntry) -> i32;
    fn Module32NextW(snapshot: Handle, entry: *mut ModuleEntry) -> i32;
    fn OpenThread(access: u32, inherit: i32, thread: u32) -> Handle;
    fn QueryPerformanceCounter(count: *mut i64) -> i32;
    fn QueryPerformanceFrequency(frequency: *mut i64) -> i32;
    fn ReadProcessMemory(
        process: Handle,
        address: *const c_void,
        buffer: *mut c_void,
        len: usize,
        read: *mut usize,
    ) -> i32;
    fn ResumeThread(thread: Handle) -> u32;
    fn SuspendThread(thread: Handle) -> u32;
    fn TerminateProcess(process: Handle, status: u32) -> i32;
    fn Thread32First(snapshot: Handle, entry: *mut ThreadEntry) -> i32;
    fn Thread32Next(snapshot: Handle, entry: *mut ThreadEntry) -> i32;
}

#[link(name = "ntdll")]
unsafe extern "system" {
    fn LdrRegisterDllNotification(
        flags: u32,
        notify: OnImage,
        context: *mut c_void,
        cookie: *mut *mut c_void,
    ) -> i32;
    fn NtQueryInformationThread(
        thread: Handle,
        class: u32,
        buffer: *mut BasicInformation,
        len: u32,
        returned: *mut u32,
    ) -> i32;
}

/// Returns the calling thread's id. Ids are multiples of 4 from a table of the kernel: far below 2³¹.
pub fn own_tid() -> i32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { GetCurrentThreadId() }.cast_signed()
}

/// Returns the bounds of the calling thread's stack.
pub fn own_stack() -> Option<StackBounds> {
    let (mut limit, mut base) = (0, 0);
    // SAFETY: the pointers are to locals.
    unsafe { GetCurrentThreadStackLimits(&raw mut limit, &raw mut base) };
    Some(StackBounds { limit, base, root: ROOT })
}

/// Returns the time of a clock that only goes on, in nanoseconds. Takes no lock.
pub fn now() -> u64 {
    let (mut count, mut frequency) = (0, 1);
    // SAFETY: the pointers are to locals.
    unsafe {
        QueryPerformanceCounter(&raw mut count);
        QueryPerformanceFrequency(&raw mut frequency);
    }
    let nanoseconds = i128::from(count) * 1_000_000_000 / i128::from(frequency.max(1));
    u64::try_from(nanoseconds).unwrap_or_default()
}

/// An error of the system: the result of `GetLastError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemError(u32);

impl SystemError {
    fn last() -> Self {
        // SAFETY: the call has no arguments and cannot fail.
        Self(unsafe { GetLastError() })
    }
}

impl Display for SystemError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "error {} of the system", self.0)
    }
}

/// A CONTEXT.
#[repr(C, align(16))]
struct Context([u8; Context::SIZE]);

impl Context {
    const SIZE: usize = 1232;
    /// Offset of ContextFlags in bytes.
    const FLAGS: usize = 0x30;
    /// CONTEXT_FULL, with CONTEXT_EXCEPTION_REQUEST.
    const WANTED: u32 = ThreadContext::FULL | 0x4000_0000;
}

/// A thread of this process, which may have ended.
#[derive(Debug)]
pub struct ThreadHandle(Handle);

impl ThreadHandle {
    /// THREAD_SUSPEND_RESUME, THREAD_GET_CONTEXT, THREAD_QUERY_INFORMATION.
    const ACCESS: u32 = 0x2 | 0x8 | 0x40;

    /// Opens the thread with this id.
    pub fn open(tid: i32) -> Option<Self> {
        // SAFETY: the call has no pointers.
        let handle = unsafe { OpenThread(Self::ACCESS, 0, tid.cast_unsigned()) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// Begins to suspend the thread: it may run until [`context`](Self::context) has returned.
    ///
    /// # Errors
    /// The system's.
    pub fn suspend(&self) -> Result<(), SystemError> {
        // SAFETY: the handle is open.
        if unsafe { SuspendThread(self.0) } == u32::MAX { Err(SystemError::last()) } else { Ok(()) }
    }

    /// Undoes one `suspend`.
    ///
    /// # Errors
    /// The system's.
    pub fn resume(&self) -> Result<(), SystemError> {
        // SAFETY: the handle is open.
        if unsafe { ResumeThread(self.0) } == u32::MAX { Err(SystemError::last()) } else { Ok(()) }
    }

    /// Lets the thread run, however often it is suspended.
    pub fn let_go(&self) {
        /// MAXIMUM_SUSPEND_COUNT.
        const MOST: u32 = 127;
        for _ in 0..MOST {
            // SAFETY: the handle is open. The result is the count before, or -1.
            if !(2..=MOST).contains(&unsafe { ResumeThread(self.0) }) {
                break;
            }
        }
    }

    /// Returns the registers of the suspended thread.
    ///
    /// # Errors
    /// The system's.
    pub fn context(&self) -> Result<ThreadContext, SystemError> {
        let mut context = Context([0; Context::SIZE]);
        context.0[Context::FLAGS..][..4].copy_from_slice(&Context::WANTED.to_le_bytes());
        // SAFETY: the handle is open, and the pointer is to a whole CONTEXT, aligned as one.
        if unsafe { GetThreadContext(self.0, &raw mut context) } == 0 {
            return Err(SystemError::last());
        }
        let flags =
            context.0[Context::FLAGS..].first_chunk().map_or(0, |it| u32::from_le_bytes(*it));
        match Registers::from_context(&context.0) {
            Ok(registers) => Ok(ThreadContext { registers, flags }),
            // The flags do not have CONTEXT_FULL: ERROR_INVALID_DATA.
            Err(_) => Err(SystemError(13)),
        }
    }

    /// Returns the bounds of the thread's stack, from its TEB.
    fn stack(&self) -> Option<StackBounds> {
        let mut basic = BasicInformation { words: [0; 6] };
        let len = size_of::<BasicInformation>() as u32;
        // SAFETY: the handle is open, class 0 is of this structure, and the pointers are to a local or NULL.
        let status =
            unsafe { NtQueryInformationThread(self.0, 0, &raw mut basic, len, null_mut()) };
        let [_, teb, ..] = basic.words;
        let word = |offset| OwnProcess.read_u64(teb.checked_add(offset)?).ok();
        // StackBase and DeallocationStack.
        let (base, limit) = (word(0x8)?, word(0x1478)?);
        (status >= 0).then_some(StackBounds { limit, base, root: ROOT })
    }
}

impl Drop for ThreadHandle {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and not used any more.
        unsafe { CloseHandle(self.0) };
    }
}

/// THREAD_BASIC_INFORMATION: the address of the TEB (VA) is its second word.
#[repr(C)]
struct BasicInformation {
    words: [u64; 6],
}

/// The memory of this process, any part of which may be unmapped at any time: each read is a
/// system call that fails instead of faulting.
#[derive(Clone, Copy, Debug)]
pub struct OwnProcess;

impl Memory for OwnProcess {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let mut read = 0;
        // SAFETY: the written range is `buffer`; the system checks the other one.
        let result = unsafe {
            let (from, to) = (address as *const c_void, buffer.as_mut_ptr().cast());
            ReadProcessMemory(GetCurrentProcess(), from, to, buffer.len(), &raw mut read)
        };
        if result != 0 && read == buffer.len() {
            Ok(())
        } else {
            Err(Unreadable { address, len: buffer.len() as u32 })
        }
    }
}

/// Returns the bytes of a file for as long as the process lives, or `None` if it cannot be read. They are mapped.
pub fn file_bytes(path: &str) -> Option<&'static [u8]> {
    /// PAGE_READONLY.
    const READ_ONLY: u32 = 2;
    /// FILE_MAP_READ.
    const READ: u32 = 4;
    let file = File::open(path).ok()?;
    let size = usize::try_from(file.metadata().ok()?.len()).ok().filter(|size| *size > 0)?;
    // SAFETY: a new mapping, which nobody unmaps. Windows refuses to cut off a file that is mapped.
    unsafe {
        let file = file.as_raw_handle();
        let mapping = CreateFileMappingW(file, null(), READ_ONLY, 0, 0, null());
        if mapping.is_null() {
            return None;
        }
        let start = MapViewOfFile(mapping, READ, 0, 0, 0);
        CloseHandle(mapping);
        (!start.is_null()).then(|| std::slice::from_raw_parts(start.cast_const().cast(), size))
    }
}

/// Adds a native image to a map.
///
/// # Errors
/// An overlap with other code. A file that is no image is left out.
pub fn insert_image(
    map: &mut CodeMap<'static>,
    base: u64,
    file: &'static [u8],
) -> Result<(), CodeMapError> {
    PeImage::parse(file).map_or(Ok(()), |image| map.insert_image(base, &image))
}

type OnImage = unsafe extern "system" fn(u32, *const c_void, *mut c_void);

/// Numbers of loads and unloads of images.
static LOADS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Counts, and nothing else: the loader's lock is held.
unsafe extern "system" fn on_image(reason: u32, _: *const c_void, _: *mut c_void) {
    // 1: loaded, 2: unloaded.
    if let Some(count) = LOADS.get((reason as usize).wrapping_sub(1)) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the numbers of loads and unloads of images since the first call.
pub fn loads() -> (u64, u64) {
    static REGISTERED: OnceLock<()> = OnceLock::new();
    REGISTERED.get_or_init(|| {
        let mut cookie = null_mut();
        // SAFETY: the function has the expected type and lives as long as the process: a runtime does
        // not unload its profiler.
        unsafe { LdrRegisterDllNotification(0, on_image, null_mut(), &raw mut cookie) };
        // Even without notifications the first look is one.
        LOADS[0].fetch_add(1, Ordering::Relaxed);
    });
    let [loads, unloads] = &LOADS;
    (loads.load(Ordering::Relaxed), unloads.load(Ordering::Relaxed))
}

/// Ends the process at once.
pub fn end(status: i32) -> ! {
    loop {
        // SAFETY: the call has no pointers.
        unsafe { TerminateProcess(GetCurrentProcess(), status.cast_unsigned()) };
    }
}

/// MODULEENTRY32W.
#[repr(C)]
struct ModuleEntry {
    size: u32,
    ids: [u32; 4],
    base: u64,
    size_of_image: u32,
    module: Handle,
    name: [u16; 256],
    path: [u16; 260],
}

/// THREADENTRY32.
#[repr(C)]
struct ThreadEntry {
    size: u32,
    usage: u32,
    thread: u32,
    process: u32,
    priorities: [i32; 2],
    flags: u32,
}

/// A list of the process's modules or threads.
struct ToolHelp(Handle);

impl ToolHelp {
    const THREADS: u32 = 4;
    const MODULES: u32 = 8;

    fn new(flags: u32) -> Option<Self> {
        // The documentation asks to try again while images are being loaded.
        (0..10).find_map(|_| {
            // SAFETY: the call has no pointers.
            let handle = unsafe { CreateToolhelp32Snapshot(flags, GetCurrentProcessId()) };
            (handle != INVALID).then_some(Self(handle))
        })
    }
}

impl Drop for ToolHelp {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and not used any more.
        unsafe { CloseHandle(self.0) };
    }
}

/// Returns the native images with unwind data. Images with managed code are left out.
pub fn images() -> Vec<Image> {
    let mut images = Vec::new();
    let Some(list) = ToolHelp::new(ToolHelp::MODULES) else { return images };
    // SAFETY: all zero is a valid value of this structure of numbers and a handle.
    let mut entry: ModuleEntry = unsafe { std::mem::zeroed() };
    entry.size = size_of::<ModuleEntry>() as u32;
    // SAFETY: the list is open, and the pointer is to a local that says its size.
    let mut more = unsafe { Module32FirstW(list.0, &raw mut entry) };
    while more != 0 {
        if let Some(functions) = functions_of_native(entry.base) {
            let len = entry.path.iter().position(|unit| *unit == 0).unwrap_or(entry.path.len());
            images.push(Image {
                base: entry.base,
                path: String::from_utf16_lossy(&entry.path[..len]),
                code: entry.base..entry.base + u64::from(entry.size_of_image),
                unwind_table: functions,
            });
        }
        // SAFETY: the same.
        more = unsafe { Module32NextW(list.0, &raw mut entry) };
    }
    images
}

/// Returns the address of the exception directory (VA) of the image at `base` (VA), if it has one, and
/// no managed code.
fn functions_of_native(base: u64) -> Option<u64> {
    let word = |address| {
        let mut bytes = [0; 4];
        OwnProcess.read(address, &mut bytes).ok()?;
        Some(u32::from_le_bytes(bytes))
    };
    let optional_header = base + u64::from(word(base + 0x3C)?) + 24;
    let directory = |number: u64| word(optional_header + 112 + number * 8);
    let is_pe32_plus = word(optional_header)? & 0xFFFF == 0x20B;
    let (functions, clr_header) = (directory(3)?, directory(14)?);
    (is_pe32_plus && functions != 0 && clr_header == 0).then_some(base + u64::from(functions))
}

/// Returns the address (VA) of a loaded native library, and its parts in memory. `name`: of its file.
pub fn segments(name: &str) -> Option<(u64, Vec<Segment>)> {
    /// IMAGE_SCN_MEM_EXECUTE and IMAGE_SCN_MEM_WRITE.
    const EXECUTE: u32 = 0x2000_0000;
    const WRITE: u32 = 0x8000_0000;
    let is_named = |image: &Image| {
        let file = image.path.rsplit(['/', '\\']).next().unwrap_or_default();
        file.eq_ignore_ascii_case(name)
    };
    let base = images().into_iter().find(is_named)?.base;
    let word = |address| {
        let mut bytes = [0; 4];
        OwnProcess.read(address, &mut bytes).ok()?;
        Some(u32::from_le_bytes(bytes))
    };
    let header = base + u64::from(word(base + 0x3C)?);
    let count = word(header + 6)? & 0xFFFF;
    let table = header + 24 + u64::from(word(header + 20)? & 0xFFFF);
    let segment = |number: u32| {
        let section = table + 40 * u64::from(number);
        let (size, rva, flags) = (word(section + 8)?, word(section + 12)?, word(section + 36)?);
        let start = base + u64::from(rva);
        let (is_writable, is_executable) = (flags & WRITE != 0, flags & EXECUTE != 0);
        Some(Segment { range: start..start + u64::from(size), is_writable, is_executable })
    };
    Some((base, (0..count).map(segment).collect::<Option<_>>()?))
}

/// Returns the ids of the threads of the process.
pub fn tasks() -> Vec<i32> {
    let mut tasks = Vec::new();
    let Some(list) = ToolHelp::new(ToolHelp::THREADS) else { return tasks };
    // SAFETY: the call has no arguments and cannot fail.
    let own = unsafe { GetCurrentProcessId() };
    // SAFETY: all zero is a valid value of this structure of numbers.
    let mut entry: ThreadEntry = unsafe { std::mem::zeroed() };
    entry.size = size_of::<ThreadEntry>() as u32;
    // SAFETY: the list is open, and the pointer is to a local that says its size.
    let mut more = unsafe { Thread32First(list.0, &raw mut entry) };
    while more != 0 {
        // The list has the threads of all processes.
        if entry.process == own {
            tasks.push(entry.thread.cast_signed());
        }
        // SAFETY: the same.
        more = unsafe { Thread32Next(list.0, &raw mut entry) };
    }
    tasks
}

/// Returns the name of a thread, if it has one.
pub fn describe_task(tid: i32) -> String {
    let Some(thread) = ThreadHandle::open(tid) else { return String::new() };
    let mut text = null_mut();
    // SAFETY: the handle is open. A successful call gives a text that ends with 0, to be freed.
    unsafe {
        if GetThreadDescription(thread.0, &raw mut text) < 0 || text.is_null() {
            return String::new();
        }
        let len = (0..0x8000).take_while(|at| *text.add(*at) != 0).count();
        let name = String::from_utf16_lossy(std::slice::from_raw_parts(text, len));
        LocalFree(text);
        name
    }
}

/// Returns the bounds of the stack of a thread.
pub fn stack_of_task(tid: i32) -> Option<StackBounds> {
    ThreadHandle::open(tid)?.stack()
}
