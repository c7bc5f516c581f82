//! Reading the target thread's memory: bounded, fallible, never trusted.

use alloc::vec::Vec;
use thiserror::Error;

/// An error of a read: bytes that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("cannot read {len} bytes at {address:#x}")]
pub struct Unreadable {
    /// The first address of the read (VA).
    pub address: u64,
    /// Length of the read in bytes.
    pub len: u32,
}

/// Read access to the target's memory.
///
/// A read either fills the whole buffer or fails; reads need not be aligned. A walk asks for at most
/// 16 bytes at a time, a reader of jitted code for at most 4,096 bytes of one page.
pub trait Memory {
    /// Fills `buffer` with the bytes at `address` (VA).
    ///
    /// # Errors
    /// [`Unreadable`] if any of the bytes cannot be read.
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable>;

    /// Reads the little-endian u16 at `address` (VA), which need not be aligned.
    ///
    /// # Errors
    /// [`Unreadable`] if any of its bytes cannot be read.
    #[inline]
    fn read_u16(&self, address: u64) -> Result<u16, Unreadable> {
        let mut bytes = [0; 2];
        self.read(address, &mut bytes)?;
        Ok(u16::from_le_bytes(bytes))
    }

    /// Reads the little-endian u32 at `address` (VA), which need not be aligned.
    ///
    /// # Errors
    /// [`Unreadable`] if any of its bytes cannot be read.
    #[inline]
    fn read_u32(&self, address: u64) -> Result<u32, Unreadable> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Reads the little-endian u64 at `address` (VA), which need not be aligned.
    ///
    /// # Errors
    /// [`Unreadable`] if any of its bytes cannot be read.
    #[inline]
    fn read_u64(&self, address: u64) -> Result<u64, Unreadable> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads the little-endian u128 at `address` (VA), which need not be aligned.
    ///
    /// # Errors
    /// [`Unreadable`] if any of its bytes cannot be read.
    #[inline]
    fn read_u128(&self, address: u64) -> Result<u128, Unreadable> {
        let mut bytes = [0; 16];
        self.read(address, &mut bytes)?;
        Ok(u128::from_le_bytes(bytes))
    }

    /// Returns the `len` bytes at `address` (VA), if the memory holds them as one slice. After
    /// `None`, the bytes may still be readable with [`read`](Self::read). A walk asks for the 128 bytes
    /// from the lowest saved register on, and then for those that it needs.
    #[inline]
    fn window(&self, address: u64, len: usize) -> Option<&[u8]> {
        let _ = (address, len);
        None
    }
}

impl<M: Memory + ?Sized> Memory for &M {
    #[inline]
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        (**self).read(address, buffer)
    }

    #[inline]
    fn read_u64(&self, address: u64) -> Result<u64, Unreadable> {
        (**self).read_u64(address)
    }

    #[inline]
    fn read_u128(&self, address: u64) -> Result<u128, Unreadable> {
        (**self).read_u128(address)
    }

    #[inline]
    fn window(&self, address: u64, len: usize) -> Option<&[u8]> {
        (**self).window(address, len)
    }
}

/// Bytes at an address, for example a copied stack.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    address: u64,
    bytes: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Creates a segment with the `bytes` at `address` (VA) in the target. Bytes beyond the end of
    /// the address space cannot be read.
    pub const fn new(address: u64, bytes: &'a [u8]) -> Self {
        Self { address, bytes }
    }

    /// Returns the address of the first byte (VA).
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Returns the bytes.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    fn slice(&self, address: u64, len: usize) -> Option<&'a [u8]> {
        let at = usize::try_from(address.wrapping_sub(self.address)).ok()?;
        self.bytes.get(at..at.checked_add(len)?)
    }

    #[inline]
    fn chunk<const N: usize>(&self, address: u64) -> Result<[u8; N], Unreadable> {
        usize::try_from(address.wrapping_sub(self.address))
            .ok()
            .and_then(|at| self.bytes.get(at..)?.first_chunk())
            .copied()
            .ok_or(Unreadable { address, len: N as u32 })
    }
}

