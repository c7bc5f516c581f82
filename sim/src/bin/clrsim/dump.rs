//! `clrsim dump`: the function table of an image.

use crate::args::DumpArgs;
use crate::code::{self, Code};
use crate::console::{Console, HEAD, Trouble};
use crate::input::Source;
use crate::unwind_data::Function;
use crate::{PASSED, report};
use clr_walker::code_map::{CodeMap, CodeRegion};
use clr_walker::image::RuntimeFunction;

/// Prints the entries that `args` name; the exit code.
pub(crate) fn dump(args: &DumpArgs, console: &mut Console<'_>) -> Result<u8, Trouble> {
    let image = Source::find(&args.image)?;
    let bytes = image.read()?;
    let pe = image.parse_image(&bytes)?;
    let base = pe.preferred_base();
    let mut map = CodeMap::new();
    map.insert_image(base, &pe).map_err(|error| image.trouble(error))?;
    let code = Code { map: &map, symbols: pe.symbols(), image: image.name.clone() };
    let Some(region) = map.regions().first() else {
        return Ok(PASSED);
    };
    let wanted = Wanted::new(args.function.as_deref());
    let mut entries =
        pe.functions().iter().filter(|entry| wanted.is_met_by(&code, region, *entry)).peekable();
    if let Some(function) = &args.function
        && entries.peek().is_none()
    {
        return Err(image.trouble(format_args!(
            "no function entry for --function {function}; without it all are printed"
        )));
    }
    if !args.json {
        writeln!(
            console.out,
            "{HEAD}{}{HEAD:#}: preferred base {base:#x}, size {:#x}, {} function entries",
            image.name,
            pe.size(),
            pe.functions().len()
        )?;
    }
    for entry in entries {
        // The parents have entries, or are told by those that have.
        if let Some(link) = code::chain(region, entry).first() {
            let function = Function::new(&code, region, link);
            if args.json {
                report::write_json(&function, console)?;
            } else {
                writeln!(console.out)?;
                function.write(console.out, "")?;
            }
        }
    }
    Ok(PASSED)
}

/// Which functions are asked for.
enum Wanted<'t> {
    All,
    Named(&'t str),
    At(u32),
}

impl<'t> Wanted<'t> {
    fn new(function: Option<&'t str>) -> Self {
        let Some(function) = function else {
            return Self::All;
        };
        let rva = function.strip_prefix("0x").map(|hex| u32::from_str_radix(hex, 16));
        match rva {
            Some(Ok(rva)) => Self::At(rva),
            _ => Self::Named(function),
        }
    }

    fn is_met_by<'a>(
        &self,
        code: &Code<'_, 'a>,
        region: &CodeRegion<'a>,
        entry: RuntimeFunction,
    ) -> bool {
        match self {
            Self::All => true,
            Self::Named(name) => code.locate(region, entry.begin).is_in(name),
            Self::At(rva) => entry.contains(*rva),
        }
    }
}
