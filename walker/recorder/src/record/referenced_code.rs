//! The code that a walk meets: methods with their bodies and unwind data, images.

use super::async_methods::AsyncMethods;
use super::file::Known;
use super::hidden::Fact;
use super::managed::ManagedCode;
use super::walk::Walk;
use clr_com::RuntimeInfo;
use clr_sampler::{Code, names, os::OwnProcess};
use clr_unwind::win64::UnwindInfo;
use clr_unwind::{CodeMap, CodeRegion, Memory, RegionKind, RuntimeFunction};
use clr_walker::profiling::{CodeRange, FunctionId, ModuleSource as _, ProfilerInfo};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of machine code that an unwinder looks at, at most.
const CODE_BYTES: usize = 24;
/// Offsets in a jitted method's code header: the exception clauses, in bytes.
const CLAUSES: u64 = 8;
/// Maximum number of exception clauses of a method.
const MOST_CLAUSES: u64 = 10_000;
/// `COR_ILEXCEPTION_CLAUSE_FILTER`.
const FILTER: u64 = 1;

/// A method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Method {
    pub(super) id: FunctionId,
    pub(super) name: String,
    /// A dynamic method, an IL stub or the thunk of an async method: no walk reports it.
    pub(super) is_dynamic: bool,
}

/// An image in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Image {
    /// The file's name, without its folder.
    pub(super) name: String,
    /// Address (VA).
    pub(super) base: u64,
    /// Size in bytes, of native images.
    pub(super) size: Option<u64>,
}

/// A RUNTIME_FUNCTION.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) begin: u32,
    pub(super) end: u32,
    /// The header and the codes.
    pub(super) unwind_info: Vec<u8>,
    pub(super) funclet: Option<&'static str>,
}

/// A body of a method: one version of its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Body {
    /// Addresses of the code (VA).
    pub(super) range: Range<u64>,
    /// Address that RVAs count from (VA).
    pub(super) base: u64,
    pub(super) entries: Vec<Entry>,
    pub(super) function: Option<FunctionId>,
    /// The image, of precompiled code.
    pub(super) image: Option<u64>,
}

/// The code that a walk meets.
#[derive(Clone, Debug, Default)]
pub(super) struct ReferencedCode {
    pub(super) methods: BTreeMap<FunctionId, Method>,
    /// By start (VA).
    pub(super) bodies: BTreeMap<u64, Body>,
    /// By base (VA).
    pub(super) images: BTreeMap<u64, Image>,
    /// Machine code, by address (VA).
    pub(super) bytes: BTreeMap<u64, Vec<u8>>,
    /// The facts about that code.
    pub(super) facts: BTreeMap<u64, Fact>,
}

/// The sources of facts about a process's code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'p> {
    pub(super) code: &'p Code,
    pub(super) info: &'p RuntimeInfo,
    pub(super) async_methods: Option<&'p AsyncMethods>,
}

impl Source<'_> {
    /// Collects what a walk refers to and is not `known`. `None` if a part of it is in no form that a
    /// recording has.
    pub(super) fn collect(&self, walk: &Walk, known: &Known) -> Option<ReferencedCode> {
        let mut met = ReferencedCode::default();
        let map = self.code.code_map();
        let images = self.code.managed_images();
        let code = ManagedCode::new(&map, &images);
        for report in &walk.answer.reports {
            if let Some(function) = report.function {
                if !known.functions.contains(&function) {
                    met.methods.entry(function).or_insert_with(|| self.method(function));
                }
            } else if let Some((base, path)) = self.code.image_at(report.ip)
                && let Some((region, _)) = map.find(report.ip)
            {
                let size = Some(u64::from(region.size()));
                met.images.insert(base, Image { name: file_name(&path), base, size });
            }
        }
        let is_new = |address: &&u64| !known.facts.contains_key(address);
        for address in walk.passed.iter().map(|frame| &frame.ip).filter(is_new) {
            let (region, rva) = code.find(*address)?;
            let bytes = region.bytes_from(rva).unwrap_or_default();
            let has_body = met.bodies.values().any(|body| body.range.contains(address));
            if !has_body {
                let body = self.body(&map, region, *address)?;
                if let Some(function) = body.function {
                    met.methods.entry(function).or_insert_with(|| self.method(function));
                }
                if let Some(base) = body.image {
                    let path = self.code.managed_path(self.info, base).unwrap_or_default();
                    let image = Image { name: file_name(&path), base, size: None };
                    met.images.insert(base, image);
                }
                met.bodies.insert(body.range.start, body);
            }
            let body = met.bodies.values().find(|body| body.range.contains(address))?;
            let method = body.function.and_then(|function| met.methods.get(&function));
            met.facts.insert(*address, body.fact(method, *address));
            let room = CODE_BYTES.min((body.range.end - address) as usize);
            met.bytes.insert(*address, bytes.get(..room).unwrap_or(bytes).to_vec());
        }
        Some(met)
    }

    /// Returns the body with `address` (VA), in a region with managed code.
    fn body(&self, map: &CodeMap<'_>, region: &CodeRegion<'_>, address: u64) -> Option<Body> {
        let function = self.function_at(address);
        let base = region.base();
        let is_jitted = region.kind() == RegionKind::CodeHeap;
        let range = if is_jitted {
            region.start()..region.last() + 1
        } else {
            self.precompiled(function, address).or_else(|| {
                let (_, entry) = map.find_function(address)?;
                Some(base + u64::from(entry.begin)..base + u64::from(entry.end))
            })?
        };
        let filters = if is_jitted { filters(range.start) } else { Vec::new() };
        let in_range = |entry: &RuntimeFunction| range.contains(&(base + u64::from(entry.begin)));
        let entries = region.functions().iter().filter(in_range).map(|entry| {
            let offset = base + u64::from(entry.begin) - range.start;
            Some(Entry {
                begin: entry.begin,
                end: entry.end,
                unwind_info: unwind_info(region, entry)?,
                funclet: match offset {
                    0 => None,
                    offset if filters.contains(&offset) => Some("filter"),
                    _ => Some("handler"),
                },
            })
        });
        let entries = entries.collect::<Option<_>>()?;
        Some(Body { range, base, entries, function, image: (!is_jitted).then_some(base) })
    }

    /// Returns the function with code at `address` (VA), a dynamic one, too.
    fn function_at(&self, address: u64) -> Option<FunctionId> {
        let dynamic = self.info.get_function_from_ip3(address).map(|(function, _)| function);
        dynamic.or_else(|_| self.info.get_function_from_ip(address)).ok()
    }

    /// Returns the range of a function's precompiled code that has `address` (VA).
    fn precompiled(&self, function: Option<FunctionId>, address: u64) -> Option<Range<u64>> {
        let mut ranges = [CodeRange { start: 0, size: 0 }; 4];
        let count = self.info.get_code_info2(function?, &mut ranges).ok()?;
        let mut ranges =
            ranges.iter().take(count as usize).map(|range| range.start..range.start + range.size);
        ranges.find(|range| range.contains(&address))
    }

    fn method(&self, id: FunctionId) -> Method {
        // Fails for all other methods.
        if let Ok(name) = self.info.get_dynamic_function_name(id) {
            return Method { id, name, is_dynamic: true };
        }
        let name = names::name(self.info, id).unwrap_or_else(|| format!("function {:#x}", id.0));
        let is_thunk = |methods: &AsyncMethods| methods.is_thunk(id, &OwnProcess);
        Method { id, name, is_dynamic: self.async_methods.is_some_and(is_thunk) }
    }
}

