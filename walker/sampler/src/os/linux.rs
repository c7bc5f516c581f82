//! Linux on x86-64: signals, `/proc`, the loader's list.

mod file;

use super::{Image, Segment};
use clr_unwind::{CodeMap, CodeMapError, Convention, ElfImage, Memory, Registers, Unreadable};
use clr_walker::jitted::contracts::ContractDescriptor;
use clr_walker::mixed::Policy;
use clr_walker::profiling::{StackBounds, StackRoot};
pub use file::file_bytes;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// The policies that this system allows; the first one is the default.
pub const POLICIES: &[Policy] = &[Policy::Signal, Policy::RuntimeSuspended];
/// The calling convention of all code.
pub const CONVENTION: Convention = Convention::SystemV;
/// Name of the runtime's library.
pub const RUNTIME: &str = "libcoreclr.so";
/// The system, as recordings name it.
pub const NAME: &str = "Linux x64";
/// The end of a thread's stack: `_start` and `clone3` of glibc mark their return address as undefined.
pub const ROOT: StackRoot = StackRoot::Undefined;

/// The bits of an address within a page.
const PAGE_MASK: u64 = 0xFFF;
/// The path of the program itself.
const PROGRAM: &str = "/proc/self/exe";
/// The signal of samples. The runtime uses real-time signals, SIGPROF is for profilers.
const SIGNAL: i32 = libc::SIGPROF;

/// Returns the calling thread's id. Allowed in a signal handler.
pub fn own_tid() -> i32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::gettid() }
}

/// Returns the segment base of the calling thread, by which its code finds its variables. Allowed in a signal
/// handler.
pub fn own_thread_pointer() -> u64 {
    // SAFETY: the call has no arguments. On x86-64 the handle is the address that fs points to, in glibc and musl.
    unsafe { libc::pthread_self() as u64 }
}

/// Returns the bounds of the calling thread's stack. Not for signal handlers.
pub fn own_stack() -> Option<StackBounds> {
    // SAFETY: all zero is a valid value of this structure of numbers and pointers.
    let mut attributes: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
    let (mut low, mut size) = (null_mut(), 0);
    // SAFETY: the attributes are initialised by the first call, read by the second, freed by the
    // third, and the other pointers are to locals.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return None;
        }
        libc::pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
    }
    let limit = low as u64;
    Some(StackBounds { limit, base: limit + size as u64, root: ROOT })
}

/// Returns the time of a clock that only goes on, in nanoseconds. Allowed in a signal handler.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// A function that is called in the signal handler, with the value that was sent with the signal
/// and the registers of the interrupted thread.
pub type OnSignal = fn(value: usize, registers: &Registers);

/// The function of the only handler.
static ON_SIGNAL: std::sync::OnceLock<OnSignal> = std::sync::OnceLock::new();

/// Installs the handler.
///
/// The handler runs on the interrupted stack: CoreCLR's alternate stacks are small, and a walk goes up
/// the stack that it is on.
pub fn install(on_signal: OnSignal) -> bool {
    if ON_SIGNAL.set(on_signal).is_err() {
        return false;
    }
    // SAFETY: all zero is a valid sigaction; the handler has the type that SA_SIGINFO demands.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) = handle;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(SIGNAL, &raw const action, null_mut()) == 0
    }
}

unsafe extern "C" fn handle(_: i32, info: *mut libc::siginfo_t, ucontext: *mut c_void) {
    // SAFETY: errno is the thread's own, and must be unchanged after a handler.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel passes a siginfo_t, with a value if it was sent with one; and a ucontext_t,
    // of which these are the first bytes.
    unsafe {
        if (*info).si_code == libc::SI_QUEUE
            && (*info).si_pid() == libc::getpid()
            && let Some(on_signal) = ON_SIGNAL.get()
        {
            let registers = ucontext.cast::<[u8; Registers::LINUX_UCONTEXT_SIZE]>();
            let value = (*info).si_value().sival_ptr as usize;
            on_signal(value, &Registers::from_linux_ucontext(&*registers));
        }
        *libc::__errno_location() = errno;
    }
}

/// A `siginfo_t` with a value, as the kernel expects it from `rt_tgsigqueueinfo`.
#[repr(C)]
struct Queued {
    signal: i32,
    errno: i32,
    code: i32,
    padding: i32,
    process: i32,
    user: u32,
    value: usize,
    rest: [u64; 12],
}

/// Sends the signal to a thread of this process. Returns false if there is no such thread.
pub fn interrupt(tid: i32, value: usize) -> bool {
    const _: () = assert!(size_of::<Queued>() == size_of::<libc::siginfo_t>());
    // SAFETY: the calls have no pointers but one to a whole siginfo_t, which is only read.
    unsafe {
        let (process, user) = (libc::getpid(), libc::getuid());
        let (signal, code) = (SIGNAL, libc::SI_QUEUE);
        let info =
            Queued { signal, errno: 0, code, padding: 0, process, user, value, rest: [0; 12] };
        libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, tid, SIGNAL, &raw const info) == 0
    }
}

