//! The code map of the process.

use crate::lifetimes::Lifetimes;
use crate::lock::lock;
use crate::names;
use crate::native_images::{NativeImages, loaded};
use crate::os::{self, OwnProcess};
use crate::profile::Label;
use clr_com::{ModuleId, RuntimeInfo};
use clr_unwind::{CodeMap, ImageIdentity, Memory, PeImage, RegionKind, SharedCodeMap};
use clr_walker::jitted::contracts::ExecutionManager;
use clr_walker::jitted::{CodeHeaderLayout, JittedMethods};
use clr_walker::profiling::{CodeRange, FunctionId, ModuleSource, ProfilerInfo, ReJitId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Arguments;
use std::ops::Deref;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of bodies of one function that are looked at.
const MOST_BODIES: usize = 64;

/// A function that gets messages for people.
pub type Log = fn(Arguments<'_>);

/// The code in the process, kept up to date by callbacks and by looking at the loader's list.
#[derive(Debug)]
pub struct Code {
    native: NativeImages,
    /// `None` for a runtime whose code headers are not known.
    methods: Option<Mutex<JittedMethods>>,
    /// Ready-to-run images: base (VA) to module.
    managed: Mutex<BTreeMap<u64, ModuleId>>,
    lifetimes: Lifetimes,
    /// Number of times that the map has got more code.
    changes: AtomicU64,
    log: Log,
}

impl ModuleSource for Code {
    fn code_map(&self) -> impl Deref<Target = CodeMap<'_>> {
        self.map().read()
    }
}

impl Code {
    /// Makes the map of a runtime with this version, with the images that are loaded now. `log` gets what was refused.
    pub fn new([major, minor, _]: [u16; 3], log: Log) -> Self {
        // .NET Core 3.1 says 4.0, as .NET Framework 4 does.
        let (major, minor) = if major == 4 { (3, 1) } else { (major, minor) };
        let stated = || Some(*ExecutionManager::new(&os::contracts()?).ok()?.code_header());
        let layout = CodeHeaderLayout::of_version(major, minor).or_else(stated);
        if layout.is_none() {
            log(format_args!("jitted code of a runtime {major}.{minor} is not known"));
        }
        let methods = layout.map(|layout| Mutex::new(JittedMethods::new(layout, os::CONVENTION)));
        let (managed, lifetimes, changes) = Default::default();
        Self { native: NativeImages::new(log), methods, managed, lifetimes, changes, log }
    }

    const fn map(&self) -> &SharedCodeMap<'static> {
        self.native.map()
    }

    /// Adds the bodies of a function that are not in the map yet: in JITCompilationFinished and the
    /// like.
    pub fn compiled(&self, info: &RuntimeInfo, function: FunctionId) {
        if !self.lifetimes.has_modules(function) {
            self.lifetimes.set_modules(function, names::modules(info, function));
        }
        let Some(methods) = &self.methods else { return };
        let mut starts = [0; MOST_BODIES];
        let found = info.get_native_code_starts(function, ReJitId(0), &mut starts).unwrap_or(0);
        let mut starts: BTreeSet<u64> = starts.into_iter().take(found as usize).collect();
        let mut newest = [CodeRange { start: 0, size: 0 }];
        if info.get_code_info2(function, &mut newest).is_ok() {
            starts.insert(newest[0].start);
        }
        for start in starts {
            let mut range = [CodeRange { start: 0, size: 0 }];
            let size = match info.get_code_info4(start, &mut range) {
                Ok(1) => Some(range[0].size as u32),
                _ => None,
            };
            let mut methods = lock(methods);
            if methods.bodies(function.0).contains(&start) {
                continue;
            }
            let added = self.map().update(|map| {
                // Precompiled code is in an image.
                if map.find(start).is_some_and(|(region, _)| region.kind() == RegionKind::Image) {
                    return Ok(());
                }
                methods.compiled(map, &OwnProcess, function.0, start, size)
            });
            match added {
                Ok(()) => self.has_more(),
                Err(error) => {
                    (self.log)(format_args!("function {:#x} at {start:#x}: {error}", function.0));
                }
            }
        }
    }

    /// Does the same for a dynamic method, whose name nobody can ask for once it has ended: in
    /// DynamicMethodJITCompilationFinished.
    pub fn dynamic_compiled(&self, info: &RuntimeInfo, function: FunctionId) {
        self.lifetimes.begin_dynamic(function, names::label_of(info, function));
        self.compiled(info, function);
    }

    fn has_more(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the number of times that the map has got more code.
    #[cfg(target_os = "linux")]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Returns the starts of the bodies of a function (VA).
    pub fn bodies(&self, function: FunctionId) -> Vec<u64> {
        let Some(methods) = &self.methods else { return Vec::new() };
        lock(methods).bodies(function.0).to_vec()
    }

    /// Removes the bodies of a function, before the runtime frees them: in FunctionUnloadStarted.
    pub fn unloaded(&self, function: FunctionId) {
        self.ended(function, false);
    }

    /// Does the same for a dynamic method, in DynamicMethodUnloaded.
    pub fn dynamic_unloaded(&self, function: FunctionId) {
        self.ended(function, true);
    }

    fn ended(&self, function: FunctionId, is_dynamic: bool) {
        let starts = self.bodies(function);
        let bodies = {
            let map = self.map().read();
            let region = |start: &u64| map.find(*start).map(|(region, _)| region);
            let bodies = starts.iter().filter_map(region);
            bodies.map(|region| region.start()..region.last() + 1).collect()
        };
        self.lifetimes.end(function, is_dynamic, bodies);
        if let Some(methods) = &self.methods {
            let mut methods = lock(methods);
            self.map().update(|map| methods.unloaded(map, function.0));
        }
    }

    /// Returns true if the method that was at an address (VA) at a time ([`Sample::taken_at`](crate::Sample::taken_at)) has
    /// ended since. The runtime must not be asked about it.
    pub fn has_ended(&self, address: u64, time: u64) -> bool {
        self.lifetimes.ended_at(address, time).is_some()
    }

    /// Returns what is known of methods that have ended.
    pub(crate) const fn lifetimes(&self) -> &Lifetimes {
        &self.lifetimes
    }

    /// Adds the ready-to-run code of a module, in ModuleLoadFinished.
    pub fn module_loaded(&self, info: &RuntimeInfo, module: ModuleId) {
        let Ok((base, path)) = info.get_module_info(module) else { return };
        if base == 0 {
            return;
        }
        let Some(bytes) = os::file_bytes(&path) else { return };
        let Ok(image) = PeImage::parse(bytes) else { return };
        if image.functions().is_empty() {
            return;
        }
        if !is_loaded(&image, base) {
            (self.log)(format_args!("{path} is not at {base:#x} as an image"));
            return;
        }
        if loaded(base).is_some_and(|loaded| ImageIdentity::of_file(bytes) != Some(loaded)) {
            (self.log)(format_args!("{path} is another build than the one in memory"));
            return;
        }
        let added = self.map().update(|map| map.insert_image(base, &image));
        match added {
            Ok(()) => {
                lock(&self.managed).insert(base, module);
                self.has_more();
            }
            Err(error) => (self.log)(format_args!("{path}: {error}")),
        }
    }

    /// Returns the compiled methods that end with a module, which the runtime does not announce one by one.
    pub fn methods(&self, module: ModuleId) -> Vec<FunctionId> {
        self.lifetimes.methods(module)
    }

    /// Removes the code of a module, in ModuleUnloadStarted: ready-to-run code, and the methods that end with it.
    pub fn module_unloaded(&self, module: ModuleId) {
        for function in self.methods(module) {
            self.ended(function, false);
        }
        let gone: Vec<u64> = lock(&self.managed)
            .extract_if(.., |_, id| *id == module)
            .map(|(base, _)| base)
            .collect();
        for base in gone {
            self.map().update(|map| map.remove(base));
        }
    }

    /// [Looks](NativeImages::look) for native images that were loaded or unloaded since the last look.
    pub fn look_for_images(&self) {
        if self.native.look() {
            self.has_more();
        }
    }

    /// Returns `file+offset` for an address in a native image, else the address.
    pub fn describe(&self, address: u64) -> String {
        self.native.describe(address)
    }

    /// Returns true if the map has code at `address` (VA).
    pub fn knows(&self, address: u64) -> bool {
        self.map().read().find(address).is_some()
    }

    /// Returns a [label](NativeImages::label) for an address in a native image.
    pub fn label(&self, address: u64) -> Label {
        self.native.label(address)
    }

    /// Returns the bases of the ready-to-run images (VA), ascending.
    pub fn managed_images(&self) -> Vec<u64> {
        lock(&self.managed).keys().copied().collect()
    }

    /// Returns the path of the ready-to-run image at `base` (VA).
    pub fn managed_path(&self, info: &RuntimeInfo, base: u64) -> Option<String> {
        let module = lock(&self.managed).get(&base).copied();
        info.get_module_info(module?).ok().map(|(_, path)| path)
    }

    /// Returns the base (VA) and the path of the native image with `address` (VA).
    pub fn image_at(&self, address: u64) -> Option<(u64, String)> {
        self.native.at(address)
    }
}

/// Returns true if the image lies at `base` (VA) section by section: the code of a function is at
/// its RVA. A runtime may also have the file itself in memory, as it is on disk.
fn is_loaded(image: &PeImage<'_>, base: u64) -> bool {
    let functions = image.functions();
    functions.iter().nth(functions.len() / 2).is_some_and(|function| {
        let mut here = [0; 8];
        let file = image.sections().bytes_from(function.begin).and_then(<[u8]>::first_chunk::<8>);
        let read = OwnProcess.read(base.wrapping_add(function.begin.into()), &mut here);
        read.is_ok() && file == Some(&here)
    })
}
