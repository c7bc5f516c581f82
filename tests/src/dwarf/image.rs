//! An ELF file's `.eh_frame`, parsed from its bytes.

use super::Error;
use super::reader::Reader;

/// A frame description entry: the unwind data of a range of code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fde<'a> {
    /// Address of the first byte of code (VA).
    pub(super) begin: u64,
    pub(super) size: u64,
    pub(super) cie: Cie<'a>,
    /// The FDE's instructions.
    pub(super) program: Reader<'a>,
}

/// A common information entry, shared by FDEs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cie<'a> {
    pub(super) code_factor: u64,
    pub(super) data_factor: i64,
    pub(super) return_address: u64,
    /// True if the frames were entered by interrupts.
    pub(super) signal: bool,
    /// True if FDEs have augmentation data before their instructions.
    augmented: bool,
    pointers: u8,
    pub(super) program: Reader<'a>,
}

#[derive(Clone, Debug)]
pub(super) struct Image<'a> {
    base: u64,
    size: u64,
    /// The FDEs, ascending by `begin`.
    fdes: Vec<Fde<'a>>,
}

const PT_LOAD: u64 = 1;
const PT_GNU_EH_FRAME: u64 = 0x6474_E550;

impl<'a> Image<'a> {
    /// Parses a shared library loaded at `base`. File offsets of loaded segments must equal their
    /// addresses.
    pub(super) fn new(base: u64, bytes: &'a [u8]) -> Result<Self, Error> {
        let at = |offset| Reader::new(bytes, offset, base);
        if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
            return Err(Error::BadImage);
        }
        let headers = at(0x20)?.u64()?;
        let count = at(0x38)?.u16()?;
        let (mut size, mut frame_header) = (0, None);
        for number in 0..u64::from(count) {
            let mut header = at(headers + 56 * number)?;
            let kind = header.u64()? & 0xFFFF_FFFF;
            let (offset, address) = (header.u64()?, header.u64()?);
            let (_, in_file, in_memory) = (header.u64()?, header.u64()?, header.u64()?);
            match kind {
                PT_LOAD if offset == address && in_file == in_memory => size = address + in_memory,
                PT_LOAD => return Err(Error::BadImage),
                PT_GNU_EH_FRAME => frame_header = Some(address),
                _ => {}
            }
        }
        let mut header = at(frame_header.ok_or(Error::BadImage)?)?;
        let [_, pointer, ..] = header.bytes(4)? else { return Err(Error::BadImage) };
        let frames = header.pointer(*pointer)?;
        Self::of_eh_frame(base, size, bytes, frames.wrapping_sub(base))
    }

    /// Reads the `.eh_frame` at an offset of the image's bytes.
    pub(super) fn of_eh_frame(
        base: u64,
        size: u64,
        bytes: &'a [u8],
        offset: u64,
    ) -> Result<Self, Error> {
        let mut fdes = entries(Reader::new(bytes, offset, base)?)?;
        fdes.sort_by_key(|fde| fde.begin);
        Ok(Self { base, size, fdes })
    }

    pub(super) fn begins(&self) -> impl Iterator<Item = u64> {
        self.fdes.iter().map(|fde| fde.begin)
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.size
    }

    /// Returns the FDE of the code at an address (VA).
    pub(super) fn find(&self, address: u64) -> Option<&Fde<'a>> {
        let after = self.fdes.partition_point(|fde| fde.begin <= address);
        let fde = self.fdes.get(after.checked_sub(1)?)?;
        (address - fde.begin < fde.size).then_some(fde)
    }
}

/// Returns the FDEs of an `.eh_frame` section.
fn entries(mut section: Reader<'_>) -> Result<Vec<Fde<'_>>, Error> {
    let start = section;
    let mut fdes = Vec::new();
    loop {
        let length = section.u32()?;
        if length == 0 {
            return Ok(fdes);
        }
        let mut entry = section.part(length.into())?;
        let field = entry.offset();
        let back = u64::from(entry.u32()?);
        if back == 0 {
            continue;
        }
        let cie = Cie::read(start.at(field.wrapping_sub(back))?)?;
        let begin = entry.pointer(cie.pointers)?;
        let size = entry.value(cie.pointers)?;
        if cie.augmented {
            let length = entry.unsigned()?;
            entry.bytes(length)?;
        }
        fdes.push(Fde { begin, size, cie, program: entry });
    }
}

impl<'a> Cie<'a> {
    fn read(mut section: Reader<'a>) -> Result<Self, Error> {
        let length = section.u32()?;
        let mut entry = section.part(length.into())?;
        if entry.u32()? != 0 || entry.u8()? != 1 {
            return Err(Error::BadTable);
        }
        let mut letters = Vec::new();
        loop {
            match entry.u8()? {
                0 => break,
                letter => letters.push(letter),
            }
        }
        let code_factor = entry.unsigned()?;
        let data_factor = entry.signed()?;
        let return_address = entry.unsigned()?;
        let mut cie = Self {
            code_factor,
            data_factor,
            return_address,
            signal: false,
            augmented: false,
            pointers: 0,
            program: entry,
        };
        if let Some((b'z', letters)) = letters.split_first() {
            let length = entry.unsigned()?;
            let mut data = entry.part(length)?;
            cie.augmented = true;
            for letter in letters {
                match letter {
                    b'L' => drop(data.u8()?),
                    b'P' => {
                        let encoding = data.u8()?;
                        data.pointer(encoding)?;
                    }
                    b'R' => cie.pointers = data.u8()?,
                    b'S' => cie.signal = true,
                    _ => return Err(Error::BadTable),
                }
            }
        }
        cie.program = entry;
        Ok(cie)
    }
}
