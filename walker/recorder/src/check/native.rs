//! Native frames by libunwind (`libunwind-x86_64.so.8`), an unwinder that shares no code with
//! `clr-walker`: it reads the copied stack through callbacks.

#![allow(non_camel_case_types, reason = "names of libunwind")]

use super::frame::{Frame, Pages, StackCopy};
use clr_sampler::os;
use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;

/// Register numbers of `libunwind-x86_64.h` in the order of machine code: DWARF's numbers.
const NUMBERS: [c_int; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
const RIP: c_int = 16;
/// `UNW_ENOINFO`.
const NO_INFO: c_int = -10;
/// `UNW_EINVAL`.
const INVALID: c_int = -8;

/// `unw_dyn_info_t` of libunwind 1.5 and 1.6, with a remote table.
#[repr(C)]
struct DynInfo {
    next: *mut c_void,
    previous: *mut c_void,
    start_ip: u64,
    end_ip: u64,
    gp: u64,
    /// 2: `UNW_INFO_FORMAT_REMOTE_TABLE`.
    format: i32,
    padding: i32,
    load_offset: u64,
    name: u64,
    segment_base: u64,
    table_len: u64,
    table: u64,
    rest: [u64; 8],
}

type FindProcInfo =
    unsafe extern "C" fn(*mut c_void, u64, *mut c_void, c_int, *mut c_void) -> c_int;
type AccessMemory = unsafe extern "C" fn(*mut c_void, u64, *mut u64, c_int, *mut c_void) -> c_int;
type AccessRegister =
    unsafe extern "C" fn(*mut c_void, c_int, *mut u64, c_int, *mut c_void) -> c_int;

/// `unw_accessors_t`, with room for what later versions add.
#[repr(C)]
struct Accessors {
    find_proc_info: FindProcInfo,
    put_unwind_info: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void),
    get_dyn_info_list_addr: unsafe extern "C" fn(*mut c_void, *mut u64, *mut c_void) -> c_int,
    access_mem: AccessMemory,
    access_reg: AccessRegister,
    access_fpreg: unsafe extern "C" fn() -> c_int,
    resume: unsafe extern "C" fn() -> c_int,
    get_proc_name: unsafe extern "C" fn() -> c_int,
    rest: [usize; 8],
}

type CreateSpace = unsafe extern "C" fn(*const Accessors, c_int) -> *mut c_void;
type InitRemote = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> c_int;
type Step = unsafe extern "C" fn(*mut c_void) -> c_int;
type GetRegister = unsafe extern "C" fn(*mut c_void, c_int, *mut u64) -> c_int;
type SearchTable =
    unsafe extern "C" fn(*mut c_void, u64, *mut DynInfo, *mut c_void, c_int, *mut c_void) -> c_int;

const CREATE_SPACE: &CStr = c"_Ux86_64_create_addr_space";
const INIT_REMOTE: &CStr = c"_Ux86_64_init_remote";
const STEP: &CStr = c"_Ux86_64_step";
const GET_REGISTER: &CStr = c"_Ux86_64_get_reg";
type FlushCache = unsafe extern "C" fn(*mut c_void, u64, u64);

const FLUSH_CACHE: &CStr = c"_Ux86_64_flush_cache";
const SEARCH_TABLE: &CStr = c"_Ux86_64_dwarf_search_unwind_table";

/// The functions of the library.
#[derive(Clone, Copy, Debug)]
pub(super) struct Libunwind {
    space: *mut c_void,
    init_remote: InitRemote,
    step: Step,
    get_reg: GetRegister,
    search: SearchTable,
    flush: FlushCache,
}

// SAFETY: the check belongs to the sampler, which is one thread.
unsafe impl Send for Libunwind {}

/// The argument of the callbacks of one step.
struct Argument<'s> {
    frame: &'s Frame,
    stack: &'s StackCopy<'s>,
    images: &'s [os::Image],
    pages: &'s Pages,
    search: SearchTable,
}

impl Argument<'_> {
    fn read(&self, address: u64) -> Option<u64> {
        let is_in_image = self.images.iter().any(|image| image.code.contains(&address));
        let page = if is_in_image { self.pages.read(address) } else { None };
        page.or_else(|| self.stack.read(address))
    }
}

