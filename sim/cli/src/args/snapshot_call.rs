//! Arguments that say how `DoStackSnapshot` is called on the thread of a real process.

use clap::{Args, ValueEnum};
use clr_scenario::{SeedSource, SnapshotCall, SnapshotCaller, SnapshotSeed};

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct CallArgs {
    /// Who calls DoStackSnapshot [default: native-walker]
    #[arg(long, value_name = "WHO")]
    by: Option<Caller>,

    /// The registers that the call gets as its seed [default: none]
    #[arg(long, value_name = "SEED")]
    seed: Option<Seed>,

    /// The caller has called SuspendRuntime before
    #[arg(long)]
    suspended: bool,
}

/// The calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Caller {
    /// A thread that the runtime does not know
    NativeWalker,
    /// A thread that the runtime knows
    ManagedWalker,
    /// The thread itself
    #[value(name = "self")]
    Own,
}

/// The seed of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Seed {
    /// No seed
    None,
    /// The registers of the thread
    Leaf,
    /// The registers of the thread's first managed frame
    TopManaged,
}

impl CallArgs {
    /// Returns true if an argument says how the call is made.
    pub(crate) const fn is_given(self) -> bool {
        self.by.is_some() || self.seed.is_some() || self.suspended
    }

    /// Returns the call, or without an argument one that no system refuses: by a native thread, after SuspendRuntime.
    pub(crate) fn call_or_usual(self) -> SnapshotCall {
        let usual = SnapshotCall {
            by: SnapshotCaller::NativeWalker,
            suspended: true,
            ..SnapshotCall::default()
        };
        if self.is_given() { self.call() } else { usual }
    }

    /// Returns the call.
    pub(crate) fn call(self) -> SnapshotCall {
        let seed = match self.seed {
            None | Some(Seed::None) => None,
            Some(Seed::Leaf) => Some(SeedSource::Leaf),
            Some(Seed::TopManaged) => Some(SeedSource::TopManaged),
        };
        SnapshotCall {
            by: match self.by {
                None | Some(Caller::NativeWalker) => SnapshotCaller::NativeWalker,
                Some(Caller::ManagedWalker) => SnapshotCaller::ManagedWalker,
                Some(Caller::Own) => SnapshotCaller::Own,
            },
            seed: seed.map(SnapshotSeed::new),
            suspended: self.suspended,
            ..SnapshotCall::default()
        }
    }
}
