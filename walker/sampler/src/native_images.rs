//! The native images of the process in a code map.

use crate::code::Log;
use crate::lock::lock;
use crate::os::{self, OwnProcess};
use crate::profile::Label;
#[cfg(target_os = "linux")]
use clr_unwind::ElfImage;
use clr_unwind::{CodeMap, ImageIdentity, ImageLayout, SharedCodeMap};
use clr_walker::profiling::ModuleSource;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Mutex;

/// A code map with the native images of the process: those that the loader lists, and on Linux the kernel's. All that
/// the walker needs of a process without a runtime, or before there is one.
///
/// An image's file is mapped a second time, and its [identity](ImageIdentity) compared with the loaded one's.
#[derive(Debug)]
pub struct NativeImages {
    map: SharedCodeMap<'static>,
    loaded: Mutex<Loaded>,
    log: Log,
}

/// Returns the identity of the image that is loaded at `base` (VA). An update may replace its file while the program runs.
pub(crate) fn loaded(base: u64) -> Option<ImageIdentity> {
    ImageIdentity::of(&OwnProcess, base, ImageLayout::Loaded)
}

#[derive(Debug, Default)]
struct Loaded {
    /// Base (VA) to path and identity.
    images: BTreeMap<u64, (String, Option<ImageIdentity>)>,
    /// Loads and unloads until the last look.
    loads: (u64, u64),
}

impl ModuleSource for NativeImages {
    fn code_map(&self) -> impl Deref<Target = CodeMap<'_>> {
        self.map.read()
    }
}

impl NativeImages {
    /// Makes the map with the images that are loaded now. `log` gets what was refused.
    pub fn new(log: Log) -> Self {
        let images = Self { map: SharedCodeMap::default(), loaded: Mutex::default(), log };
        #[cfg(target_os = "linux")]
        if let Some((base, bytes)) = os::vdso()
            && let Ok(image) = ElfImage::parse(bytes)
        {
            let _ = images.map.update(|map| map.insert_elf(base, &image));
        }
        images.look();
        images
    }

    /// Returns the map, to add other code.
    pub const fn map(&self) -> &SharedCodeMap<'static> {
        &self.map
    }

    /// Looks for images that were loaded or unloaded since the last look. Linux does not announce them, and Windows does
    /// so while the loader's lock is held. Returns true if there are some.
    ///
    /// Not in a signal handler.
    pub fn look(&self) -> bool {
        let mut known = lock(&self.loaded);
        let loads = os::loads();
        if std::mem::replace(&mut known.loads, loads) == loads {
            return false;
        }
        let listed = os::images().into_iter();
        let now: BTreeMap<u64, (String, Option<ImageIdentity>)> =
            listed.map(|image| (image.base, (image.path, loaded(image.base)))).collect();
        let is_gone =
            |base: &u64, image: &(String, Option<ImageIdentity>)| now.get(base) != Some(image);
        let gone = known.images.iter().filter(|(base, image)| is_gone(base, image));
        let gone: Vec<u64> = gone.map(|(base, _)| *base).collect();
        self.map.update(|map| {
            for base in gone {
                known.images.remove(&base);
                map.remove(base);
            }
            for (base, (path, identity)) in now {
                if known.images.contains_key(&base) {
                    continue;
                }
                if let Some(file) = os::file_bytes(&path) {
                    if identity.is_none() || ImageIdentity::of_file(file) == identity {
                        let _ = os::insert_image(map, base, file);
                    } else {
                        (self.log)(format_args!("{path} is another build than the one in memory"));
                    }
                }
                known.images.insert(base, (path, identity));
            }
        });
        true
    }

    /// Returns the base (VA) and the path of the image with `address` (VA).
    pub fn at(&self, address: u64) -> Option<(u64, String)> {
        // The map is left before the lock: who holds that may wait for readers.
        let base = self.map.read().find(address).map(|(region, _)| region.base())?;
        let (path, _) = lock(&self.loaded).images.get(&base).cloned()?;
        Some((base, path))
    }

    /// Returns `file+offset` for an address in an image, else the address.
    pub fn describe(&self, address: u64) -> String {
        match self.at(address) {
            Some((base, path)) => {
                let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
                format!("{name}+{:#x}", address - base)
            }
            None => format!("{address:#x}"),
        }
    }

    /// Returns a label for an address in an image: `file+offset` of its function, or of the address itself where no
    /// function is known.
    pub fn label(&self, address: u64) -> Label {
        let start = {
            let map = self.map.read();
            map.find(address).and_then(|(region, rva)| {
                let entry = region.functions().find(rva).map(|function| function.begin);
                let start = entry.or_else(|| Some(region.cfi()?.function(rva)?.start));
                Some(region.base() + u64::from(start?))
            })
        };
        let name = self.describe(start.unwrap_or(address));
        Label { name, file: self.at(address).map(|(_, path)| path).unwrap_or_default() }
    }
}
