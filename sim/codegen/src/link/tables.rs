//! The parts of a unit's bytes: code, cells, unwind data and function table.

use super::super::lower::{Part, PartKind};
use super::super::nibble_map::NibbleMap;
use super::super::pe::{PeFile, PeSection, SectionKind};
use super::super::program::Program;
use super::super::shape::UnwindData;
use super::super::unwind_info::{Epilogs, Operation, Trailer, UnwindCode, UnwindInfo};
use super::super::unwind_info_v3::{Epilogue, UnwindInfoV3, WindingCode};
use super::place::{CELLS_RVA, Encoded, PAGE};
use super::{Format, LinkError, MethodHeader, Unit};
use clr_unwind::RuntimeFunction;

impl Encoded {
    /// Returns the unit with its bytes.
    pub(super) fn finish(&self, program: &Program, cells: &[u8]) -> Result<Unit, LinkError> {
        let base = self.kind.base();
        let name = self.kind.image_name(program.convention);
        if let (Some(name), Format::Elf) = (name, self.format) {
            return self.finish_elf(program, name, cells);
        }
        let code_rva = (self.start - base) as u32;
        let code_end = code_rva + self.code.len() as u32;
        let is_image = name.is_some();
        let xdata_rva = if is_image {
            code_end.next_multiple_of(PAGE as u32)
        } else {
            code_end.next_multiple_of(4)
        };
        let (xdata, functions) = self.unwind_data(program, xdata_rva)?;
        let table: Vec<u8> = functions
            .iter()
            .flat_map(|function| [function.begin, function.end, function.unwind_info])
            .flat_map(u32::to_le_bytes)
            .collect();
        let unwind_data = (xdata_rva, xdata.len() as u32);
        let stack_cell = self.cells.stack();
        let cells = (self.cells.base, cells.to_vec());
        let Some(name) = name else {
            let mut bytes = vec![0xCC; code_rva as usize];
            bytes.extend_from_slice(&self.code);
            bytes.resize(xdata_rva as usize, 0);
            bytes.extend(xdata);
            let nibble_map = self.nibble_map(&mut bytes)?;
            let runtime_functions = table;
            return Ok(Unit {
                kind: self.kind,
                format: self.format,
                convention: program.convention,
                base,
                bytes,
                runtime_functions,
                unwind_data,
                cells,
                nibble_map,
                stack_cell,
            });
        };
        let pdata_rva = (xdata_rva + xdata.len() as u32).next_multiple_of(PAGE as u32);
        let section = |name, rva, bytes, kind| PeSection { name, rva, bytes, kind };
        let mut sections = vec![
            section(".data", CELLS_RVA as u32, &cells.1[..], SectionKind::ReadWrite),
            section(".text", code_rva, &self.code, SectionKind::Code),
        ];
        if !xdata.is_empty() {
            sections.push(section(".xdata", xdata_rva, &xdata, SectionKind::ReadOnly));
            sections.push(section(".pdata", pdata_rva, &table, SectionKind::ReadOnly));
        }
        let exports: Vec<_> = self
            .lowered
            .entries
            .iter()
            .map(|&(id, index)| (program.functions[id.index()].name.as_str(), self.rva(index)))
            .collect();
        let file = PeFile {
            name,
            convention: program.convention,
            base,
            sections: &sections,
            exception_directory: (pdata_rva, table.len() as u32),
            exports: &exports,
        };
        let bytes = file.write().map_err(|_| LinkError::Image { kind: self.kind })?;
        Ok(Unit {
            kind: self.kind,
            format: self.format,
            convention: program.convention,
            base,
            bytes,
            runtime_functions: Vec::new(),
            unwind_data,
            cells,
            nibble_map: NibbleMap::new(),
            stack_cell,
        })
    }

