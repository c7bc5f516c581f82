//! Recorded code as a runtime's code manager.

use super::{CodeLine, Hex, Recording};
use clr_runtime::code_manager::{
    Block, CodeVersion, FuncletRange, Method, RangeSection, SectionError,
};
use clr_runtime::{CodeManager, Funclet, MethodKind};
use clr_unwind::{
    CodeMapError, CodeRegion, Convention, FunctionTable, ImageError, RegionKind,
    SIZE_OF_RUNTIME_FUNCTION, Section, Sections, Unreadable,
};
use clr_walker::profiling::FunctionId;
use thiserror::Error;

/// The reason why a recording cannot be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordingLoadError {
    /// Two pieces of code share an address, or one is empty.
    #[error(transparent)]
    Map(#[from] CodeMapError),
    /// A range of code is too large.
    #[error(transparent)]
    Sections(#[from] ImageError),
    /// A range of code is not accepted by the code manager.
    #[error(transparent)]
    Section(#[from] SectionError),
    /// Memory cannot be mapped.
    #[error("the memory at {address:#x} cannot be mapped")]
    Memory {
        /// Address (VA).
        address: u64,
    },
}

impl From<Unreadable> for RecordingLoadError {
    fn from(unreadable: Unreadable) -> Self {
        Self::Memory { address: unreadable.address }
    }
}

/// RVA of the unwind data, after any code.
const UNWIND_DATA: u32 = 0x8000_0000;

/// Placeholder for a handler's RVA and data, which recordings omit.
const HANDLER: [u8; 8] = [0; 8];

/// Code with its tables as bytes, one for each range of addresses.
#[derive(Clone, Debug)]
pub struct RecordedCode {
    convention: Convention,
    methods: Vec<Method>,
    ranges: Vec<RangeBytes>,
}

#[derive(Clone, Debug)]
struct RangeBytes {
    base: u64,
    size: u32,
    /// Index of the method in the list.
    method: usize,
    funclets: Vec<FuncletRange>,
    /// The range is part of a ready-to-run image.
    precompiled: bool,
    /// Runs of known machine code, by RVA.
    code: Vec<(u32, Vec<u8>)>,
    unwind_data: Vec<u8>,
    functions: Vec<u8>,
}

impl RecordedCode {
    /// Creates the code of a recording.
    pub fn new(recording: &Recording) -> Self {
        let mut known = recording.bytes.clone();
        known.sort();
        let mut methods: Vec<_> = recording.functions.iter().map(method).collect();
        // Code of an unknown function belongs to a method without metadata.
        methods.push(Method { kind: MethodKind::Dynamic, ..Method::default() });
        let unknown = methods.len() - 1;
        let mut ranges = Vec::new();
        for line in &recording.codes {
            let function = line
                .function
                .and_then(|id| recording.functions.iter().position(|function| function.id == id));
            for &(Hex(begin), size) in &line.ranges {
                ranges.push(RangeBytes::new(
                    line,
                    function.unwrap_or(unknown),
                    begin,
                    size,
                    &known,
                ));
            }
        }
        let is_unix = recording.generation.is_unix();
        let convention = if is_unix { Convention::SystemV } else { Convention::WindowsX64 };
        Self { convention, methods, ranges }
    }

    /// Creates a code manager with the managed code and its unwind data.
    ///
    /// # Errors
    /// Returns [`RecordingLoadError`] if the pieces of code contradict each other.
    pub fn manager(&self) -> Result<CodeManager<'_>, RecordingLoadError> {
        let mut manager = CodeManager::new();
        let methods: Vec<_> =
            self.methods.iter().map(|method| manager.add_method(method.clone())).collect();
        for range in &self.ranges {
            let Some(method) = methods.get(range.method) else { continue };
            let code = manager.add_code(CodeVersion {
                method: *method,
                start: range.base,
                size: range.size.into(),
                funclets: range.funclets.clone(),
                ..CodeVersion::default()
            });
            let (low, high) = (range.base, range.base.saturating_add(range.size.into()));
            let section = if range.precompiled {
                RangeSection::ready_to_run(low, high, &[(low, code)])?
            } else {
                RangeSection::code_heap(low, high, &[(low, Block::Code(code))])?
            };
            // Ready-to-run code of Unix has operations that Windows lacks.
            let region = range.region()?;
            let region =
                if range.precompiled { region.with_convention(self.convention) } else { region };
            manager.add_section(section, region)?;
        }
        Ok(manager)
    }
}

fn method(function: &super::FunctionLine) -> Method {
    let kind = match function {
        function if function.dynamic && function.name.contains("IL_STUB") => MethodKind::IlStub,
        function if function.dynamic => MethodKind::Dynamic,
        function if function.exception_handling => MethodKind::ExceptionHandling,
        _ => MethodKind::Ordinary,
    };
    let id = FunctionId(function.function_id.0);
    Method { id, name: function.name.clone(), kind, ..Method::default() }
}

fn funclets(line: &CodeLine) -> Vec<FuncletRange> {
    let at = |rva: u32| line.unwind_base.0.wrapping_add(u64::from(rva));
    let funclets = line.entries.iter().filter_map(|entry| {
        let funclet = match entry.funclet.as_deref()? {
            "filter" => Funclet::Filter,
            _ => Funclet::Handler,
        };
        Some(FuncletRange { start: at(entry.begin), end: at(entry.end), funclet })
    });
    funclets.collect()
}

impl RangeBytes {
    fn new(line: &CodeLine, method: usize, base: u64, size: u64, known: &[(u64, Vec<u8>)]) -> Self {
        let size = u32::try_from(size).unwrap_or(u32::MAX).min(UNWIND_DATA);
        let end = base.saturating_add(u64::from(size));
        // RVAs in the recording are relative to another base.
        let rva = |recorded: u32| {
            let address = line.unwind_base.0.wrapping_add(u64::from(recorded));
            u32::try_from(address.checked_sub(base)?).ok().filter(|rva| *rva <= size)
        };
        let mut entries: Vec<_> = line.entries.iter().collect();
        entries.sort_by_key(|entry| entry.begin);
        let (mut unwind_data, mut functions) = (Vec::new(), Vec::new());
        for entry in entries {
            let (Some(begin), Some(end)) = (rva(entry.begin), rva(entry.end)) else { continue };
            functions.extend(entry_bytes(begin, end, unwind_data.len()));
            unwind_data.extend_from_slice(&entry.unwind_info.0);
            for parent in &entry.chain {
                // A parent may be anywhere; only its distance matters.
                let wrapped = |recorded: u32| {
                    line.unwind_base.0.wrapping_add(u64::from(recorded)).wrapping_sub(base) as u32
                };
                unwind_data.resize(unwind_data.len().next_multiple_of(4), 0);
                let at = unwind_data.len() + SIZE_OF_RUNTIME_FUNCTION;
                unwind_data.extend(entry_bytes(wrapped(parent.begin), wrapped(parent.end), at));
                unwind_data.extend_from_slice(&parent.unwind_info.0);
            }
            unwind_data.extend_from_slice(&HANDLER);
            unwind_data.resize(unwind_data.len().next_multiple_of(4), 0);
        }
        let mut code: Vec<(u32, Vec<u8>)> = Vec::new();
        let first = known.partition_point(|(at, _)| *at < base);
        for (at, bytes) in known[first..].iter().take_while(|(at, _)| *at < end) {
            let at = (at - base) as u32;
            match code.last_mut() {
                // Runs overlap if a method was walked at two nearby places.
                Some((start, run)) if at <= *start + run.len() as u32 => {
                    let there = (at - *start) as usize;
                    run.extend_from_slice(bytes.get(run.len() - there..).unwrap_or_default());
                }
                _ => code.push((at, bytes.clone())),
            }
        }
        Self {
            base,
            size,
            method,
            funclets: funclets(line),
            precompiled: line.kind == "r2r",
            code,
            unwind_data,
            functions,
        }
    }

    fn region(&self) -> Result<CodeRegion<'_>, RecordingLoadError> {
        let code =
            self.code.iter().map(|(rva, bytes)| Section { rva: *rva, bytes, executable: true });
        let unwind_data = Section { rva: UNWIND_DATA, bytes: &self.unwind_data, executable: false };
        let sections = Sections::new(code.chain([unwind_data]).collect())?;
        let functions = FunctionTable::new(&self.functions);
        let kind = if self.precompiled { RegionKind::Image } else { RegionKind::CodeHeap };
        Ok(CodeRegion::from_sections(self.base, self.size, kind, sections, functions)?)
    }
}

/// Returns the bytes of a RUNTIME_FUNCTION whose UNWIND_INFO is `at` bytes into the unwind data.
fn entry_bytes(begin: u32, end: u32, at: usize) -> impl Iterator<Item = u8> {
    [begin, end, UNWIND_DATA + at as u32].into_iter().flat_map(u32::to_le_bytes)
}
