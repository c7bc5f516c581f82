//! Sets of generations in which clauses hold.

use crate::generation::Generation::{
    CoreClr31Unix, CoreClr31Windows, Framework2, Net9Unix, Net9UnixLegacyExceptions, Net10Unix,
    Net10Windows,
};
use crate::generation::Generations;

pub(super) const ALL: Generations = Generations::ALL;
pub(super) const WINDOWS: Generations = Generations::WINDOWS;
pub(super) const UNIX: Generations = Generations::UNIX;

/// .NET Framework 2 to 3.5.
pub(super) const F2: Generations = Generations::of(&[Framework2]);
/// All later generations.
pub(super) const CLR4: Generations = ALL.without(F2);
/// CoreCLR and its successors, which have SuspendRuntime.
pub(super) const CORE: Generations = Generations::CORECLR_31.with(Generations::NEW);
/// The generations after .NET Framework 2 and before .NET 9.
pub(super) const BEFORE_NEW: Generations = CLR4.without(Generations::NEW);

pub(super) const WINDOWS_CLR4: Generations = WINDOWS.without(F2);
pub(super) const WINDOWS_CORE: Generations = Generations::of(&[CoreClr31Windows, Net10Windows]);
/// Newer runtimes on Unix, whose CONTEXT is larger.
pub(super) const UNIX_NEW: Generations =
    Generations::of(&[Net9Unix, Net9UnixLegacyExceptions, Net10Unix]);
/// The generations with the CONTEXT of Windows x64.
pub(super) const CONTEXT_4D0: Generations = ALL.without(UNIX_NEW);
/// The generations that read the same number of bytes of every seed.
pub(super) const WHOLE_SEED: Generations = CONTEXT_4D0;
/// The generations in which managed code dispatches exceptions.
pub(super) const MANAGED_EH: Generations = Generations::of(&[Net9Unix, Net10Windows, Net10Unix]);

// The generations of recordings.
pub(super) const W31: Generations = Generations::of(&[CoreClr31Windows]);
pub(super) const U31: Generations = Generations::of(&[CoreClr31Unix]);
pub(super) const U9: Generations = Generations::of(&[Net9Unix, Net9UnixLegacyExceptions]);
pub(super) const U9_MANAGED: Generations = Generations::of(&[Net9Unix]);
pub(super) const U9_LEGACY: Generations = Generations::of(&[Net9UnixLegacyExceptions]);
pub(super) const CORE31_NET9: Generations = Generations::CORECLR_31.with(U9);
