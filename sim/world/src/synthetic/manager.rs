//! The code of a synthetic thread as the runtime has it: managed code with its tables, and native
//! code.

use super::code::{Function, Library, Unit};
use super::{CodeLocation, SyntheticError, SyntheticProcess};
use clr_runtime::code_manager::{
    Block, CodeVersion, FuncletRange, Method, MethodIndex, RangeSection,
};
use clr_runtime::{CodeManager, NativeCode, NativeFunction};
use clr_unwind::{CodeMap, CodeRegion, ElfImage, FunctionTable, RegionKind, Section, Sections};
use std::collections::BTreeMap;

impl SyntheticProcess {
    fn region(unit: &Unit, kind: RegionKind) -> Option<CodeRegion<'_>> {
        let code = Section { rva: 0, bytes: &unit.bytes, executable: true };
        let rva = Unit::UNWIND_DATA;
        let data = Section { rva, bytes: &unit.unwind_data, executable: false };
        let sections = Sections::new(vec![code, data]).ok()?;
        let size = rva + unit.unwind_data.len() as u32;
        let functions = FunctionTable::new(&unit.functions);
        CodeRegion::from_sections(unit.base, size, kind, sections, functions).ok()
    }

    pub(super) fn code(&self) -> Result<CodeManager<'_>, SyntheticError> {
        let mut manager = CodeManager::new();
        let mut indices = BTreeMap::new();
        let [heap, image, _] = &self.layout.units;
        let mut blocks = [Vec::new(), Vec::new()];
        let mut stubs = Vec::new();
        for function in &self.layout.functions {
            let blocks = match function.place {
                CodeLocation::Heap => &mut blocks[0],
                CodeLocation::ReadyToRun => &mut blocks[1],
                CodeLocation::Native => continue,
            };
            if let Some(kind) = function.stub {
                stubs.push((function.start, Block::Stub(kind)));
                continue;
            }
            let name = function.method_name();
            let method = *indices.entry(name).or_insert_with(|| {
                let id = self.function(name).unwrap_or_default();
                let kind = function.kind;
                manager.add_method(Method { id, name: name.to_owned(), kind, ..Method::default() })
            });
            let code = manager.add_code(Self::code_of(method, function));
            blocks.push((function.start, code));
        }
        let [jitted, precompiled] = blocks;
        if let Some(region) = Self::region(heap, RegionKind::CodeHeap)
            && !heap.bytes.is_empty()
        {
            let jitted = jitted.into_iter().map(|(start, code)| (start, Block::Code(code)));
            let blocks: Vec<_> = jitted.chain(stubs).collect();
            let high = heap.base + heap.bytes.len() as u64;
            let section = RangeSection::code_heap(heap.base, high, &blocks);
            let section = section.map_err(|_| SyntheticError::Size)?;
            manager.add_section(section, region).map_err(|_| SyntheticError::Size)?;
        }
        if let Some(region) = Self::region(image, RegionKind::Image)
            && !precompiled.is_empty()
        {
            let high = image.base + image.bytes.len() as u64;
            let section = RangeSection::ready_to_run(image.base, high, &precompiled);
            let section = section.map_err(|_| SyntheticError::Size)?;
            manager.add_section(section, region).map_err(|_| SyntheticError::Size)?;
        }
        Ok(manager)
    }

    /// Returns the code of a function. A funclet is placed apart from its method's code, like
    /// another version of it.
    fn code_of(method: MethodIndex, function: &Function) -> CodeVersion {
        let end = function.start + u64::from(function.size);
        let funclet = function.funclet;
        let funclets = funclet.map(|funclet| FuncletRange { start: function.start, end, funclet });
        CodeVersion {
            method,
            start: function.start,
            size: function.size.into(),
            funclets: funclets.into_iter().collect(),
            gs_cookie: function.gs_cookie,
            ..CodeVersion::default()
        }
    }

    pub(super) fn native(&self) -> NativeCode<'_> {
        let [_, _, module] = &self.layout.units;
        let mut map = CodeMap::new();
        let region = match &self.layout.library {
            Some(Library { base, bytes }) => {
                ElfImage::parse(bytes).ok().and_then(|image| CodeRegion::elf(*base, &image).ok())
            }
            None => Self::region(module, RegionKind::Image),
        };
        if let Some(region) = region
            && !module.bytes.is_empty()
        {
            // It is the only region, so it overlaps none.
            let _ = map.insert(region);
        }
        let mut native = NativeCode::new(map);
        for function in &self.layout.functions {
            if function.place == CodeLocation::Native {
                let (module, name) = function.name.split_once('!').unwrap_or(("", &function.name));
                native.add_function(NativeFunction {
                    start: function.start,
                    end: function.start + u64::from(function.size),
                    name: name.to_owned(),
                    module: module.to_owned(),
                });
            }
        }
        native
    }
}
