//! Jitted code: read from recordings of real processes, and from memory made by hand.

mod contracts;
mod headers;
mod methods;
mod process;
mod recorded;
mod recording;
