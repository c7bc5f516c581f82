//! The code and unwind data of a program's images and heap by sections, in the form that other
//! unwinders need.

use super::*;
use clr_codegen::{Format, Unit};
use clr_unwind::{FunctionTable, PeImage, RuntimeFunction};

/// An image or a heap. A heap is one section that contains everything but the function table.
pub(crate) struct Code<'a> {
    pub(crate) base: u64,
    pub(crate) size: u32,
    pub(crate) text: Section<'a>,
    /// The section with the unwind data.
    pub(crate) xdata: Section<'a>,
    /// The bytes of the function table; `None` if an image has none.
    pub(crate) pdata: Option<Vec<u8>>,
}

/// A section's bytes, with their RVA.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    pub(crate) rva: u32,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Section<'a> {
    fn from(self, rva: u32) -> Option<&'a [u8]> {
        let bytes = self.bytes.get(rva.checked_sub(self.rva)? as usize..)?;
        (!bytes.is_empty()).then_some(bytes)
    }
}

impl<'a> Code<'a> {
    /// Returns the images and the heap of a program that have UNWIND_INFO.
    pub(crate) fn all(linked: &'a LinkedProgram) -> Vec<Self> {
        let units = linked.units.iter().filter(|unit| unit.format != Format::Elf);
        units.map(Self::new).collect()
    }

    fn new(unit: &'a Unit) -> Self {
        if unit.format == Format::Heap {
            let section = Section { rva: 0, bytes: &unit.bytes };
            return Self {
                base: unit.base,
                size: unit.bytes.len() as u32,
                text: section,
                xdata: section,
                pdata: Some(bytes_of(FunctionTable::new(&unit.runtime_functions))),
            };
        }
        let image = PeImage::parse(&unit.bytes).unwrap();
        let sections = image.sections();
        let section = |rva| {
            let found = sections.find(rva).unwrap();
            Section { rva: found.rva, bytes: found.bytes }
        };
        let text = sections.as_slice().iter().find(|section| section.executable).unwrap();
        let first = image.functions().iter().next();
        Self {
            base: unit.base,
            size: image.size(),
            text: section(text.rva),
            xdata: first.map_or(Section { rva: 0, bytes: &[] }, |f| section(f.unwind_info)),
            pdata: first.is_some().then(|| bytes_of(image.functions())),
        }
    }

    /// Returns the code that contains `address` (VA), and the address's RVA there.
    pub(crate) fn find(all: &'a [Self], address: u64) -> Option<(&'a Self, u32)> {
        all.iter().find_map(|code| {
            let rva = u32::try_from(address.checked_sub(code.base)?).ok()?;
            (rva < code.size).then_some((code, rva))
        })
    }

    /// Returns the bytes from `rva` to the end of their section.
    pub(crate) fn bytes_from(&self, rva: u32) -> Option<&'a [u8]> {
        self.text.from(rva).or_else(|| self.xdata.from(rva))
    }
}

fn bytes_of(table: FunctionTable<'_>) -> Vec<u8> {
    let fields = |f: RuntimeFunction| [f.begin, f.end, f.unwind_info];
    table.iter().flat_map(fields).flat_map(u32::to_le_bytes).collect()
}
