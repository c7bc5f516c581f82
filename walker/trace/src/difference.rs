//! Differences of two traces.

use core::fmt;

/// The place of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The thread, as `there` names it.
    pub thread: String,
    /// The calls around, the outermost first.
    pub within: Vec<String>,
    /// The line of `there` at which the stories part; `None` at its end.
    pub line: Option<usize>,
}

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// A call or callback does not come here.
    Missing(Place, String),
    /// One comes only here.
    Extra(Place, String),
    /// Two come in another order: the one that comes there, and the one here.
    Order(Place, String, String),
    /// A call has another result: the call, the result there and here.
    Result(Place, String, String, String),
    /// An argument has another value: the call, the argument, the value there and here.
    Value(Place, String, String, String, String),
    /// A walk reports other frames: the call, the frame there and here; none at the end of the walk.
    Frame(Place, String, Option<String>, Option<String>),
    /// A thread has callbacks about code of the text only there, or only here.
    Thread(Place, bool),
}

impl Difference {
    /// Returns the place.
    #[must_use]
    pub const fn place(&self) -> &Place {
        match self {
            Self::Missing(place, _)
            | Self::Extra(place, _)
            | Self::Order(place, ..)
            | Self::Result(place, ..)
            | Self::Value(place, ..)
            | Self::Frame(place, ..)
            | Self::Thread(place, _) => place,
        }
    }

    /// Returns the kind in a word: `missing`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Missing(..) => "missing",
            Self::Extra(..) => "extra",
            Self::Order(..) => "order",
            Self::Result(..) => "result",
            Self::Value(..) => "value",
            Self::Frame(..) => "frame",
            Self::Thread(..) => "thread",
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frame = |frame: &Option<String>| frame.clone().unwrap_or_else(|| "no more".to_owned());
        match self {
            Self::Missing(_, call) => write!(f, "{call} does not come here"),
            Self::Extra(_, call) => write!(f, "{call} comes only here"),
            Self::Order(_, there, here) => write!(f, "{there} comes first, and here {here}"),
            Self::Result(_, call, there, here) => {
                write!(f, "{call} returns {there}, and here {here}")
            }
            Self::Value(_, call, argument, there, here) => {
                write!(f, "{call}: {argument} is {there}, and here {here}")
            }
            Self::Frame(_, call, there, here) => {
                write!(f, "{call}: the next frame is {}, and here {}", frame(there), frame(here))
            }
            Self::Thread(_, true) => f.write_str("no thread here has its callbacks"),
            Self::Thread(_, false) => f.write_str("this thread has callbacks only here"),
        }
    }
}
