//! Stacks as debuggers print them.

mod crash_report;
mod debuggers;
mod perf;
mod place;
mod sos;
mod thread;
mod windbg;
mod words;

pub use thread::PastedThread;

use crate::error::ImportError;
use crate::version::{generation_of, generation_of_path};
use clr_runtime::generation::Generation;

/// The program that has printed stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasteFormat {
    /// SOS: `clrstack`, with `clrthreads` if it is there, in dotnet-dump, lldb or WinDbg.
    ClrStack,
    /// `pstacks` of dotnet-dump.
    ParallelStacks,
    /// `dotnet-stack report`.
    DotnetStack,
    /// The JSON of createdump's `--crashreport`.
    CrashReport,
    /// Backtraces of gdb.
    Gdb,
    /// Backtraces of lldb.
    Lldb,
    /// `perf script`: each sample is a thread.
    Perf,
    /// `k` of WinDbg.
    WinDbg,
}

/// Threads that a debugger printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paste {
    /// What printed them.
    pub format: PasteFormat,
    /// In the order of the text.
    pub threads: Vec<PastedThread>,
    /// The runtime's version, if the text has it.
    pub version: Option<Generation>,
}

impl Paste {
    /// Reads a text.
    ///
    /// # Errors
    /// [`ImportError::Format`] if it is of no known debugger, [`ImportError::Line`] if the report of a crash is damaged.
    pub fn read(text: &str) -> Result<Self, ImportError> {
        let format = PasteFormat::of(text).ok_or(ImportError::Format)?;
        let (threads, version) = match format {
            PasteFormat::CrashReport => crash_report::read(text)?,
            PasteFormat::ClrStack => (sos::clr_stack(text), None),
            PasteFormat::ParallelStacks => (sos::parallel_stacks(text), None),
            PasteFormat::DotnetStack => (sos::dotnet_stack(text), None),
            PasteFormat::Gdb => (debuggers::gdb(text), None),
            PasteFormat::Lldb => (debuggers::lldb(text), None),
            PasteFormat::Perf => (perf::read(text), None),
            PasteFormat::WinDbg => (windbg::read(text), None),
        };
        let path = || {
            let paths =
                text.split_whitespace().filter(|word| word.contains("/Microsoft.NETCore.App/"));
            paths.into_iter().find_map(generation_of_path)
        };
        let version = version.as_deref().and_then(generation_of).or_else(path);
        Ok(Self { format, threads, version })
    }
}

impl PasteFormat {
    /// Returns the format of a text by its marks.
    fn of(text: &str) -> Option<Self> {
        let has = |mark: &str| text.contains(mark);
        let is_line = |is: &dyn Fn(&str) -> bool| text.lines().any(is);
        if text.trim_start().starts_with('{') {
            return has("\"stack_frames\"").then_some(Self::CrashReport);
        }
        // A text with both has the stacks of clrstack, with their addresses.
        if has("OS Thread Id: 0x") && has("Child") {
            return Some(Self::ClrStack);
        }
        if has(" ~~~~ ") {
            return Some(Self::ParallelStacks);
        }
        if is_line(&|line| line.starts_with("Thread (0x")) {
            return Some(Self::DotnetStack);
        }
        if is_line(&|line| {
            line.trim_start().starts_with("frame #") || line.contains(" frame #0: 0x")
        }) {
            return Some(Self::Lldb);
        }
        if is_line(&|line| line.starts_with("#0 ")) {
            return Some(Self::Gdb);
        }
        if has("Child-SP") {
            return Some(Self::WinDbg);
        }
        if is_line(&|line| perf::frame(line).is_some()) {
            return Some(Self::Perf);
        }
        None
    }

    /// Returns the name of what prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClrStack => "clrstack",
            Self::ParallelStacks => "pstacks",
            Self::DotnetStack => "dotnet-stack report",
            Self::CrashReport => "createdump --crashreport",
            Self::Gdb => "gdb",
            Self::Lldb => "lldb",
            Self::Perf => "perf script",
            Self::WinDbg => "WinDbg",
        }
    }
}