impl Libunwind {
    /// Loads the library, if there is one.
    pub(super) fn load() -> Option<Self> {
        // SAFETY: the library runs no code of its own when it is loaded, and stays loaded.
        unsafe {
            let library =
                libc::dlopen(c"libunwind-x86_64.so.8".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            if library.is_null() {
                return None;
            }
            let function = |name: &CStr| {
                let found = libc::dlsym(library, name.as_ptr());
                (!found.is_null()).then_some(found)
            };
            // The types are those of the library's header.
            let create = transmute::<*mut c_void, CreateSpace>(function(CREATE_SPACE)?);
            Some(Self {
                space: create(&raw const ACCESSORS, 0),
                init_remote: transmute::<*mut c_void, InitRemote>(function(INIT_REMOTE)?),
                step: transmute::<*mut c_void, Step>(function(STEP)?),
                get_reg: transmute::<*mut c_void, GetRegister>(function(GET_REGISTER)?),
                search: transmute::<*mut c_void, SearchTable>(function(SEARCH_TABLE)?),
                flush: transmute::<*mut c_void, FlushCache>(function(FLUSH_CACHE)?),
            })
        }
    }

    /// Forgets what the library knows of images: another one may be at the address of one that was unloaded.
    pub(super) fn forget(&self) {
        // SAFETY: the space lives for ever; 0 to 0 are all addresses.
        unsafe { (self.flush)(self.space, 0, 0) };
    }

    /// Moves a native frame to its caller. `is_at_instruction`: `frame.rip` is the address of its
    /// current instruction, not of the one after a call. Returns false at the first function, `None` where the library cannot go on.
    pub(super) fn step(
        &self,
        frame: &mut Frame,
        is_at_instruction: bool,
        stack: &StackCopy<'_>,
        images: &[os::Image],
        pages: &Pages,
    ) -> Option<bool> {
        if !is_at_instruction {
            frame.rip = frame.rip.wrapping_sub(1);
        }
        let before = *frame;
        let mut argument = Argument { frame: &before, stack, images, pages, search: self.search };
        let mut cursor = [0_u64; 512];
        // SAFETY: the cursor is larger than `unw_cursor_t`, and the argument outlives the calls.
        unsafe {
            let cursor = cursor.as_mut_ptr().cast();
            if (self.init_remote)(cursor, self.space, (&raw mut argument).cast()) < 0 {
                return None;
            }
            match (self.step)(cursor) {
                error if error < 0 => return None,
                0 => return Some(false),
                _ => {}
            }
            for (number, register) in NUMBERS.into_iter().zip(&mut frame.registers) {
                let mut value = 0;
                if (self.get_reg)(cursor, number, &raw mut value) == 0 {
                    *register = value;
                }
            }
            ((self.get_reg)(cursor, RIP, &raw mut frame.rip) == 0).then_some(true)
        }
    }
}

static ACCESSORS: Accessors = Accessors {
    find_proc_info,
    put_unwind_info,
    get_dyn_info_list_addr,
    access_mem,
    access_reg,
    access_fpreg: refuse,
    resume: refuse,
    get_proc_name: refuse,
    rest: [0; 8],
};

unsafe extern "C" fn refuse() -> c_int {
    INVALID
}

unsafe extern "C" fn put_unwind_info(_: *mut c_void, _: *mut c_void, _: *mut c_void) {}

unsafe extern "C" fn get_dyn_info_list_addr(_: *mut c_void, _: *mut u64, _: *mut c_void) -> c_int {
    NO_INFO
}

/// Finds the unwind data of an address: in the table of `.eh_frame_hdr` of its image.
unsafe extern "C" fn find_proc_info(
    space: *mut c_void,
    ip: u64,
    info: *mut c_void,
    need: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: `step` has passed this.
    let this = unsafe { &*argument.cast::<Argument<'_>>() };
    let Some(image) = this.images.iter().find(|image| image.code.contains(&ip)) else {
        return NO_INFO;
    };
    // Version 1, pointer to .eh_frame, number of entries as u32, a table of pairs of i32 relative to
    // the header: what linkers write.
    let Some(head) = this.read(image.unwind_table) else { return NO_INFO };
    let [version, _, count, table, ..] = head.to_le_bytes();
    if (version, count, table) != (1, 0x03, 0x3B) {
        return NO_INFO;
    }
    let Some(count) = this.read(image.unwind_table + 8) else { return NO_INFO };
    let mut found = DynInfo {
        next: null_mut(),
        previous: null_mut(),
        start_ip: image.code.start,
        end_ip: image.code.end,
        gp: 0,
        format: 2,
        padding: 0,
        load_offset: 0,
        name: 0,
        segment_base: image.unwind_table,
        table_len: count & 0xFFFF_FFFF,
        table: image.unwind_table + 12,
        rest: [0; 8],
    };
    // SAFETY: the arguments of the library's own callback are passed on.
    unsafe { (this.search)(space, ip, &raw mut found, info, need, argument) }
}

unsafe extern "C" fn access_mem(
    _: *mut c_void,
    address: u64,
    value: *mut u64,
    write: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: `step` has passed this.
    let this = unsafe { &*argument.cast::<Argument<'_>>() };
    match this.read(address) {
        Some(word) if write == 0 => {
            // SAFETY: the library's pointer.
            unsafe { value.write(word) };
            0
        }
        _ => INVALID,
    }
}

unsafe extern "C" fn access_reg(
    _: *mut c_void,
    number: c_int,
    value: *mut u64,
    write: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: `step` has passed this.
    let this = unsafe { &*argument.cast::<Argument<'_>>() };
    let word = if number == RIP {
        Some(this.frame.rip)
    } else {
        let at = NUMBERS.iter().position(|other| *other == number);
        at.and_then(|at| this.frame.registers.get(at).copied())
    };
    match word {
        Some(word) if write == 0 => {
            // SAFETY: the library's pointer.
            unsafe { value.write(word) };
            0
        }
        _ => INVALID,
    }
}
