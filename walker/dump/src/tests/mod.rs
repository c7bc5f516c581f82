//! Cores written here and read back.

mod bytes;
mod damage;
mod minidump;
mod minidump_writer;
mod modules;
mod notes;
mod pages;
mod waits;
mod writer;

use crate::{CoreDump, DumpError, Files};
use writer::{CoreWriter, Image, Portable};

/// Opens a dump, with one file.
fn open<'d>(dump: &'d [u8], path: &str, file: &'d [u8]) -> CoreDump<'d> {
    try_open(dump, path, file).unwrap()
}

fn try_open<'d>(dump: &'d [u8], path: &str, file: &'d [u8]) -> Result<CoreDump<'d>, DumpError> {
    let find = |found: &str, _: Option<&clr_unwind::ImageIdentity>| (found == path).then_some(file);
    let files: &dyn Files<'d> = &find;
    CoreDump::open(dump, files)
}
