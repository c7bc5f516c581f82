//! The images that stacks are made of, in the form that each contender needs.

use clr_unwind::{CodeMap, CodeRegion, PeImage, Run};
use framehop::ModuleSectionInfo;
use object::LittleEndian as LE;
use object::pe::ImageSectionHeader;
use object::read::StringTable;
use object::read::pe::PeFile64;
use std::ops::Range;

/// Images made by compilers. The assembly of `asm_raw` is left out: its forms are for correctness,
/// and neither their frequency nor their order is that of real code.
const COMPILED: [&str; 4] = ["gcc_O2", "clang_O2", "clang_O2_lld", "cpp_gcc_O2"];

/// An image at its preferred base.
pub(crate) struct Image {
    pub(crate) name: &'static str,
    pub(crate) base: u64,
    pub(crate) size: u32,
    pub(crate) sections: Sections,
    pub(crate) file: PeFile64<'static>,
}

impl Image {
    pub(crate) fn load(name: &'static str) -> Self {
        let file = PeFile64::parse(fixture(&format!("win64/img/{name}.dll")))
            .expect("a fixture is a PE image");
        let span = |name: &[u8]| {
            section(&file, name).map(|(header, bytes)| Span { rva: rva(header), bytes })
        };
        let text = span(b".text").expect("images have code");
        let pdata = span(b".pdata").expect("images have a function table").bytes;
        let unwind_data = span(b".xdata").or_else(|| span(b".rdata"));
        let unwind_data = unwind_data.expect("images have unwind data");
        let headers = file.nt_headers();
        Self {
            name,
            base: headers.optional_header.image_base.get(LE),
            size: headers.optional_header.size_of_image.get(LE),
            sections: Sections { pdata, unwind_data, text },
            file,
        }
    }
}

/// The bytes that pe-unwind-info reads, section by section.
#[derive(Clone, Copy)]
pub(crate) struct Sections {
    pub(crate) pdata: &'static [u8],
    /// .xdata, or .rdata if the linker puts unwind data there.
    unwind_data: Span,
    text: Span,
}

#[derive(Clone, Copy)]
struct Span {
    rva: u32,
    bytes: &'static [u8],
}

impl Span {
    fn from(self, rva: u32) -> Option<&'static [u8]> {
        self.bytes.get(rva.wrapping_sub(self.rva) as usize..)
    }
}

impl Sections {
    /// Returns the bytes from `rva` to the end of their section.
    pub(crate) fn bytes_from(&self, rva: u32) -> Option<&'static [u8]> {
        self.unwind_data.from(rva).or_else(|| self.text.from(rva))
    }
}

/// All images, and the map of them.
pub(crate) struct Images {
    /// Ascending by base.
    pub(crate) all: Vec<Image>,
    pub(crate) map: CodeMap<'static>,
    /// The same code as generated code, whose regions keep no rules.
    pub(crate) map_without_rules: CodeMap<'static>,
}

impl Images {
    pub(crate) fn load() -> Self {
        let mut all: Vec<_> = COMPILED.into_iter().map(Image::load).collect();
        all.sort_by_key(|image| image.base);
        let mut map_without_rules = CodeMap::new();
        for image in &all {
            let parsed = PeImage::parse(image.file.data()).expect("a fixture is a PE image");
            map_without_rules.insert(generated(image, &parsed)).expect("preferred bases are apart");
        }
        Self { map: map_of(&all), all, map_without_rules }
    }

    /// Returns the image that contains `address`, and the RVA of `address` there.
    pub(crate) fn find(&self, address: u64) -> Option<(&Image, u32)> {
        let after = self.all.partition_point(|image| image.base <= address);
        let image = self.all.get(after.checked_sub(1)?)?;
        let rva = u32::try_from(address - image.base).ok()?;
        (rva < image.size).then_some((image, rva))
    }

    /// Returns the region of `image` in the map.
    pub(crate) fn region(&self, image: &Image) -> &CodeRegion<'static> {
        self.map.find(image.base).expect("all images are in the map").0
    }
}

/// Returns a new map of the images.
pub(crate) fn map_of(all: &[Image]) -> CodeMap<'static> {
    let mut map = CodeMap::new();
    for image in all {
        let parsed = PeImage::parse(image.file.data()).expect("a fixture is a PE image");
        map.insert_image(image.base, &parsed).expect("preferred bases are apart");
    }
    map
}

fn generated(image: &Image, parsed: &PeImage<'_>) -> CodeRegion<'static> {
    let functions: Vec<_> = parsed.functions().iter().collect();
    let sections = parsed.sections().as_slice().iter();
    let runs = sections.map(|section| Run { rva: section.rva, bytes: section.bytes.to_vec() });
    let code = image.base..image.base + u64::from(image.size);
    CodeRegion::generated(code, image.base, &functions, runs.collect())
        .expect("an image is not empty")
}

pub(crate) fn fixture(name: &str) -> &'static [u8] {
    clr_fixtures::get(name).expect("the fixture exists")
}

fn rva(header: &ImageSectionHeader) -> u32 {
    header.virtual_address.get(LE)
}

/// Returns the section of that name; all images have short section names.
fn section<'a>(file: &PeFile64<'a>, name: &[u8]) -> Option<(&'a ImageSectionHeader, &'a [u8])> {
    let no_long_names = StringTable::<&[u8]>::default();
    let (_, header) = file.section_table().section_by_name(no_long_names, name)?;
    Some((header, header.pe_data(file.data()).ok()?))
}

/// The sections in the form that framehop asks for. Its own `ExplicitModuleSectionInfo` does not
/// know those of PE.
pub(crate) struct FramehopSections<'f, 'a>(pub(crate) &'f PeFile64<'a>);

impl<'a> ModuleSectionInfo<&'a [u8]> for FramehopSections<'_, 'a> {
    fn base_svma(&self) -> u64 {
        self.0.nt_headers().optional_header.image_base.get(LE)
    }

    fn section_svma_range(&mut self, name: &[u8]) -> Option<Range<u64>> {
        let (header, bytes) = section(self.0, name)?;
        let start = self.base_svma() + u64::from(rva(header));
        Some(start..start + bytes.len() as u64)
    }

    fn section_data(&mut self, name: &[u8]) -> Option<&'a [u8]> {
        section(self.0, name).map(|(_, bytes)| bytes)
    }
}
