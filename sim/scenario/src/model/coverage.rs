//! Demands on coverage: what must happen, or must not, in the interleavings of a search or in a session.

use clr_runtime::generation::{Generation, Generations};
use clr_runtime::profiling::{CallbackKind, HResult};

/// A demand on calls between a profiler and the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// The runtime makes a callback a number of times.
    Callback(CallbackKind, CountDemand),
    /// The text's own profiler begins actions a number of times.
    Actions(Entrance, CountDemand),
    /// The profiler calls a method a number of times.
    Call {
        /// Name of the method.
        method: String,
        /// The result of the calls that count; `None` if all count.
        returns: Option<HResult>,
        /// The number of calls.
        count: CountDemand,
    },
    /// In each interleaving the callbacks of these kinds are just these, in this order.
    Order {
        /// Generations that the demand is for.
        on: Generations,
        /// The callbacks.
        callbacks: Vec<CallbackKind>,
        /// Name of the thread whose callbacks count; `None` if those of all threads count.
        by: Option<String>,
    },
    /// A thread with actions of the text's own profiler has to wait, and never runs on after its first wait.
    Stuck {
        /// Generations that the demand is for.
        on: Generations,
        /// Name of the thread.
        thread: String,
    },
}

/// Actions of a text's profiler that no callback begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entrance {
    /// Actions of a hook that code calls directly.
    Hook,
    /// Actions of a signal handler.
    Signal,
    /// Actions before the process ends by an unhandled exception.
    Crash,
}

impl Entrance {
    /// Returns the name of the node that has the actions.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hook => "on-hook",
            Self::Signal => "on-signal",
            Self::Crash => "on-crash",
        }
    }
}

/// A demand on the number of calls in an interleaving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountDemand {
    /// Generations that the demand is for.
    pub on: Generations,
    /// Name of the thread whose calls count; `None` if those of all threads count.
    pub by: Option<String>,
    /// The smallest number.
    pub least: u32,
    /// The largest number; `None` if there is none.
    pub most: Option<u32>,
    /// Each interleaving must have such a number of calls, instead of at least one.
    pub each: bool,
}

impl Default for CountDemand {
    fn default() -> Self {
        Self { on: Generations::ALL, by: None, least: 1, most: None, each: false }
    }
}

impl Demand {
    /// Returns true if the demand is for a generation.
    #[must_use]
    pub const fn applies_to(&self, generation: Generation) -> bool {
        self.on().contains(generation)
    }

    /// Returns the generations that the demand is for.
    #[must_use]
    pub const fn on(&self) -> Generations {
        match self {
            Self::Callback(_, count) | Self::Actions(_, count) | Self::Call { count, .. } => {
                count.on
            }
            Self::Order { on, .. } | Self::Stuck { on, .. } => *on,
        }
    }

    /// Returns true if the demand names a callback.
    #[must_use]
    pub fn names(&self, callback: CallbackKind) -> bool {
        match self {
            Self::Callback(kind, _) => *kind == callback,
            Self::Order { callbacks, .. } => callbacks.contains(&callback),
            Self::Actions(..) | Self::Call { .. } | Self::Stuck { .. } => false,
        }
    }
}