/// The classes that dispatch exceptions in managed code, from .NET 9 on.
const DISPATCH: [&str; 3] = [
    "System.Runtime.EH",
    "System.Runtime.StackFrameIterator",
    "System.Runtime.ExceptionServices.InternalCalls",
];

impl Method {
    /// Returns true for the dispatch of exceptions in managed code.
    pub(super) fn is_dispatch(&self) -> bool {
        let in_class =
            |class: &&str| self.name.strip_prefix(*class).is_some_and(|it| it.starts_with('.'));
        DISPATCH.iter().any(in_class)
    }
}

impl Body {
    /// Returns what is known of the code at `address` (VA), of this body of `method`.
    fn fact(&self, method: Option<&Method>, address: u64) -> Fact {
        let rva = address.wrapping_sub(self.base) as u32;
        let entry = self.entries.iter().find(|entry| (entry.begin..entry.end).contains(&rva));
        let is_dispatch = method.is_some_and(Method::is_dispatch);
        Fact {
            funclet: entry.and_then(|entry| entry.funclet),
            // Code of which only the code is known is dynamic.
            is_silent: is_dispatch || method.is_none_or(|method| method.is_dynamic),
            is_dispatch,
        }
    }
}

impl ReferencedCode {
    /// Returns `file+0xOFFSET` for an address in a native image.
    pub(super) fn native(&self, address: u64) -> Option<String> {
        let (base, image) = self.images.range(..=address).next_back()?;
        let offset = address - base;
        image.size.filter(|size| offset < *size).map(|_| format!("{}+{offset:#x}", image.name))
    }
}

/// Returns the last part of a path.
fn file_name(path: &str) -> String {
    path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
}

/// Returns the UNWIND_INFO of an entry: its header and codes. `None` if it has a parent, which no
/// code on Unix has.
fn unwind_info(region: &CodeRegion<'_>, entry: RuntimeFunction) -> Option<Vec<u8>> {
    let rva = entry.unwind_info & !1;
    let info = UnwindInfo::read(region, rva).ok().filter(|info| !info.is_chained())?;
    let len = 4 + 2 * info.slot_count().next_multiple_of(2);
    region.bytes_from(rva)?.get(..len).map(<[u8]>::to_vec)
}

/// Returns the offsets of a jitted method's filters in its code. `start`: of its body (VA).
fn filters(start: u64) -> Vec<u64> {
    let word = |address: u64| OwnProcess.read_u64(address).ok();
    let read = || {
        let clauses = word(word(start - 8)? + CLAUSES).filter(|clauses| *clauses != 0)?;
        let count = word(clauses - 8).filter(|count| *count <= MOST_CLAUSES)?;
        // Flags, try start, try end, handler start, handler end, padding, and a union of 8 bytes
        // with the filter's offset.
        let clause = |index: u64| {
            let at = clauses + 8 + 32 * index;
            let flags = word(at)? & 0xFFFF_FFFF;
            Some((flags & FILTER != 0).then_some(word(at + 24)? & 0xFFFF_FFFF))
        };
        (0..count).map(clause).collect::<Option<Vec<_>>>()
    };
    read().unwrap_or_default().into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_classes_dispatch_exceptions() {
        let is_dispatch = |name: &str| {
            let name = name.to_owned();
            Method { id: FunctionId(1), name, is_dynamic: false }.is_dispatch()
        };
        assert!(is_dispatch("System.Runtime.EH.RhThrowEx"));
        assert!(is_dispatch("System.Runtime.StackFrameIterator.Next"));
        assert!(is_dispatch("System.Runtime.ExceptionServices.InternalCalls.SfiNext"));
        assert!(!is_dispatch("System.Runtime.EHelper.RhThrowEx"));
        assert!(!is_dispatch("System.Runtime.ExceptionServices.ExceptionDispatchInfo.Throw"));
    }
}