impl Memory for Segment<'_> {
    #[inline]
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        buffer.copy_from_slice(self.slice(address, buffer.len()).ok_or(unreadable)?);
        Ok(())
    }

    #[inline]
    fn read_u64(&self, address: u64) -> Result<u64, Unreadable> {
        self.chunk(address).map(u64::from_le_bytes)
    }

    #[inline]
    fn read_u128(&self, address: u64) -> Result<u128, Unreadable> {
        self.chunk(address).map(u128::from_le_bytes)
    }

    #[inline]
    fn window(&self, address: u64, len: usize) -> Option<&[u8]> {
        self.slice(address, len)
    }
}

/// A set of segments, searched by address. A read must lie within one of them.
#[derive(Clone, Debug, Default)]
pub struct Segments<'a> {
    /// Ascending by address, not overlapping, none empty.
    segments: Vec<Segment<'a>>,
}

/// An error in making a set of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SegmentsError {
    /// Two segments share an address.
    #[error("the segment at {address:#x} overlaps the one before it")]
    Overlap {
        /// Start of the higher segment (VA).
        address: u64,
    },
    /// A segment goes beyond the end of the address space.
    #[error("the segment at {address:#x} goes beyond the end of the address space")]
    Wraps {
        /// Start of the segment (VA).
        address: u64,
    },
}

impl<'a> Segments<'a> {
    /// Creates a set of segments given in any order; empty ones are left out.
    ///
    /// # Errors
    /// [`SegmentsError`] if two of them overlap or one goes beyond the end of the address space.
    pub fn new(segments: impl IntoIterator<Item = Segment<'a>>) -> Result<Self, SegmentsError> {
        let mut segments: Vec<_> =
            segments.into_iter().filter(|segment| !segment.bytes.is_empty()).collect();
        segments.sort_by_key(|segment| segment.address);
        let mut last = None;
        for segment in &segments {
            if last.is_some_and(|last| segment.address <= last) {
                return Err(SegmentsError::Overlap { address: segment.address });
            }
            let wraps = SegmentsError::Wraps { address: segment.address };
            let end = segment.address.checked_add(segment.bytes.len() as u64 - 1);
            last = Some(end.ok_or(wraps)?);
        }
        Ok(Self { segments })
    }

    /// Returns the segments, ascending by address.
    pub fn as_slice(&self) -> &[Segment<'a>] {
        &self.segments
    }

    #[inline]
    fn find(&self, address: u64) -> Segment<'a> {
        let after = self.segments.partition_point(|segment| segment.address <= address);
        match after.checked_sub(1).and_then(|i| self.segments.get(i)) {
            Some(segment) => *segment,
            None => Segment::new(address, &[]),
        }
    }
}

