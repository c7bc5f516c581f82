//! `clrsim emit`: a program's images as files, for other tools.

use crate::PASSED;
use crate::args::EmitArgs;
use crate::input::Source;
use crate::input::program::{self, Names, ProgramFixture};
use crate::output::Replacing;
use crate::render::console::Console;
use crate::render::error::CliError;
use crate::render::json::escaped;
use crate::render::unwind_data::Hex;
use clr_codegen::{CallingConvention, CodeKind, FunctionIndex, LinkedProgram, Unit};
use clr_scenario::Keyword as _;
use serde::Serialize;
use std::io;

/// Size of a RUNTIME_FUNCTION.
const ENTRY: usize = 12;

/// The description of the JIT's heap, without its bytes.
#[derive(Serialize)]
struct Heap {
    /// Address of its first byte (VA).
    base: Hex,
    size: Hex,
    runtime_functions: Vec<RuntimeFunction>,
    /// A word for each 256 bytes of the heap: where methods start (contract §8.4).
    nibble_map: Vec<Hex>,
    /// The indirection cells, which lie outside the heap.
    cells: Cells,
}

#[derive(Serialize)]
struct Cells {
    address: Hex,
    values: Vec<Hex>,
}

/// A RUNTIME_FUNCTION as offsets from the base.
#[derive(Serialize)]
struct RuntimeFunction {
    begin: Hex,
    end: Hex,
    unwind_info: Hex,
}

/// The description of a program's functions and instructions.
#[derive(Serialize)]
struct ProgramMap<'p> {
    convention: &'static str,
    images: Vec<ImageMap>,
    functions: Vec<FunctionMap<'p>>,
}

#[derive(Serialize)]
struct ImageMap {
    file: &'static str,
    kind: &'static str,
    base: Hex,
}

#[derive(Serialize)]
struct FunctionMap<'p> {
    name: &'p str,
    kind: &'static str,
    address: Hex,
    parts: Vec<PartMap>,
    instructions: Vec<InstructionMap>,
}

/// A range with a function entry of its own.
#[derive(Serialize)]
struct PartMap {
    begin: Hex,
    end: Hex,
    /// Begin of the part at the root of the chain.
    root: Hex,
    is_entry: bool,
}

#[derive(Serialize)]
struct InstructionMap {
    address: Hex,
    len: u8,
    role: &'static str,
    /// The mistake of Windows' rules if this instruction is next.
    windows_mistake: Option<&'static str>,
}

/// Writes the images of the program that `args` name and returns the exit code.
pub(crate) fn emit(args: &EmitArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = Source::find(&args.scenario.path)?;
    let fixture = ProgramFixture::read(&source)?;
    let scenario = &fixture.scenario;
    let linked = fixture.link(&source, "emit")?;
    let names = Names { scenario, linked: &linked };
    let mut files = Vec::new();
    for unit in &linked.units {
        files.push((file_name(unit.kind, scenario.program.convention), unit.bytes.clone()));
        if unit.kind == CodeKind::Jit {
            files.push(("jit.json", json(&heap(unit))?));
        }
    }
    files.push(("program.json", json(&map(names))?));
    let folder = &args.output;
    let path_of = |name: &str| crate::input::slashed(&folder.join(name));
    for (name, _) in &files {
        Replacing::check_is_not(&folder.join(name), &source)?;
    }
    args.replacing.write_into(folder, &files)?;
    for (name, bytes) in &files {
        writeln!(console.out, "{} ({} bytes)", path_of(name), bytes.len())?;
    }
    Ok(PASSED)
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, CliError> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
    Ok((escaped(&text) + "\n").into_bytes())
}

const fn file_name(kind: CodeKind, convention: CallingConvention) -> &'static str {
    match kind.image_name(convention) {
        Some(name) => name,
        None => "jit.bin",
    }
}

fn heap(unit: &Unit) -> Heap {
    let entries = unit.runtime_functions.chunks_exact(ENTRY);
    let word = |bytes: &[u8], at: usize| -> Hex {
        let word = bytes.get(at..).and_then(<[u8]>::first_chunk).copied();
        u32::from_le_bytes(word.unwrap_or_default()).into()
    };
    let cells = unit.cells.1.chunks_exact(8).map(|cell| {
        let cell = cell.first_chunk().copied().unwrap_or_default();
        u64::from_le_bytes(cell).into()
    });
    Heap {
        base: unit.base.into(),
        size: (unit.bytes.len() as u64).into(),
        runtime_functions: entries
            .map(|entry| RuntimeFunction {
                begin: word(entry, 0),
                end: word(entry, 4),
                unwind_info: word(entry, 8),
            })
            .collect(),
        nibble_map: unit.nibble_map.words().iter().map(|word| Hex::from(*word)).collect(),
        cells: Cells { address: unit.cells.0.into(), values: cells.collect() },
    }
}

fn map(names: Names<'_>) -> ProgramMap<'_> {
    let program = &names.scenario.program;
    let linked: &LinkedProgram = names.linked;
    let functions = program.functions.iter().zip(&linked.entries).zip(0..);
    ProgramMap {
        convention: program.convention.word(),
        images: linked
            .units
            .iter()
            .map(|unit| ImageMap {
                file: file_name(unit.kind, program.convention),
                kind: unit.kind.word(),
                base: unit.base.into(),
            })
            .collect(),
        functions: functions
            .map(|((function, address), index)| FunctionMap {
                name: &function.name,
                kind: function.kind.word(),
                address: (*address).into(),
                parts: parts(linked, FunctionIndex(index)),
                instructions: instructions(linked, FunctionIndex(index)),
            })
            .collect(),
    }
}

fn parts(linked: &LinkedProgram, id: FunctionIndex) -> Vec<PartMap> {
    let own = linked.parts.iter().filter(|part| part.function == id);
    own.map(|part| PartMap {
        begin: part.begin.into(),
        end: part.end.into(),
        root: part.root.into(),
        is_entry: part.is_entry,
    })
    .collect()
}

fn instructions(linked: &LinkedProgram, id: FunctionIndex) -> Vec<InstructionMap> {
    let own = linked.instructions.iter().filter(|placed| placed.function == Some(id));
    own.map(|placed| InstructionMap {
        address: placed.address.into(),
        len: placed.len,
        role: program::role(placed.role),
        windows_mistake: placed.mistake.map(program::mistake),
    })
    .collect()
}
