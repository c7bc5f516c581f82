//! Each UNWIND_INFO, against pe-unwind-info. The object crate finds the table and the bytes.

use super::Comparison;
use clr_unwind::win64::{Operation, UnwindInfo};
use clr_unwind::{CodeRegion, PeImage, RuntimeFunction};
use object::LittleEndian as LE;
use object::pe::IMAGE_DIRECTORY_ENTRY_EXCEPTION;
use object::read::pe::PeFile64;
use pe_unwind_info::x86_64 as theirs;

/// Size of a RUNTIME_FUNCTION in bytes.
const ENTRY: usize = 12;

/// An unwind code, as both readers can say it: offset, operation, register and number.
type Code = (u8, &'static str, u8, u64);

pub(super) fn compare(image: &[u8], comparison: &mut Comparison) -> Option<()> {
    let ours = PeImage::parse(image).ok()?;
    let region = CodeRegion::image(ours.preferred_base(), &ours).ok()?;
    let file = PeFile64::parse(image).ok()?;
    let sections = file.section_table();
    let bytes_at = |rva: u32| sections.pe_data_at(image, rva);
    let table = file.data_directories().get(IMAGE_DIRECTORY_ENTRY_EXCEPTION);
    let table = table.map_or(Some(&[][..]), |directory| {
        let size = directory.size.get(LE) as usize;
        bytes_at(directory.virtual_address.get(LE))?.get(..size)
    });
    let table = table.unwrap_or_default();
    let entries = theirs::FunctionTableEntries::parse(&table[..table.len() / ENTRY * ENTRY]);
    let entries = entries.functions().unwrap_or_default().iter().map(converted);
    let entries: Vec<_> =
        entries.take_while(|entry| *entry != RuntimeFunction::default()).collect();
    let own: Vec<_> = ours.functions().iter().collect();
    comparison.compare("list of functions", 0, &own, &entries);
    for entry in &own {
        comparison.entries += 1;
        if entry.unwind_info & 1 == 0 {
            compare_info(&region, *entry, bytes_at(entry.unwind_info), comparison);
        }
    }
    Some(())
}

fn converted(entry: &theirs::RuntimeFunction) -> RuntimeFunction {
    RuntimeFunction {
        begin: entry.begin_address.get(),
        end: entry.end_address.get(),
        unwind_info: entry.unwind_info_address.get(),
    }
}

fn compare_info(
    region: &CodeRegion<'_>,
    entry: RuntimeFunction,
    bytes: Option<&[u8]>,
    comparison: &mut Comparison,
) {
    let rva = entry.begin;
    let ours = UnwindInfo::read(region, entry.unwind_info);
    let (ours, theirs) = match (ours, bytes.and_then(theirs::UnwindInfo::parse)) {
        (Ok(ours), Some(theirs)) => (ours, theirs),
        (Err(_), None) => return,
        (Ok(ours), None) if ours.version() > 2 => {
            return comparison.differ("version 3, which pe-unwind-info refuses", rva);
        }
        (Ok(_), None) => return comparison.differ("header that pe-unwind-info refuses", rva),
        (Err(_), Some(_)) => return comparison.differ("header that clr-unwind refuses", rva),
    };
    let header = |version, flags, prologue: u8, slots: usize, register, offset| {
        (version, flags, prologue, slots, register, offset)
    };
    comparison.compare(
        "header",
        rva,
        &header(
            ours.version(),
            ours.flags(),
            ours.prologue_size(),
            ours.slot_count(),
            ours.frame_register(),
            ours.frame_offset(),
        ),
        &header(
            theirs.version(),
            theirs.flags_raw(),
            theirs.prolog_size,
            theirs.unwind_codes_len.into(),
            theirs.frame_register_raw(),
            theirs.frame_register_offset().into(),
        ),
    );
    let read: Result<Vec<_>, _> = ours.codes().collect();
    let operations = theirs.unwind_operations();
    let codes: Vec<Code> = operations.filter_map(|code| code_of(&theirs, code)).collect();
    comparison.parts += codes.len() as u64;
    match read {
        Ok(read)
            if read.iter().any(|code| matches!(code.operation, Operation::SetFpregLarge(_))) =>
        {
            comparison
                .differ("operation 11 of ready-to-run images, which pe-unwind-info refuses", rva);
        }
        Ok(read) => {
            let read: Vec<Code> = read
                .iter()
                .filter(|code| !matches!(code.operation, Operation::Spare | Operation::Epilog))
                .map(|code| own_code(code.offset, code.operation))
                .collect();
            comparison.compare("codes", rva, &read, &codes);
        }
        // pe-unwind-info ends the list at a code that it cannot read.
        Err(_) if slots_of(&codes) < ours.slot_count() => {}
        Err(_) => comparison.differ("codes that clr-unwind refuses", rva),
    }
    // pe-unwind-info misreads EPILOG codes, and looks for a handler and a parent directly behind an odd
    // number of slots, where a slot of padding is. So these are read here.
    let slots = usize::from(theirs.unwind_codes_len);
    let own = ours.epilogs().map(|all| (all.size(), all.starts(entry.end).collect()));
    let raw = bytes.and_then(|bytes| bytes.get(4..4 + 2 * slots)).unwrap_or_default();
    let read = if theirs.version() == 2 { epilogs(raw, entry.end) } else { None };
    comparison.compare("epilogues", rva, &own, &read);
    let end = 4 + 2 * slots.next_multiple_of(2);
    let word = |n: usize| {
        let bytes = bytes.and_then(|bytes| bytes.get(end + 4 * n..)?.first_chunk::<4>());
        bytes.map(|bytes| u32::from_le_bytes(*bytes))
    };
    let flags = theirs.flags_raw();
    let handler = if flags & 3 != 0 { word(0) } else { None };
    let own = ours.handler().map(|handler| handler.map(|handler| handler.rva));
    comparison.compare("handler", rva, &own, &Ok(handler));
    let parent = (flags & 4 != 0).then(|| {
        let [begin, end, unwind_info] = [0, 1, 2].map(|n| word(n).unwrap_or_default());
        RuntimeFunction { begin, end, unwind_info }
    });
    comparison.compare("parent", rva, &ours.parent(), &Ok(parent));
}

/// Returns the size and the begins of the epilogues that EPILOG codes describe (version 2), in a
/// function with this `end`.
fn epilogs(slots: &[u8], end: u32) -> Option<(u8, Vec<u32>)> {
    let codes = slots.as_chunks::<2>().0.iter().take_while(|[_, operation]| operation & 0xF == 6);
    let mut codes = codes.map(|[low, operation]| (*low, u32::from(operation >> 4)));
    let (size, flags) = codes.next()?;
    let at_end = (flags & 1 != 0).then(|| size.into());
    let distances = codes.map(|(low, high)| u32::from(low) | high << 8);
    let distances = at_end.into_iter().chain(distances.take_while(|distance| *distance > 0));
    Some((size, distances.map(|distance| end.wrapping_sub(distance)).collect()))
}

/// Returns the number of slots that these codes take.
fn slots_of(codes: &[Code]) -> usize {
    let slots = |(_, name, _, number): &Code| match *name {
        "save" | "save xmm" => 2,
        "allocate" if *number > 128 => 2,
        _ => 1,
    };
    codes.iter().map(slots).sum()
}

fn own_code(offset: u8, operation: Operation) -> Code {
    let (name, register, number) = match operation {
        Operation::PushNonvol(register) => ("push", register.number(), 0),
        Operation::Alloc(size) => ("allocate", 0, size.into()),
        Operation::SetFpreg => ("set frame register", 0, 0),
        Operation::SaveNonvol(register, at) => ("save", register.number(), at.into()),
        Operation::SaveXmm128(register, at) => ("save xmm", register, at.into()),
        Operation::PushMachframe(has_code) => ("machine frame", 0, has_code.into()),
        Operation::Epilog | Operation::Spare | Operation::SetFpregLarge(_) => ("other", 0, 0),
    };
    (offset, name, register, number)
}

fn code_of(
    info: &theirs::UnwindInfo<'_>,
    (offset, operation): (u8, theirs::UnwindOperation),
) -> Option<Code> {
    use theirs::UnwindOperation as Their;
    // Offsets can only be asked for as addresses.
    let base = 1 << 40;
    let frame = if info.frame_register().is_some() { info.frame_register_offset() } else { 0 };
    let at = |offset| info.resolve_offset(|_| base, offset) + u64::from(frame) - base;
    let (name, register, number) = match operation {
        Their::PopNonVolatile(register) => ("push", register as u8, 0),
        Their::UnStackAlloc(size) => ("allocate", 0, size.into()),
        Their::RestoreSPFromFP => ("set frame register", 0, 0),
        Their::ReadNonVolatile(register, offset) => ("save", register as u8, at(offset)),
        Their::ReadXMM(register, offset) => ("save xmm", register as u8, at(offset)),
        Their::PopMachineFrame { error_code } => ("machine frame", 0, error_code.into()),
        Their::EpilogInformation(_) => return None,
    };
    Some((offset, name, register, number))
}
