//! Progress of long commands.

#[cfg_attr(target_family = "wasm", path = "page.rs")]
mod terminal;

pub(crate) use terminal::Progress;
