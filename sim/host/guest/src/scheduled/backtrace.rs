//! Stacks of the guest's threads: unwound by clr-unwind, named by symbols and by DWARF's line tables.

use super::system::{self, Image, LoadedObject, OwnMemory};
use addr2line::Loader;
use clr_unwind::{CodeMap, Frame, Position, Registers, Symbols, Unwinder};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

/// Maximum number of frames of a stack.
const FRAMES: u32 = 200;

/// The origin of a loaded object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The library, or one that came with it and is not of the system.
    Guest,
    /// A library of the system or of a language.
    System,
    /// This tool, and what it uses.
    Tool,
}

/// Beginnings of the paths of code that comes with a language, and not from the guest: templates and inlined
/// functions, which stand for nothing that the guest's authors have written.
const OF_LANGUAGES: [&str; 3] = ["/usr/include/", "/usr/lib/", "/rustc/"];

/// An object with code.
struct Object {
    loaded: LoadedObject,
    origin: Origin,
    image: Image<'static>,
    /// The symbols of the image, once a frame is in it.
    symbols: OnceCell<Symbols<'static>>,
}

/// The objects of this process.
#[derive(Default)]
struct Objects {
    map: CodeMap<'static>,
    objects: Vec<Object>,
}

thread_local! {
    /// The objects, on the scheduler's thread.
    static OBJECTS: RefCell<Objects> = RefCell::default();
}

/// Notes an object. `is_guests`: it was loaded with the guest.
pub(super) fn note(loaded: &LoadedObject, is_guests: bool) {
    let path = loaded.path();
    let is_system = system::is_of_system(&path);
    let origin = match is_guests {
        _ if is_system => Origin::System,
        true => Origin::Guest,
        false => Origin::Tool,
    };
    // An object without a file, such as the kernel's, is code that no walk goes through.
    let Some(bytes) = system::map_file(&path) else { return };
    let Ok(image) = Image::parse(bytes) else { return };
    OBJECTS.with_borrow_mut(|objects| {
        // What was noted before is refused as an overlap.
        if system::insert(&mut objects.map, loaded, &image) {
            objects.objects.push(Object {
                loaded: loaded.clone(),
                origin,
                image,
                symbols: OnceCell::new(),
            });
        }
    });
}

/// A frame, with the index of its object.
struct Found {
    /// An address in the code that the frame executes, or has called from (VA).
    address: u64,
    object: Option<usize>,
}

impl Objects {
    /// Returns the frames of a stack, the most recent one first, up to the first for which `is_last` is true.
    fn walk(&self, registers: &Registers, is_last: impl Fn(&Found) -> bool) -> Vec<Found> {
        let frames = Unwinder::new(&self.map).walk(registers, &OwnMemory).with_limit(FRAMES);
        let found = |frame: Frame| {
            let back = u64::from(frame.position == Position::ReturnAddress);
            let address = frame.registers.rip.wrapping_sub(back);
            let is_in = |object: &Object| object.loaded.code().contains(&address);
            Found { address, object: self.objects.iter().position(is_in) }
        };
        let mut walked = Vec::new();
        for frame in frames.map_while(Result::ok).map(found) {
            let ends = is_last(&frame);
            walked.push(frame);
            if ends {
                break;
            }
        }
        walked
    }

    /// Returns the frames of a stack up to the most recent one of the guest. Those of its callers are not asked for.
    fn walk_to_guest(&self, registers: &Registers) -> Vec<Found> {
        self.walk(registers, |frame| self.is_guests(frame))
    }

    fn is_guests(&self, found: &Found) -> bool {
        self.origin(found) == Some(Origin::Guest)
    }

    fn origin(&self, found: &Found) -> Option<Origin> {
        found.object.and_then(|at| self.objects.get(at)).map(|object| object.origin)
    }

    /// Returns the name of the function that a frame executes. Functions of stripped objects have none: the name
    /// before them is another function's.
    fn symbol(&self, found: &Found) -> Option<String> {
        let object = self.objects.get(found.object?)?;
        let rva = u32::try_from(found.address.checked_sub(object.loaded.start())?).ok()?;
        let symbols = object.symbols.get_or_init(|| object.image.symbols());
        let (name, distance) = symbols.find(rva)?;
        let start = found.address - u64::from(distance);
        self.start_of(found).is_none_or(|function| function <= start).then(|| demangled(name))
    }

    /// Returns the start of the function that a frame executes (VA).
    fn start_of(&self, found: &Found) -> Option<u64> {
        system::function_start(&self.map, found.address)
    }
}

