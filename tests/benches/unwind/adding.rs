//! The time that adding an image takes.

use crate::contenders::framehop_module;
use crate::images::Image;
use crate::measure::{Samples, nanoseconds};
use clr_unwind::{CodeMap, PeImage, SIZE_OF_RUNTIME_FUNCTION};
use framehop::Unwinder as _;
use framehop::x86_64::UnwinderX86_64;
use object::LittleEndian as LE;
use object::read::pe::PeFile64;
use std::hint::black_box;
use std::time::Instant;

const IMAGES_PER_SAMPLE: u32 = 256;

/// Images with few and with many function entries, and the time that adding them takes.
pub(crate) struct Adding {
    largest: Image,
    padded: [Vec<u8>; 2],
    pub(crate) ours: Samples,
    pub(crate) framehop: Samples,
    /// Samples as in `ours`, for each of [`Adding::ENTRIES`].
    pub(crate) by_entries: [Samples; 2],
}

impl Adding {
    pub(crate) const ENTRIES: [usize; 2] = [100, 100_000];

    pub(crate) fn new() -> Self {
        // It has more functions than the others together.
        let largest = Image::load("asm_raw");
        let padded = Self::ENTRIES.map(|entries| with_entries(&largest, entries));
        for (image, entries) in padded.iter().zip(Self::ENTRIES) {
            assert_eq!(PeImage::parse(image).expect("it is an image").functions().len(), entries);
        }
        Self {
            largest,
            padded,
            ours: Samples::new(),
            framehop: Samples::new(),
            by_entries: Default::default(),
        }
    }

    /// Returns the number of function entries of the largest image.
    pub(crate) fn functions(&self) -> usize {
        self.largest.sections.pdata.len() / SIZE_OF_RUNTIME_FUNCTION
    }

    /// Takes one sample of each.
    pub(crate) fn round(&mut self) {
        let (bytes, base) = (self.largest.file.data(), self.largest.base);
        self.ours.push(sample(|| add(bytes, base)));
        self.framehop.push(sample(|| {
            let file = PeFile64::parse(black_box(bytes)).expect("it is an image");
            let mut unwinder = UnwinderX86_64::<_>::new();
            unwinder.add_module(framehop_module(&Image { file, ..self.largest }));
            black_box(unwinder);
        }));
        for (image, samples) in self.padded.iter().zip(&mut self.by_entries) {
            samples.push(sample(|| add(image, base)));
        }
    }
}

fn add(image: &[u8], base: u64) {
    let mut map = CodeMap::new();
    let image = PeImage::parse(black_box(image)).expect("it is an image");
    map.insert_image(black_box(base), &image).expect("the map is empty");
    black_box(map);
}

/// Returns the nanoseconds for each call of `add`.
fn sample(mut add: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..IMAGES_PER_SAMPLE {
        add();
    }
    nanoseconds(start.elapsed()) / f64::from(IMAGES_PER_SAMPLE)
}

/// Returns `image` with one more section, which is a function table of `entries` entries.
fn with_entries(image: &Image, entries: usize) -> Vec<u8> {
    const SIZE_OF_SECTION_HEADER: usize = 40;
    let mut bytes = image.file.data().to_vec();
    let rva = image.size;
    let size = (entries * SIZE_OF_RUNTIME_FUNCTION) as u32;
    let raw = bytes.len() as u32;
    for n in 0..entries as u32 {
        for field in [4 * n, 4 * n + 4, rva] {
            bytes.extend(field.to_le_bytes());
        }
    }
    let nt = u32::from_le_bytes(bytes[0x3C..0x40].try_into().expect("four bytes")) as usize;
    let sections = image.file.section_table().len();
    let optional = nt + 24;
    let size_of_optional = image.file.nt_headers().file_header.size_of_optional_header.get(LE);
    // The linker rounds the headers up to 512 bytes, which leaves room for one more.
    let header = optional + usize::from(size_of_optional) + SIZE_OF_SECTION_HEADER * sections;
    let readable_data = 0x4000_0040_u32;
    let fields = [
        (nt + 6, sections as u32 + 1),
        (optional + 56, rva + size),
        (optional + 112 + 3 * 8, rva),
        (optional + 112 + 3 * 8 + 4, size),
        (header + 8, size),
        (header + 12, rva),
        (header + 16, size),
        (header + 20, raw),
        (header + 36, readable_data),
    ];
    bytes[nt + 6..nt + 8].fill(0);
    for (at, value) in fields {
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}
