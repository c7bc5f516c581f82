//! A running process, stopped for as long as it is read, as a core dump.
//!
//! Its threads are stopped by ptrace(2), which lets them go on when they are released, and when the tool ends in any way. What is read is
//! laid out as the kernel lays out a core: notes of threads, of mapped files and of the auxiliary vector, and the memory that the process
//! may have changed. Pages of files that it cannot have changed come from the files.

use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;

/// Bytes of one mapping that are read at most. A larger one is a heap's, and is left out.
const LARGEST: u64 = 256 << 20;
/// Bytes of a page.
const PAGE: usize = 4096;

/// Threads that are stopped, and go on when this is dropped.
struct Stopped(Vec<Pid>);

impl Drop for Stopped {
    fn drop(&mut self) {
        for thread in &self.0 {
            // A thread that has ended needs no release.
            let _ = ptrace::detach(*thread, None);
        }
    }
}

impl Stopped {
    /// Stops all threads of a process, those too that begin meanwhile.
    fn all(process: u32) -> io::Result<Self> {
        let mut stopped = Self(Vec::new());
        loop {
            let before = stopped.0.len();
            for entry in fs::read_dir(format!("/proc/{process}/task"))? {
                let name = entry?.file_name();
                let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
                let thread = Pid::from_raw(id);
                if !stopped.0.contains(&thread) && stop(thread)? {
                    stopped.0.push(thread);
                }
            }
            if stopped.0.len() == before {
                return Ok(stopped);
            }
        }
    }
}