impl Memory for Segments<'_> {
    #[inline]
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        self.find(address).read(address, buffer)
    }

    #[inline]
    fn read_u64(&self, address: u64) -> Result<u64, Unreadable> {
        self.find(address).read_u64(address)
    }

    #[inline]
    fn read_u128(&self, address: u64) -> Result<u128, Unreadable> {
        self.find(address).read_u128(address)
    }

    #[inline]
    fn window(&self, address: u64, len: usize) -> Option<&[u8]> {
        self.find(address).slice(address, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 24] = {
        let mut bytes = [0; 24];
        let mut i = 0;
        while i < 24 {
            bytes[i] = i as u8;
            i += 1;
        }
        bytes
    };

    #[test]
    fn a_segment_reads_inside_and_refuses_outside() {
        let segment = Segment::new(0x1000, &BYTES);
        assert_eq!(segment.read_u64(0x1001), Ok(0x0807_0605_0403_0201));
        assert_eq!(segment.read_u64(0x1010), Ok(0x1716_1514_1312_1110));
        assert_eq!(segment.read_u16(0x1016), Ok(0x1716));
        assert_eq!(segment.read_u32(0x1001), Ok(0x0403_0201));
        assert_eq!(segment.read_u32(0x1015), Err(Unreadable { address: 0x1015, len: 4 }));
        assert_eq!(segment.read_u128(0x1008).unwrap() as u64, segment.read_u64(0x1008).unwrap());
        for address in [0xFFF, 0x1011, 0x1018, 0, u64::MAX] {
            assert_eq!(segment.read_u64(address), Err(Unreadable { address, len: 8 }));
        }
        assert_eq!(segment.read_u128(0x1009), Err(Unreadable { address: 0x1009, len: 16 }));
        let mut buffer = [0xEE; 3];
        assert!(segment.read(0x1016, &mut buffer).is_err());
        assert_eq!(buffer, [0xEE; 3]);
        segment.read(0x1015, &mut buffer).unwrap();
        assert_eq!(buffer, [0x15, 0x16, 0x17]);
    }

    #[test]
    fn a_window_shows_what_reads_give() {
        let segment = Segment::new(0x1000, &BYTES);
        let segments = Segments::new([segment]).unwrap();
        let memories: [&dyn Memory; 3] = [&segment, &segments, &&segment];
        for memory in memories {
            assert_eq!(memory.window(0x1004, 20), Some(&BYTES[4..]));
            assert_eq!(memory.window(0x1000, 0), Some(&BYTES[..0]));
            for (address, len) in [(0x1004, 21), (0xFFF, 1), (0x1018, 1), (0x1001, usize::MAX)] {
                assert_eq!(memory.window(address, len), None);
            }
        }
    }

    #[test]
    fn the_end_of_the_address_space_is_an_end() {
        let segment = Segment::new(u64::MAX - 7, &BYTES[..8]);
        assert_eq!(segment.read_u64(u64::MAX - 7), Ok(0x0706_0504_0302_0100));
        assert!(segment.read_u64(u64::MAX - 6).is_err());
        assert!(Segments::new([segment]).is_ok());
    }

    #[test]
    fn segments_are_searched_and_not_joined() {
        let segments =
            Segments::new([Segment::new(0x2000, &BYTES), Segment::new(0x1FF8, &BYTES[8..16])])
                .unwrap();
        assert_eq!(segments.read_u64(0x1FF8), Ok(0x0F0E_0D0C_0B0A_0908));
        assert_eq!(segments.read_u64(0x2000), Ok(0x0706_0504_0302_0100));
        assert!(segments.read_u64(0x1FFC).is_err(), "a read must lie within one segment");
        assert!(segments.read_u64(0x1FF7).is_err());
        assert!(segments.read_u64(0x2011).is_err());
    }

    #[test]
    fn overlapping_or_wrapping_segments_are_refused() {
        let overlap = Segments::new([Segment::new(0x1000, &BYTES), Segment::new(0x1017, &BYTES)]);
        assert_eq!(overlap.unwrap_err(), SegmentsError::Overlap { address: 0x1017 });
        let same = Segments::new([Segment::new(5, &BYTES), Segment::new(5, &BYTES)]);
        assert_eq!(same.unwrap_err(), SegmentsError::Overlap { address: 5 });
        let wraps = Segments::new([Segment::new(u64::MAX - 22, &BYTES)]);
        assert_eq!(wraps.unwrap_err(), SegmentsError::Wraps { address: u64::MAX - 22 });
        assert!(Segments::new([Segment::new(1, &[])]).unwrap().as_slice().is_empty());
    }

    /// Callers take memory by value, by reference and as a trait object.
    #[test]
    fn each_way_to_the_same_memory_reads_the_same() {
        struct Bytewise<'m>(&'m Segment<'m>);

        impl Memory for Bytewise<'_> {
            fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
                self.0.read(address, buffer)
            }
        }

        fn check<M: Memory>(memory: &M) {
            let mut buffer = [0; 3];
            assert_eq!(memory.read(0x1004, &mut buffer), Ok(()));
            assert_eq!(buffer, [4, 5, 6]);
            assert_eq!(memory.read_u64(0x1004), Ok(0x0B0A_0908_0706_0504));
            assert_eq!(memory.read_u128(0x1004), Ok(0x1312_1110_0F0E_0D0C_0B0A_0908_0706_0504));
            assert_eq!(memory.read_u64(0x1011), Err(Unreadable { address: 0x1011, len: 8 }));
            assert!(memory.read_u128(0x1009).is_err() && memory.read(0x1016, &mut buffer).is_err());
        }

        let segment = Segment::new(0x1000, &BYTES);
        assert_eq!((segment.address(), segment.bytes()), (0x1000, &BYTES[..]));
        let segments = Segments::new([segment, Segment::new(0x800, &BYTES)]).unwrap();
        let addresses: Vec<_> = segments.as_slice().iter().map(Segment::address).collect();
        assert_eq!(addresses, [0x800, 0x1000]);
        check(&segment);
        check(&&segment);
        check(&segments);
        check(&&segments);
        check(&Bytewise(&segment));
        check(&&Bytewise(&segment));
        assert_eq!(Bytewise(&segment).window(0x1000, 1), None);
    }
}
