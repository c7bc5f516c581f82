//! Tests of the simulated runtime: texts, recordings, generated programs and interleavings; and of the project itself.

mod coroutine;
mod gallery;
mod harness;
mod mixed;
mod project;
mod properties;
mod recordings;
mod sequences;
mod timeline;
