//! The managed code of a process.

use clr_unwind::{CodeMap, CodeRegion, RegionKind};

/// The managed code in a code map. Look-ups take no lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct ManagedCode<'m, 'a> {
    pub(super) map: &'m CodeMap<'a>,
    /// The bases of images with managed code (VA), ascending.
    images: &'m [u64],
}

impl<'m, 'a> ManagedCode<'m, 'a> {
    /// `images`: the bases of images with managed code (VA), ascending.
    pub(super) const fn new(map: &'m CodeMap<'a>, images: &'m [u64]) -> Self {
        Self { map, images }
    }

    /// Returns the region with managed code at `address` (VA), and its RVA.
    pub(super) fn find(&self, address: u64) -> Option<(&'m CodeRegion<'a>, u32)> {
        self.map.find(address).filter(|(region, _)| {
            region.kind() == RegionKind::CodeHeap
                || self.images.binary_search(&region.base()).is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr_unwind::PeImage;

    #[test]
    fn a_native_image_is_not_managed_though_it_looks_the_same() {
        let file = include_bytes!("../../../../fixtures/win64/img/gcc_O2.dll");
        let image = PeImage::parse(file).unwrap();
        let mut map = CodeMap::new();
        map.insert_image(0x1_0000_0000, &image).unwrap();
        map.insert_image(0x2_0000_0000, &image).unwrap();
        let rva = image.functions().iter().next().unwrap().begin;
        let code = ManagedCode::new(&map, &[0x2_0000_0000]);
        let found = |base: u64| code.find(base + u64::from(rva)).map(|(region, _)| region.base());
        assert_eq!(found(0x1_0000_0000), None);
        assert_eq!(found(0x2_0000_0000), Some(0x2_0000_0000));
        assert_eq!(found(0x3_0000_0000), None);
    }
}
