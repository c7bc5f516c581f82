//! Sets of generations in which clauses hold: families, and properties of runtimes.

use crate::generation::sets::all_with;
use crate::generation::{Generations, Os, Product, ProfilerSuspension};

pub(super) const ALL: Generations = Generations::ALL;
pub(super) const WINDOWS: Generations = Generations::WINDOWS;
pub(super) const UNIX: Generations = Generations::UNIX;

/// .NET Framework 2 to 3.5.
pub(super) const F2: Generations = CLR4.inverse();
/// All later generations.
pub(super) const CLR4: Generations = Generations::CLR_4;
/// CoreCLR and its successors, which have SuspendRuntime.
pub(super) const CORE: Generations = all_with!(|it| matches!(it.family().product, Product::Core));
/// The generations after .NET Framework 2 and before .NET 9.
pub(super) const BEFORE_NEW: Generations = CLR4.without(Generations::NEW);

pub(super) const WINDOWS_CLR4: Generations = WINDOWS.without(F2);
pub(super) const WINDOWS_CORE: Generations = WINDOWS.both(CORE);
/// Newer runtimes on Unix, whose CONTEXT is larger.
pub(super) const LARGE_CONTEXT: Generations = all_with!(|it| it.context_size() > 0x4D0);
/// The generations with the CONTEXT of Windows x64.
pub(super) const CONTEXT_4D0: Generations = LARGE_CONTEXT.inverse();
/// The generations that read the same number of bytes of every seed.
pub(super) const WHOLE_SEED: Generations = all_with!(|it| !it.seed_size().depends_on_flags());
/// The generations in which managed code dispatches exceptions.
pub(super) const MANAGED_EH: Generations = all_with!(|it| it.hides_exception_handling());
/// The generations with HelperMethodFrames.
pub(super) const HELPER_FRAMES: Generations = all_with!(|it| it.has_helper_method_frames());
/// Newer generations that look code up only where a GC may be triggered.
pub(super) const NEW_TRIGGERING: Generations =
    Generations::NEW.both(all_with!(|it| it.looks_up_only_in_triggering_callbacks()));

/// The generations with tiered compilation.
pub(super) const TIERS: Generations = all_with!(|it| it.later_tiers() > 0);
/// The generations that enter a method cooperatively which throws and catches.
pub(super) const EARLY_THROWERS: Generations =
    all_with!(|it| it.enters_a_catching_thrower_cooperatively());
/// The generations whose first pass goes on behind native code.
pub(super) const SEARCH_ON: Generations = all_with!(|it| it.searches_behind_native_code());

// The generations of recordings.
pub(super) const W31: Generations = Generations::CORECLR_31.both(WINDOWS);
pub(super) const U31: Generations = Generations::CORECLR_31.both(UNIX);
pub(super) const U9: Generations =
    all_with!(|it| it.family().version.0 == 9 && matches!(it.family().os, Os::Unix));
pub(super) const U9_MANAGED: Generations = U9.both(MANAGED_EH);
pub(super) const U9_LEGACY: Generations = U9.without(MANAGED_EH);
/// The generations on Unix that mark a suspension as the profiler's after the threads have been stopped.
pub(super) const MARKED_LATE: Generations =
    UNIX.both(all_with!(|it| matches!(it.profiler_suspension(), ProfilerSuspension::MarkedAfter)));
pub(super) const CORE31_NET9: Generations = Generations::CORECLR_31.with(U9);
pub(super) const W31_W8: Generations = W31.with(Generations::NET_8.both(WINDOWS));
pub(super) const W31_U8: Generations = W31.with(Generations::NET_8.both(UNIX));
