//! Mixed walks of a text, and their comparison with the shadow stack and the expected results.

mod compare;
mod found;
mod make;

pub use compare::{Compared, ShadowFrame};
pub use found::{FoundMixed, FoundMixedFrame, FoundMixedItem, MixedDifference};
pub use make::{EachMixed, MixedReport};