/// Stops a thread. Returns false if it has ended meanwhile.
fn stop(thread: Pid) -> io::Result<bool> {
    match ptrace::seize(thread, ptrace::Options::empty()) {
        Ok(()) => {}
        Err(nix::Error::ESRCH) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    ptrace::interrupt(thread)?;
    Ok(waitpid(thread, Some(WaitPidFlag::__WALL)).is_ok())
}

/// A mapping of /proc/N/maps.
struct Mapping {
    start: u64,
    end: u64,
    is_readable: bool,
    is_writable: bool,
    is_executable: bool,
    offset: u64,
    path: String,
}

impl Mapping {
    /// Reads `7f00-7f10 rw-p 00001000 08:01 77   /path`.
    fn read(line: &str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let access = words.next()?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let offset = number(words.next()?)?;
        let path = words.nth(2).unwrap_or_default().trim_start().to_owned();
        Some(Self {
            start: number(start)?,
            end: number(end)?,
            is_readable: access.starts_with('r'),
            is_writable: access.contains('w'),
            is_executable: access.contains('x'),
            offset,
            path,
        })
    }

    /// Returns the path of the file that is mapped, if it is one: memory of the runtime's code has the path of none.
    fn file(&self) -> Option<&str> {
        let path = self.path.as_str();
        (path.starts_with('/') && !path.starts_with("/memfd:")).then_some(path)
    }

    /// Returns true if the memory may differ from the file's bytes, and is not too large. The loader has changed what is read-only data
    /// now; code it does not change.
    fn may_differ_from_file(&self) -> bool {
        let is_code = self.is_executable && !self.is_writable && self.file().is_some();
        self.is_readable && !is_code && self.end - self.start <= LARGEST
    }
}

/// Reads a process as a core dump.
///
/// # Errors
/// The system's error if there is no such process, it may not be traced, or it has ended.
pub(crate) fn read(process: u32) -> io::Result<Vec<u8>> {
    let stopped = Stopped::all(process)?;
    if stopped.0.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut notes = Vec::new();
    for thread in &stopped.0 {
        add_thread(&mut notes, *thread)?;
    }
    let maps = fs::read_to_string(format!("/proc/{process}/maps"))?;
    let maps: Vec<_> = maps.lines().filter_map(Mapping::read).collect();
    add_note(&mut notes, 6, &fs::read(format!("/proc/{process}/auxv"))?);
    add_note(&mut notes, 0x4649_4C45, &files(&maps));
    let memory = File::open(format!("/proc/{process}/mem"))?;
    let mut parts = Vec::new();
    for map in maps.iter().filter(|map| map.may_differ_from_file()) {
        add_memory(&mut parts, &memory, map);
    }
    drop(stopped);
    Ok(core(&notes, &parts))
}

/// Adds the registers of a stopped thread.
fn add_thread(notes: &mut Vec<u8>, thread: Pid) -> io::Result<()> {
    let it = ptrace::getregs(thread)?;
    // The order of `struct user_regs_struct` (arch/x86/include/asm/user_64.h).
    let registers = [
        it.r15,
        it.r14,
        it.r13,
        it.r12,
        it.rbp,
        it.rbx,
        it.r11,
        it.r10,
        it.r9,
        it.r8,
        it.rax,
        it.rcx,
        it.rdx,
        it.rsi,
        it.rdi,
        it.orig_rax,
        it.rip,
        it.cs,
        it.eflags,
        it.rsp,
        it.ss,
        it.fs_base,
        it.gs_base,
        it.ds,
        it.es,
        it.fs,
        it.gs,
    ];
    // `struct elf_prstatus` (include/linux/elfcore.h): the id at 32, the registers at 112.
    let mut status = vec![0; 112];
    if let Some(place) = status.get_mut(32..36) {
        place.copy_from_slice(&thread.as_raw().to_le_bytes());
    }
    status.extend(registers.iter().flat_map(|it| it.to_le_bytes()));
    status.extend([0; 8]);
    add_note(notes, 1, &status);
    Ok(())
}

/// Adds a note of the name CORE.
fn add_note(notes: &mut Vec<u8>, kind: u32, contents: &[u8]) {
    for word in [5, contents.len() as u32, kind] {
        notes.extend(word.to_le_bytes());
    }
    notes.extend(*b"CORE\0\0\0\0");
    notes.extend(contents);
    notes.resize(notes.len().next_multiple_of(4), 0);
}

/// Returns the contents of a note of kind NT_FILE (`fill_files_note` in fs/binfmt_elf.c of Linux).
fn files(maps: &[Mapping]) -> Vec<u8> {
    let files: Vec<_> = maps.iter().filter_map(|map| Some((map, map.file()?))).collect();
    let mut note = Vec::new();
    let mut add = |word: u64| note.extend(word.to_le_bytes());
    add(files.len() as u64);
    add(1);
    for (map, _) in &files {
        [map.start, map.end, map.offset].into_iter().for_each(&mut add);
    }
    for (_, path) in files {
        note.extend(path.as_bytes());
        note.push(0);
    }
    note
}

/// Adds the memory of a mapping, without pages that cannot be read.
fn add_memory(parts: &mut Vec<(u64, Vec<u8>)>, memory: &File, map: &Mapping) {
    let Ok(len) = usize::try_from(map.end - map.start) else { return };
    let mut bytes = vec![0; len];
    if memory.read_exact_at(&mut bytes, map.start).is_ok() {
        parts.push((map.start, bytes));
        return;
    }
    for start in (map.start..map.end).step_by(PAGE) {
        let mut page = vec![0; PAGE];
        if memory.read_exact_at(&mut page, start).is_ok() {
            parts.push((start, page));
        }
    }
}

/// Returns the bytes of a core. If it has more segments than its header can count, the header of a section has their number (`PN_XNUM` of
/// elf.h), as the kernel writes it.
pub(crate) fn core(notes: &[u8], parts: &[(u64, Vec<u8>)]) -> Vec<u8> {
    const HEADER: usize = 64;
    const SEGMENT: usize = 56;
    const SECTION: usize = 64;
    const MANY: u16 = u16::MAX;
    let count = parts.len() + 1;
    let in_header = u16::try_from(count).unwrap_or(MANY);
    let sections = u16::from(in_header == MANY);
    let size: usize = parts.iter().map(|(_, bytes)| bytes.len()).sum();
    let section_start = HEADER + SEGMENT * count;
    let start = section_start + SECTION * usize::from(sections);
    let mut core = Vec::with_capacity(start + notes.len() + size);
    // A little-endian ELF core for x86-64, with its program headers after its header.
    core.extend(*b"\x7FELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0\x3E\0\x01\0\0\0");
    let sections_at = if sections == 0 { 0 } else { section_start as u64 };
    core.extend([0, HEADER as u64, sections_at].iter().flat_map(|it| it.to_le_bytes()));
    core.extend([0; 4]);
    for word in [HEADER as u16, SEGMENT as u16, in_header, SECTION as u16, sections, 0] {
        core.extend(word.to_le_bytes());
    }
    let mut at = start as u64;
    let mut add = |kind: u32, address: u64, len: usize| {
        core.extend([kind, 4].iter().flat_map(|it| it.to_le_bytes()));
        let words = [at, address, 0, len as u64, len as u64, 1];
        core.extend(words.iter().flat_map(|it| it.to_le_bytes()));
        at += len as u64;
    };
    add(4, 0, notes.len());
    for (address, bytes) in parts {
        add(1, *address, bytes.len());
    }
    if sections != 0 {
        // `sh_info` of `Elf64_Shdr`.
        core.extend([0; 44]);
        core.extend((count as u32).to_le_bytes());
        core.extend([0; 16]);
    }
    core.extend(notes);
    for (_, bytes) in parts {
        core.extend(bytes);
    }
    core
}