/// Waits until `word` is no longer `value`, or for this time. May return earlier.
pub fn wait(word: &AtomicU32, value: u32, time: Duration) {
    let time = libc::timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    };
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the time outlive the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, &raw const time);
    }
}

/// Wakes a thread that waits for `word`. Allowed in a signal handler.
pub fn wake(word: &AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel uses the word's address alone.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1);
    }
}

/// The memory of this process, any part of which may be unmapped at any time: each read is a
/// system call that fails instead of faulting. Allowed in a signal handler.
#[derive(Clone, Copy, Debug)]
pub struct OwnProcess;

impl Memory for OwnProcess {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: buffer.len() };
        // SAFETY: the local range is `buffer`; the kernel checks the other one.
        let read = unsafe {
            let process = libc::getpid();
            libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0)
        };
        if usize::try_from(read) == Ok(buffer.len()) {
            Ok(())
        } else {
            Err(Unreadable { address, len: buffer.len() as u32 })
        }
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
    ElfImage::parse(file).map_or(Ok(()), |image| map.insert_elf(base, &image))
}

/// Returns the kernel's image in this process: its address (VA) and bytes.
pub fn vdso() -> Option<(u64, &'static [u8])> {
    // SAFETY: the call has no pointers.
    let start = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    let header = std::ptr::with_exposed_provenance::<libc::Elf64_Ehdr>(start as usize);
    if header.is_null() {
        return None;
    }
    // SAFETY: the kernel maps its image there for as long as the process lives, as the loader would
    // map a file: all of its segments, of which the first one has the headers, at their offsets.
    unsafe {
        let first = header.byte_add(usize::try_from((*header).e_phoff).ok()?);
        let count = usize::from((*header).e_phnum);
        let segments = std::slice::from_raw_parts(first.cast::<libc::Elf64_Phdr>(), count);
        let loaded = segments.iter().filter(|segment| segment.p_type == libc::PT_LOAD);
        let size = loaded.map(|segment| segment.p_offset + segment.p_filesz).max()?;
        // Whole pages are mapped: the table of sections is behind the last segment.
        let size = usize::try_from(size).ok()?.next_multiple_of(0x1000);
        Some((start, std::slice::from_raw_parts(header.cast(), size)))
    }
}

/// Returns how the system lets a runtime stop a thread that is in a method, as notes in recordings say it.
pub const fn stops_by() -> &'static str {
    "signals"
}

/// Returns what the runtime states about itself, if it does: a library, or the program in which it is.
pub fn contracts() -> Option<ContractDescriptor> {
    let name = c"DotNetRuntimeContractDescriptor";
    images().into_iter().find_map(|image| {
        let path = CString::new(image.path).ok()?;
        let path = if path.as_bytes() == PROGRAM.as_bytes() { null() } else { path.as_ptr() };
        // SAFETY: the paths are strings or null, and nothing is loaded.
        let address = unsafe {
            let library = libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if library.is_null() {
                return None;
            }
            let address = libc::dlsym(library, name.as_ptr());
            libc::dlclose(library);
            address as u64
        };
        // The search goes on in what an image needs.
        let is_here = image.code.contains(&address);
        is_here.then(|| ContractDescriptor::read(&OwnProcess, address).ok())?
    })
}

/// Returns the numbers of loads and unloads of images until now.
pub fn loads() -> (u64, u64) {
    unsafe extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        _: usize,
        counts: *mut c_void,
    ) -> i32 {
        // SAFETY: the loader passes its data, and below, `counts` is passed.
        unsafe { *counts.cast::<(u64, u64)>() = ((*info).dlpi_adds, (*info).dlpi_subs) };
        1
    }
    let mut counts = (0, 0);
    // SAFETY: the function has the expected type, and the data is a local.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut counts).cast()) };
    counts
}

/// Ends the process at once.
pub fn end(status: i32) -> ! {
    // SAFETY: the call does not return.
    unsafe { libc::_exit(status) }
}

