//! The function table of an image, or its call frame information.

use crate::args::ShowArgs;
use crate::input::Source;
use crate::render::cfi;
use crate::render::code::{self, Code};
use crate::render::console::{BAD, Console, HEAD};
use crate::render::error::CliError;
use crate::render::json;
use crate::render::unwind_data::Function;
use clr_unwind::cfi::CfiTable;
use clr_unwind::{CodeMap, CodeRegion, ElfImage, RuntimeFunction, TargetOs};
use serde::Serialize;
use std::io::{self, Write};
use std::ops::Range;

/// Magic bytes of an ELF image.
const ELF: &[u8] = b"\x7FELF";
/// Magic bytes of a PE image.
const PE: &[u8] = b"MZ";

/// Returns true if a file begins as an image does.
pub(super) fn is_image(bytes: &[u8]) -> bool {
    bytes.starts_with(ELF) || bytes.starts_with(PE)
}

/// Prints the functions of an image that `args` name.
pub(super) fn print(
    image: &Source,
    bytes: &[u8],
    args: &ShowArgs,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    let listing = Listing { image, args };
    if bytes.starts_with(ELF) { listing.elf(bytes, console) } else { listing.pe(bytes, console) }
}

/// The functions of an image that are wanted.
struct Listing<'l> {
    image: &'l Source,
    args: &'l ShowArgs,
}

impl Listing<'_> {
    /// Prints the function table of a PE image.
    fn pe(&self, bytes: &[u8], console: &mut Console<'_>) -> Result<(), CliError> {
        let pe = self.image.parse_image(bytes)?;
        let base = pe.preferred_base();
        let mut map = CodeMap::new();
        map.insert_image(base, &pe).map_err(|error| self.image.error(error))?;
        let code = Code { map: &map, symbols: pe.symbols(), image: self.image.name.clone() };
        let Some(region) = map.regions().next() else {
            return Ok(());
        };
        let is_wanted = |entry: &RuntimeFunction| {
            code.is_meant(region, &(entry.begin..entry.end), self.wanted())
        };
        let entries: Vec<_> = pe.functions().iter().filter(is_wanted).collect();
        self.check_found(entries.len(), "function entry", "are")?;
        let system = match pe.target_os() {
            TargetOs::Windows => String::new(),
            // A ready-to-run image.
            system => format!(", code for {}", system.name()),
        };
        let count = pe.functions().len();
        self.head(base, pe.size(), &format!("{count} function entries{system}"), console)?;
        // Chain parents have entries of their own, or are printed with an entry that has them.
        let functions = entries.into_iter().filter_map(|entry| {
            let chain = code::chain(region, entry);
            Some(Function::new(&code, region, chain.first()?))
        });
        self.functions(functions, |function, out| function.write(out, ""), console)
    }

    /// Prints the call frame information of an ELF image.
    fn elf(&self, bytes: &[u8], console: &mut Console<'_>) -> Result<(), CliError> {
        let elf = ElfImage::parse(bytes).map_err(|error| self.image.error(error))?;
        let base = elf.preferred_base();
        let mut map = CodeMap::new();
        let region = CodeRegion::elf(base, &elf).map_err(|error| self.image.error(error))?;
        // Compiled beforehand, so that its problems are known.
        let table = CfiTable::new(&elf.cfi(), elf.sections());
        map.insert(region.with_cfi(table)).map_err(|error| self.image.error(error))?;
        let code = Code { map: &map, symbols: elf.symbols(), image: self.image.name.clone() };
        let Some((region, table)) = map.regions().next().and_then(|one| Some((one, one.cfi()?)))
        else {
            return Ok(());
        };
        let is_wanted = |range: &Range<u32>| code.is_meant(region, range, self.wanted());
        let ranges: Vec<_> = table.functions().filter(is_wanted).collect();
        self.check_found(ranges.len(), "call frame information", "is")?;
        let count = table.functions().count();
        let what = format!("{count} functions with call frame information");
        self.head(base, elf.size(), &what, console)?;
        if let Some(problem) = table.first_problem().filter(|_| !self.args.json.wanted) {
            let count = table.problems();
            let more = if count == 1 { "" } else { ", the first of them" };
            writeln!(console.out, "{BAD}{count} cannot be used{BAD:#}{more}: {problem}")?;
        }
        let functions = ranges.iter().map(|range| cfi::Function::new(&code, region, table, range));
        self.functions(functions, |function, out| function.write(out), console)
    }

    fn wanted(&self) -> Option<&str> {
        self.args.function.wanted.as_deref()
    }

    /// Checks that the wanted function was found.
    fn check_found(&self, found: usize, what: &str, are: &str) -> Result<(), CliError> {
        match self.wanted().filter(|_| found == 0) {
            None => Ok(()),
            Some(function) => Err(self.image.error(format_args!(
                "no {what} for --function {function}; without it all {are} printed"
            ))),
        }
    }

    fn head(
        &self,
        base: u64,
        size: u32,
        what: &str,
        console: &mut Console<'_>,
    ) -> Result<(), CliError> {
        if !self.args.json.wanted {
            let name = &self.image.name;
            let place = format_args!("preferred base {base:#x}, size {size:#x}");
            writeln!(console.out, "{HEAD}{name}{HEAD:#}: {place}, {what}")?;
        }
        Ok(())
    }

    fn functions<F: Serialize>(
        &self,
        functions: impl Iterator<Item = F>,
        write: impl Fn(&F, &mut dyn Write) -> io::Result<()>,
        console: &mut Console<'_>,
    ) -> Result<(), CliError> {
        for function in functions {
            if self.args.json.wanted {
                json::write_json(&function, console)?;
            } else {
                writeln!(console.out)?;
                write(&function, console.out)?;
            }
        }
        Ok(())
    }
}
