//! Recording of vectors from steps that were correct.

use super::*;
use crate::unwinders::stepping::external::check::module;
use crate::unwinders::stepping::vectors::{Image, Vector};
use data_encoding::HEXLOWER;
use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection as _};
use object::{Object as _, ObjectSection as _};

/// Number of addresses recorded for each row of call frame information.
const OF_A_ROW: usize = 2;

/// A selection of steps: a few of each row.
pub(super) struct Recorder<'a> {
    modules: &'a [Module],
    map: &'a CodeMap<'a>,
    /// Addresses (VA), by the row's address (VA) and true if the step is from a return address.
    taken: BTreeMap<(u64, bool), BTreeSet<u64>>,
    vectors: Vec<(u64, Vector)>,
}

impl<'a> Recorder<'a> {
    pub(super) const fn new(modules: &'a [Module], map: &'a CodeMap<'a>) -> Self {
        Self { modules, map, taken: BTreeMap::new(), vectors: Vec::new() }
    }

    /// Records a correct step, which has read these words.
    pub(super) fn right(
        &mut self,
        from: &Registers,
        position: Position,
        activation: &Activation,
        words: BTreeMap<u64, u64>,
    ) {
        let calls = position == Position::ReturnAddress;
        let Some((region, rva)) = self.map.find(from.rip - u64::from(calls)) else { return };
        let Some(Ok(Some(row))) = region.cfi().map(|table| table.row(rva)) else { return };
        let row = (region.base() + u64::from(row.range.start), calls);
        let taken = self.taken.entry(row).or_default();
        if taken.len() == OF_A_ROW || !taken.insert(from.rip) {
            return;
        }
        let registers = Registers { rip: from.rip - region.base(), ..*from };
        let (began, caller) = (activation.began, activation.caller);
        let vector = Vector { image: 0, position, began, registers, words, caller };
        self.vectors.push((region.base(), vector));
    }

    /// Returns the lines of a file of vectors.
    pub(super) fn lines(self) -> Vec<String> {
        let bases: BTreeSet<u64> = self.vectors.iter().map(|(base, _)| *base).collect();
        let images = bases.iter().filter_map(|base| {
            let module = module(self.modules, *base)?;
            let of_it = self.vectors.iter().filter(|(of, _)| of == base);
            let calls = |one: &Vector| u64::from(one.position == Position::ReturnAddress);
            let rvas = of_it.map(|(_, vector)| vector.registers.rip - calls(vector));
            Some(image(module, &rvas.collect()).to_line())
        });
        let images: Vec<String> = images.collect();
        let vectors = self.vectors.into_iter().map(|(base, vector)| {
            let image = bases.iter().position(|one| *one == base).unwrap_or(0);
            Vector { image, ..vector }.to_line()
        });
        images.into_iter().chain(vectors).collect()
    }
}

/// Returns an image with the entries of the functions at these RVAs.
fn image(module: &Module, rvas: &BTreeSet<u64>) -> Image {
    let file = object::File::parse(&*module.bytes).unwrap();
    let section = file.section_by_name(".eh_frame").unwrap();
    let (data, address) = (section.data().unwrap(), section.address());
    let size = (module.end - module.base) as u32;
    let at = u64::from(Image::eh_frame_rva(size));
    let bases = BaseAddresses::default().set_eh_frame(address);
    let frames = EhFrame::new(data, LittleEndian);
    let mut eh_frame = Vec::new();
    let mut cies: BTreeMap<usize, usize> = BTreeMap::new();
    let mut entries = frames.entries(&bases);
    while let Some(entry) = entries.next().unwrap() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(|_, bases, at| frames.cie_from_offset(bases, at)).unwrap();
        let range = fde.initial_address()..fde.initial_address() + fde.len();
        if rvas.range(range).next().is_none() {
            continue;
        }
        let bytes = |offset: usize| {
            let length = u32::from_le_bytes(data[offset..offset + 4].try_into().unwrap());
            &data[offset..offset + 4 + length as usize]
        };
        let field = fde.offset() + 8;
        let word = i32::from_le_bytes(data[field..field + 4].try_into().unwrap());
        let relative = (address + field as u64).wrapping_add_signed(word.into());
        assert_eq!(relative, fde.initial_address(), "{} has other pointers", module.name);
        let cie = *cies.entry(fde.cie().offset()).or_insert_with(|| {
            eh_frame.extend(bytes(fde.cie().offset()));
            eh_frame.len() - bytes(fde.cie().offset()).len()
        });
        let start = eh_frame.len();
        eh_frame.extend(bytes(fde.offset()));
        let field = (start + 4 - cie) as u32;
        eh_frame[start + 4..start + 8].copy_from_slice(&field.to_le_bytes());
        let distance = fde.initial_address().wrapping_sub(at + start as u64 + 8) as u32;
        eh_frame[start + 8..start + 12].copy_from_slice(&distance.to_le_bytes());
    }
    eh_frame.extend([0; 4]);
    let build = file.build_id().unwrap().unwrap_or_default();
    Image { name: module.name.clone(), build: HEXLOWER.encode(build), size, eh_frame }
}