/// Returns the native images with unwind data.
pub fn images() -> Vec<Image> {
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, images: *mut c_void) -> i32 {
        // SAFETY: the loader passes its data, and below, `images` is passed.
        let (info, images) = unsafe { (&*info, &mut *images.cast::<Vec<Image>>()) };
        // SAFETY: the loader's own array of this length.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let range = |header: &libc::Elf64_Phdr| {
            let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
            start..start + header.p_memsz
        };
        let of_kind = |kind| headers.iter().filter(move |header| header.p_type == kind).map(range);
        let start = of_kind(libc::PT_LOAD).map(|range| range.start).min();
        let end = of_kind(libc::PT_LOAD).map(|range| range.end).max();
        if let (Some(start), Some(end)) = (start, end)
            && let Some(table) = of_kind(libc::PT_GNU_EH_FRAME).next()
        {
            // SAFETY: the loader's name of the image, which ends with 0; empty for the program itself.
            let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy();
            let path = if name.is_empty() { PROGRAM.into() } else { name };
            images.push(Image {
                base: start & !PAGE_MASK,
                path: path.into_owned(),
                code: start..end,
                unwind_table: table.start,
            });
        }
        0
    }
    let mut images = Vec::new();
    // SAFETY: the function has the expected type, and the data is a local.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut images).cast()) };
    images
}

/// A larger alternate stack of a thread, in place of the runtime's.
struct AlternateStack {
    start: *mut c_void,
    old: libc::stack_t,
}

impl AlternateStack {
    const SIZE: usize = 64 << 10;
    /// A page below the stack, which faults.
    const GUARD: usize = 4096;

    /// Makes one for the calling thread.
    fn install() -> Option<Self> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: all zero is a valid stack_t. The new stack is a mapping of its own; the call that
        // changes stacks fails if the thread is on the old one.
        unsafe {
            let mut old: libc::stack_t = std::mem::zeroed();
            let size = Self::SIZE + Self::GUARD;
            let start = libc::mmap(null_mut(), size, protection, flags, -1, 0);
            if start == libc::MAP_FAILED {
                return None;
            }
            libc::mprotect(start, Self::GUARD, libc::PROT_NONE);
            let ss_sp = start.byte_add(Self::GUARD);
            let stack = libc::stack_t { ss_sp, ss_flags: 0, ss_size: Self::SIZE };
            if libc::sigaltstack(&raw const stack, &raw mut old) == 0 {
                return Some(Self { start, old });
            }
            libc::munmap(start, size);
        }
        None
    }
}

impl Drop for AlternateStack {
    /// Puts the runtime's stack back, which the runtime frees after this.
    fn drop(&mut self) {
        // SAFETY: the old stack is mapped until the runtime frees it. The new one is unmapped only if
        // it is not the thread's any more.
        unsafe {
            if libc::sigaltstack(&raw const self.old, null_mut()) == 0 {
                libc::munmap(self.start, Self::SIZE + Self::GUARD);
            }
        }
    }
}

thread_local! {
    /// Dropped when the thread ends, before the runtime's own destructors of the thread, which were
    /// registered earlier or with pthread_key_create.
    static ALTERNATE_STACK: RefCell<Option<AlternateStack>> = const { RefCell::new(None) };
}

/// Gives the calling thread a larger alternate stack, for as long as it lives.
///
/// CoreCLR gives its threads one of 12 KiB for its handlers of faults. The frame of a signal that
/// arrives there has the vector registers, 3 KiB with AVX-512: two of them and the runtime's handler
/// do not fit, and the kernel ends the process.
pub fn enlarge_alternate_stack() {
    ALTERNATE_STACK.with_borrow_mut(|stack| {
        if stack.is_none() {
            *stack = AlternateStack::install();
        }
    });
}

/// Returns the ids of the threads of the process.
pub fn tasks() -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the name and the state of a thread.
pub fn describe_task(tid: i32) -> String {
    let file = |name| std::fs::read_to_string(format!("/proc/self/task/{tid}/{name}"));
    let text = |name| file(name).unwrap_or_default().trim().to_owned();
    format!("{} {} {}", text("comm"), text("wchan"), text("syscall"))
}

/// Returns the bounds of the stack of a thread that waits in a system call.
pub fn stack_of_task(tid: i32) -> Option<StackBounds> {
    let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let call = std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).ok()?;
    let sp = number(call.split_whitespace().rev().nth(1)?)?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, _) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let (limit, base) = (number(start)?, number(end)?);
        (limit..base).contains(&sp).then_some(StackBounds { limit, base, root: ROOT })
    })
}

/// Returns the lowest address (VA) of a loaded library, and its parts in memory. `name`: of its file.
pub fn segments(name: &str) -> Option<(u64, Vec<Segment>)> {
    let is_named = |image: &Image| image.path.rsplit('/').next() == Some(name);
    let library = images().into_iter().find(is_named)?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut segments = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let rights = words.next()?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        let range = number(start)?..number(end)?;
        if library.code.contains(&range.start) {
            let (is_writable, is_executable) = (rights.contains('w'), rights.contains('x'));
            segments.push(Segment { range, is_writable, is_executable });
        }
    }
    Some((library.base, segments))
}
