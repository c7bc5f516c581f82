//! `clrsim dump`: prints the function table of an image, or its call frame information.

use crate::PASSED;
use crate::args::DumpArgs;
use crate::input::Source;
use crate::render::cfi;
use crate::render::code::{self, Code};
use crate::render::console::{BAD, Console, HEAD};
use crate::render::error::CliError;
use crate::render::json;
use crate::render::unwind_data::Function;
use clr_unwind::cfi::CfiTable;
use clr_unwind::{CodeMap, CodeRegion, ElfImage, RuntimeFunction, TargetOs};
use std::ops::Range;

/// Prints the entries that `args` name and returns the exit code.
pub(crate) fn dump(args: &DumpArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let image = Source::find(&args.image)?;
    let bytes = image.read()?;
    if bytes.starts_with(ELF) {
        return dump_elf(&image, &bytes, args, console);
    }
    let pe = image.parse_image(&bytes)?;
    let base = pe.preferred_base();
    let mut map = CodeMap::new();
    map.insert_image(base, &pe).map_err(|error| image.error(error))?;
    let code = Code { map: &map, symbols: pe.symbols(), image: image.name.clone() };
    let Some(region) = map.regions().next() else {
        return Ok(PASSED);
    };
    let is_wanted = |entry: &RuntimeFunction| {
        code.is_meant(region, &(entry.begin..entry.end), args.function.as_deref())
    };
    let mut entries = pe.functions().iter().filter(is_wanted).peekable();
    if let Some(function) = &args.function
        && entries.peek().is_none()
    {
        return Err(image.error(format_args!(
            "no function entry for --function {function}; without it all are printed"
        )));
    }
    if !args.json.wanted {
        let system = match pe.target_os() {
            TargetOs::Windows => String::new(),
            // A ready-to-run image.
            system => format!(", code for {}", system.name()),
        };
        writeln!(
            console.out,
            "{HEAD}{}{HEAD:#}: preferred base {base:#x}, size {:#x}, {} function entries{system}",
            image.name,
            pe.size(),
            pe.functions().len()
        )?;
    }
    for entry in entries {
        // Chain parents have entries of their own, or are printed with an entry that has them.
        if let Some(link) = code::chain(region, entry).first() {
            let function = Function::new(&code, region, link);
            if args.json.wanted {
                json::write_json(&function, console)?;
            } else {
                writeln!(console.out)?;
                function.write(console.out, "")?;
            }
        }
    }
    Ok(PASSED)
}

/// Prints the call frame information of an ELF image.
fn dump_elf(
    image: &Source,
    bytes: &[u8],
    args: &DumpArgs,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let elf = ElfImage::parse(bytes).map_err(|error| image.error(error))?;
    let base = elf.preferred_base();
    let mut map = CodeMap::new();
    let region = CodeRegion::elf(base, &elf).map_err(|error| image.error(error))?;
    // Compiled beforehand, so that its problems are known.
    let table = CfiTable::new(&elf.cfi(), elf.sections());
    map.insert(region.with_cfi(table)).map_err(|error| image.error(error))?;
    let code = Code { map: &map, symbols: elf.symbols(), image: image.name.clone() };
    let Some((region, table)) = map.regions().next().and_then(|one| Some((one, one.cfi()?))) else {
        return Ok(PASSED);
    };
    let is_wanted = |range: &Range<u32>| code.is_meant(region, range, args.function.as_deref());
    let mut functions = table.functions().filter(is_wanted).peekable();
    if let Some(function) = &args.function
        && functions.peek().is_none()
    {
        return Err(image.error(format_args!(
            "no call frame information for --function {function}; without it all is printed"
        )));
    }
    if !args.json.wanted {
        let (size, count) = (elf.size(), table.functions().count());
        writeln!(
            console.out,
            "{HEAD}{}{HEAD:#}: preferred base {base:#x}, size {size:#x}, {count} functions with call \
             frame information",
            image.name,
        )?;
        if let Some(problem) = table.first_problem() {
            let count = table.problems();
            let more = if count == 1 { "" } else { ", the first of them" };
            writeln!(console.out, "{BAD}{count} cannot be used{BAD:#}{more}: {problem}")?;
        }
    }
    for range in functions {
        let function = cfi::Function::new(&code, region, table, &range);
        if args.json.wanted {
            json::write_json(&function, console)?;
        } else {
            writeln!(console.out)?;
            function.write(console.out)?;
        }
    }
    Ok(PASSED)
}

/// Magic bytes of an ELF image.
const ELF: &[u8] = b"\x7FELF";