/// Returns a function's name as its source has it, without its parameters.
fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    let symbol = cpp_demangle::Symbol::new(name.as_bytes()).ok();
    symbol
        .and_then(|symbol| symbol.demangle_with_options(&options).ok())
        .unwrap_or_else(|| name.to_owned())
}

/// Returns the guest's function that a stopped thread is in, or was called from last; and that it is about to
/// end the process by `std::terminate`, if it is.
pub(super) fn place(registers: &Registers) -> (Option<String>, bool) {
    OBJECTS.with_borrow(|objects| {
        let frames = objects.walk_to_guest(registers);
        let terminates = frames
            .iter()
            .take_while(|frame| !objects.is_guests(frame))
            .filter_map(|frame| objects.symbol(frame))
            .any(|name| name == "std::terminate" || name == "__cxxabiv1::__terminate");
        let own = frames.last().filter(|frame| objects.is_guests(frame));
        (own.and_then(|frame| objects.symbol(frame)), terminates)
    })
}

/// Returns the start of the guest's function that a stopped thread is in, or was called from last, relative to its
/// library; 0 if there is none.
pub(super) fn function(registers: &Registers) -> u64 {
    OBJECTS.with_borrow(|objects| {
        let frames = objects.walk_to_guest(registers);
        let own = frames.last().filter(|frame| objects.is_guests(frame));
        let start = own.and_then(|frame| {
            let object = objects.objects.get(frame.object?)?;
            objects.start_of(frame)?.checked_sub(object.loaded.start())
        });
        start.unwrap_or_default()
    })
}

/// Returns the frames of a stopped thread down to its oldest one of the guest, the most recent one first.
/// `imports` names the functions of this tool that imports lead to, by address (VA).
pub(super) fn frames(registers: &Registers, imports: &BTreeMap<u64, &str>) -> Vec<String> {
    OBJECTS.with_borrow(|objects| {
        let mut frames = objects.walk(registers, |_| false);
        let is_guests = |found: &Found| objects.is_guests(found);
        frames.truncate(frames.iter().rposition(is_guests).map_or(0, |last| last + 1));
        let mut loaders = BTreeMap::new();
        let (mut names, mut has_own): (Vec<String>, bool) = (Vec::new(), false);
        let runs = frames.chunk_by(|one, next| {
            objects.origin(one) == Some(Origin::Tool) && objects.origin(next) == Some(Origin::Tool)
        });
        for run in runs {
            let Some(first) = run.first() else { continue };
            if objects.origin(first) == Some(Origin::Tool) {
                if !has_own {
                    // The wait of the tool itself.
                    names.clear();
                }
                let import =
                    run.iter().rev().find_map(|found| imports.get(&objects.start_of(found)?));
                names.push(import.map_or("the runtime", |name| name).to_owned());
            } else {
                has_own |= is_guests(first);
                names.extend(objects.names(first, &mut loaders));
            }
        }
        names
    })
}

impl Objects {
    /// Returns the names of a frame: of inlined functions, too, but none of a language's own code.
    fn names(&self, found: &Found, loaders: &mut BTreeMap<usize, Option<Loader>>) -> Vec<String> {
        let unknown = || format!("{:#x}", found.address);
        let Some((at, object)) = found.object.and_then(|at| Some((at, self.objects.get(at)?)))
        else {
            return vec![unknown()];
        };
        if object.origin == Origin::System {
            return self.symbol(found).into_iter().collect();
        }
        let name = || self.symbol(found).unwrap_or_else(unknown);
        let loader = loaders.entry(at).or_insert_with(|| Loader::new(object.loaded.path()).ok());
        let (mut names, mut is_of_language) = (Vec::new(), false);
        let probe = found.address.wrapping_sub(system::bias(&object.loaded, &object.image));
        if let Some(mut inlined) = loader.as_ref().and_then(|it| it.find_frames(probe).ok()) {
            while let Ok(Some(frame)) = inlined.next() {
                let function = frame.function.as_ref().and_then(|it| it.raw_name().ok());
                let function = function.map_or_else(name, |raw| demangled(&raw));
                let location = frame.location.and_then(|it| Some((it.file?, it.line)));
                if location
                    .is_some_and(|(file, _)| OF_LANGUAGES.iter().any(|it| file.starts_with(it)))
                {
                    is_of_language = true;
                    continue;
                }
                names.push(match location {
                    Some((file, Some(line))) => format!("{function} ({}:{line})", base_name(file)),
                    _ => function,
                });
            }
        }
        if names.is_empty() && !is_of_language {
            names.push(name());
        }
        names
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