    /// Writes the methods' headers into a heap, and records the methods' starts.
    fn nibble_map(&self, heap: &mut [u8]) -> Result<NibbleMap, LinkError> {
        let mut map = NibbleMap::new();
        for &(function, index) in &self.lowered.entries {
            let start = self.rva(index);
            map.set(start).map_err(|_| LinkError::Encoding { kind: self.kind })?;
            let before = heap.get_mut(..start as usize);
            if let Some(header) = before.and_then(<[u8]>::last_chunk_mut) {
                *header = MethodHeader { function }.to_bytes();
            }
        }
        Ok(map)
    }

    /// Returns the bytes of the UNWIND_INFOs from `rva` on, and the RUNTIME_FUNCTION entries,
    /// ascending.
    fn unwind_data(
        &self,
        program: &Program,
        rva: u32,
    ) -> Result<(Vec<u8>, Vec<RuntimeFunction>), LinkError> {
        let mut xdata = Vec::new();
        let mut functions = Vec::new();
        // By part: a chained part comes after its parent.
        let mut entries = Vec::new();
        for part in &self.lowered.parts {
            let shape = &program.functions[part.function.index()].shape;
            let mut entry = RuntimeFunction {
                begin: self.rva(part.begin),
                end: self.end_rva(part.end),
                unwind_info: 0,
            };
            if shape.unwind != UnwindData::None {
                let parent = match part.kind {
                    PartKind::Chained(parent) => entries.get(parent).copied(),
                    PartKind::Root | PartKind::Separate => None,
                };
                entry.unwind_info = rva + xdata.len() as u32;
                if shape.unwind == UnwindData::Version3 {
                    let too_much = LinkError::TooMuchToDescribe { function: part.function };
                    let info = self.unwind_info_v3(program, part, parent)?;
                    xdata.extend(info.encode().ok_or(too_much)?);
                } else {
                    let info = self.unwind_info(program, part, parent)?;
                    let too_many = LinkError::TooManyCodes { function: part.function };
                    xdata.extend(info.encode().ok_or(too_many)?);
                }
                functions.push(entry);
            }
            entries.push(entry);
        }
        functions.sort_by_key(|function| function.begin);
        Ok((xdata, functions))
    }

    fn unwind_info(
        &self,
        program: &Program,
        part: &Part,
        parent: Option<RuntimeFunction>,
    ) -> Result<UnwindInfo, LinkError> {
        let function = part.function;
        let shape = &program.functions[function.index()].shape;
        let begin = self.rva(part.begin);
        let separate = part.kind == PartKind::Separate;
        let offset = |index: u32| {
            let offset = if separate { 0 } else { self.end_rva(index).saturating_sub(begin) };
            u8::try_from(offset).map_err(|_| LinkError::PrologueTooLong { function })
        };
        let codes = part
            .described
            .iter()
            .map(|described| {
                let offset =
                    if described.before == part.begin { 0 } else { offset(described.before)? };
                Ok(UnwindCode { offset, operation: described.operation })
            })
            .collect::<Result<Vec<_>, LinkError>>()?;
        let prologue_end = part.prologue_end;
        let prologue_size = if prologue_end == part.begin { 0 } else { offset(prologue_end)? };
        let trailer = self.trailer(program, part, parent);
        let version2 =
            matches!(shape.unwind, UnwindData::Version2 | UnwindData::Version2WithoutEpilogs);
        let epilogs = match shape.unwind {
            UnwindData::Version2 => self.epilogs(part)?,
            _ => None,
        };
        Ok(UnwindInfo {
            version: if version2 { 2 } else { 1 },
            prologue_size,
            frame: part.frame,
            epilogs,
            codes,
            trailer,
        })
    }

    fn trailer(&self, program: &Program, part: &Part, parent: Option<RuntimeFunction>) -> Trailer {
        let handler = program.functions[part.function.index()].shape.handler;
        match parent {
            Some(parent) => Trailer::Chained([parent.begin, parent.end, parent.unwind_info]),
            None if handler && part.kind != PartKind::Separate => {
                Trailer::Handler(self.rva(self.lowered.personality))
            }
            None => Trailer::Nothing,
        }
    }

