//! Recorded unwinds: the answers of CoreCLR 3.1.9's own unwinder, which CoreCLR 3.1 has on Unix, and the clauses that they
//! show.

use clr_recording::vectors::FormatError;
use clr_recording::vectors::replay::{ReplayError, VectorReplay, VectorVerdict};
use clr_recording::vectors::win64::{Vector, VectorFile, VectorKind};
use clr_runtime::clause::Clause;
use clr_runtime::generation::Generation;
use clr_unwind::compat::Rules;
use clr_unwind::{ImageError, PeImage};
use thiserror::Error;

/// The runtime whose unwinder gave the answers.
pub(super) const RUNTIME: Generation = Generation::CoreClr31Unix;

/// The reason why recorded unwinds cannot be replayed.
#[derive(Debug, Error)]
pub enum UnwindsError {
    /// The image cannot be read.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The file of the unwinds cannot be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// An unwind cannot be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// Replays the unwinds of an image. Returns the clauses that apply to each that has CoreCLR's answer.
pub(super) fn replayed(image: &[u8], vectors: &[u8]) -> Result<Vec<Vec<Clause>>, UnwindsError> {
    let image = PeImage::parse(image)?;
    let file = VectorFile::parse(vectors)?;
    let replay = VectorReplay::new(&image, file.image_base(), Rules::CoreClr)?;
    let mut unwinds = Vec::new();
    for vector in file.iter() {
        let vector = vector?;
        if replay.run(&vector)? == VectorVerdict::Passed {
            unwinds.push(clauses(&vector).map(Clause::new).collect());
        }
    }
    Ok(unwinds)
}

/// Returns the numbers of the clauses that apply to an unwind.
fn clauses(vector: &Vector<'_>) -> impl Iterator<Item = u16> {
    let place = match vector.kind {
        VectorKind::Leaf => Some(146),
        VectorKind::Prologue if vector.rva == vector.begin_address => Some(137),
        VectorKind::Prologue => Some(138),
        VectorKind::CodeEpilogue => Some(139),
        VectorKind::Body | VectorKind::CodesEpilogue => None,
    };
    let is_body = vector.kind == VectorKind::Body;
    let chained = (is_body && vector.attrs.chained()).then_some(143);
    let machine = (is_body && vector.attrs.machine_frame()).then_some(144);
    [place, chained, machine].into_iter().flatten()
}
