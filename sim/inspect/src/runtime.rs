//! Where the runtime is, and its descriptor.

use crate::error::InspectError;
use crate::frames::FrameLayout;
use crate::layouts::Layout;
use crate::threads::ThreadLayout;
use clr_dump::{Module, ModuleKind, StoppedProcess, System};
use clr_unwind::{Memory, Unreadable};
use clr_walker::jitted::contracts::ContractDescriptor;

/// Name of the symbol that .NET 9 and later export.
const DESCRIPTOR: &str = "DotNetRuntimeContractDescriptor";

/// Returns true if the file has the name of a runtime that need not say by exports that it is one.
pub fn is_runtime(module: &Module<'_>) -> bool {
    matches!(module.name(), "libcoreclr.so" | "coreclr.dll")
}

/// The .NET runtime of a stopped process.
#[derive(Clone, Debug)]
pub struct Runtime {
    pub(crate) descriptor: ContractDescriptor,
    pub(crate) threads: ThreadLayout,
    pub(crate) frames: FrameLayout,
    path: String,
}

impl Runtime {
    /// Finds the runtime: the loaded module that exports the contract descriptor (of a single-file application that is the
    /// executable), or whose build is known.
    ///
    /// # Errors
    /// [`InspectError`] if there is none, or if its descriptor cannot be read.
    pub fn find<P: StoppedProcess + ?Sized>(process: &P) -> Result<Self, InspectError> {
        let mut error = InspectError::NoRuntime;
        // On Linux, PE images are those of .NET.
        let kind = match process.system() {
            System::Linux => ModuleKind::Elf,
            System::Windows => ModuleKind::Pe,
        };
        for module in process.modules().iter().filter(|module| module.kind == kind) {
            let layout = module.build_id().and_then(Layout::of);
            if let Some(layout) = layout.filter(|layout| layout.is_whole()) {
                let mut descriptor = ContractDescriptor::empty();
                layout.complete(&mut descriptor, module.range.start);
                return Self::new(descriptor, &module.path);
            }
            match module.symbol(process, DESCRIPTOR) {
                Ok(Some(address)) => {
                    let mut descriptor = ContractDescriptor::read(&Constants(process), address)?;
                    if let Some(layout) = layout {
                        layout.complete(&mut descriptor, module.range.start);
                    }
                    return Self::new(descriptor, &module.path);
                }
                // Another module may be unknown; of the runtime itself it matters.
                Err(unknown) if is_runtime(module) => {
                    error = InspectError::NoSymbols(unknown);
                }
                Ok(None) if is_runtime(module) => error = InspectError::UnknownBuild,
                Ok(None) | Err(_) => {}
            }
        }
        Err(error)
    }

    /// Reads the descriptor at `address` (VA) of the module with this path.
    ///
    /// # Errors
    /// [`InspectError`] if it cannot be read, or lacks the contract of threads.
    pub fn read<M: Memory + ?Sized>(
        memory: &M,
        path: &str,
        address: u64,
    ) -> Result<Self, InspectError> {
        Self::new(ContractDescriptor::read(memory, address)?, path)
    }

    fn new(descriptor: ContractDescriptor, path: &str) -> Result<Self, InspectError> {
        let threads = ThreadLayout::new(&descriptor)?;
        let frames = FrameLayout::new(&descriptor);
        Ok(Self { descriptor, threads, frames, path: path.into() })
    }

    /// Returns the descriptor.
    pub const fn descriptor(&self) -> &ContractDescriptor {
        &self.descriptor
    }

    /// Returns the path of the runtime's module on the machine of the process.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// The constants of a process. Dumps of .NET 9 and 10 lack the descriptor, which the runtime never changes.
struct Constants<'p, P: ?Sized>(&'p P);

impl<P: StoppedProcess + ?Sized> Memory for Constants<'_, P> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        self.0.read_constant(address, buffer).map_err(|_| unreadable)
    }
}