    fn unwind_info_v3(
        &self,
        program: &Program,
        part: &Part,
        parent: Option<RuntimeFunction>,
    ) -> Result<UnwindInfoV3, LinkError> {
        let function = part.function;
        let begin = self.rva(part.begin);
        let separate = part.kind == PartKind::Separate;
        let too_long = |_| LinkError::PrologueTooLong { function };
        let mut described: Vec<(u16, Operation)> = Vec::new();
        // The saves of a chunk count from the frame register, which is set in its parent.
        if parent.is_some() && part.frame.is_some() && !part.described.is_empty() {
            described.push((0, Operation::SetFrame));
        }
        for operation in &part.described {
            let offset = match operation.before.checked_sub(1) {
                Some(own) if !separate && own >= part.begin => self.rva(own) - begin,
                _ => 0,
            };
            described.push((u16::try_from(offset).map_err(too_long)?, operation.operation));
        }
        // The bytes that are on the stack where offsets of saves count from.
        let (mut depth, mut base) = (0, None);
        for (_, operation) in &described {
            match operation {
                Operation::SetFrame => base = Some(depth),
                operation => depth += pushed(*operation),
            }
        }
        let base = base.unwrap_or(depth);
        let mut depth = 0;
        let mut codes = Vec::new();
        for (ip_offset, operation) in described {
            depth += pushed(operation);
            let from_rsp = |at: u32| at.wrapping_add(depth).wrapping_sub(base);
            let operation = match operation {
                Operation::Save(register, at) => Operation::Save(register, from_rsp(at)),
                Operation::SaveXmm(n, at) => Operation::SaveXmm(n, from_rsp(at)),
                other => other,
            };
            codes.push(WindingCode { ip_offset, operation });
        }
        let size = if separate { 0 } else { self.end_rva(part.prologue_end).saturating_sub(begin) };
        let size = if part.prologue_end == part.begin { 0 } else { size };
        let mut epilogues = Vec::new();
        for epilogue in part.undone.iter().filter(|epilogue| !epilogue.operations.is_empty()) {
            let start = self.rva(epilogue.begin);
            let offset = |index| u16::try_from(self.rva(index) - start).map_err(too_long);
            let codes = epilogue.operations.iter().map(|(index, operation)| {
                Ok(WindingCode { ip_offset: offset(*index)?, operation: *operation })
            });
            let codes = codes.collect::<Result<_, LinkError>>()?;
            epilogues.push(Epilogue { start, last: offset(epilogue.end - 1)?, codes });
        }
        Ok(UnwindInfoV3 {
            begin,
            end: self.end_rva(part.end),
            prologue_size: u16::try_from(size).map_err(too_long)?,
            frame: part.frame,
            codes,
            epilogues,
            trailer: self.trailer(program, part, parent),
        })
    }

    fn epilogs(&self, part: &Part) -> Result<Option<Epilogs>, LinkError> {
        let too_far = LinkError::EpilogueTooFar { function: part.function };
        let end = self.end_rva(part.end);
        let mut epilogs = Epilogs::default();
        for &(first_pop, behind) in &part.epilogues {
            let start = self.rva(first_pop);
            let size = self.end_rva(behind) - start;
            epilogs.size = u8::try_from(size).map_err(|_| too_far)?;
            if behind == part.end {
                epilogs.at_end = true;
            } else {
                let distance = u16::try_from(end - start).map_err(|_| too_far)?;
                if distance > 0xFFF {
                    return Err(too_far);
                }
                epilogs.distances.push(distance);
            }
        }
        Ok((!part.epilogues.is_empty()).then_some(epilogs))
    }
}

/// Returns the number of bytes by which an operation lowers rsp.
const fn pushed(operation: Operation) -> u32 {
    match operation {
        Operation::Push(_) => 8,
        Operation::Allocate(bytes) => bytes,
        _ => 0,
    }
}
