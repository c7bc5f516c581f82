//! The images of a minidump, and the system calls in them.

use super::{Backing, BackingKind, CoreDump, Known};
use crate::bytes::Source;
use crate::dumped::DumpedPages;
use crate::error::DumpError;
use crate::files::Files;
use crate::mapped_file::Writable;
use crate::minidump::{LoadedImage, Minidump};
use crate::modules::Module;
use crate::notes::Notes;
use crate::process::System;
use clr_unwind::{ImageIdentity, Memory as _};

/// The begin of a function that enters the kernel, with the number of the system call after it: `mov r10, rcx`, `mov eax, …`.
const ENTERS: [u8; 4] = [0x4C, 0x8B, 0xD1, 0xB8];
/// Its end, `syscall`.
const SYSTEM_CALL: [u8; 2] = [0x0F, 0x05];
/// Where it begins before the next instruction, in bytes: since Windows 10 (and in wine) there is a test between.
const LENGTHS: [u64; 2] = [20, 10];

impl<'d> CoreDump<'d> {
    /// Reads a minidump, and finds the files of its images.
    pub(super) fn of_minidump(
        source: Source<'d>,
        files: &dyn Files<'d>,
    ) -> Result<Self, DumpError> {
        let Minidump { runs, threads, images } = Minidump::read(&source)?;
        let mut this = Self {
            system: System::Windows,
            dumped: DumpedPages::new(source, runs)?,
            notes: Notes { threads, ..Notes::default() },
            modules: Vec::new(),
            backings: Vec::new(),
            files: Vec::new(),
        };
        let mut known = Known::new();
        for image in &images {
            this.add_image(image, files, &mut known);
        }
        let calls: Vec<_> =
            this.notes.threads.iter().map(|it| this.system_call(it.registers.rip)).collect();
        for (thread, call) in this.notes.threads.iter_mut().zip(calls) {
            thread.system_call = call;
        }
        Ok(this)
    }

    /// Adds an image, whose pages may come from its file.
    fn add_image(&mut self, image: &LoadedImage, files: &dyn Files<'d>, known: &mut Known<'d>) {
        let identity = ImageIdentity::Pe(image.identity);
        let file = self.file(&image.path, Some(&identity), files, known);
        let module = Module::of_windows(image, self.file_bytes(file));
        let kind = BackingKind::Loaded { bias: image.range.start, writable: Writable::IfSealed };
        self.backings.push(Backing { range: image.range.clone(), file, kind });
        self.modules.push(module);
    }

    /// Returns the number of the system call that was entered before the instruction at `rip` (VA).
    fn system_call(&self, rip: u64) -> Option<u64> {
        let mut end = [0; SYSTEM_CALL.len()];
        self.read(rip.checked_sub(2)?, &mut end).ok()?;
        let number = |length: u64| {
            let (start, mut begin) = (rip.checked_sub(length)?, [0; ENTERS.len()]);
            self.read(start, &mut begin).ok()?;
            (begin == ENTERS).then(|| self.read_u32(start + 4).ok())?
        };
        let mut numbers = LENGTHS.into_iter().filter_map(number);
        numbers.next().filter(|_| end == SYSTEM_CALL).map(u64::from)
    }
}
