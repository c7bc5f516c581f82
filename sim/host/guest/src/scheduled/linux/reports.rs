//! Reports of a process about what it has executed, in a pipe. The process has code of a guest, which may write there, too.

use clr_machine::Fnv1a;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, Ordering};

/// The kind of a report: the beginning of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What was executed.
    Done,
    /// The message of the library of C about a damaged heap, without which the process cannot report more.
    DamagedHeap,
}

/// A report is none, or is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Garbled;

/// Bytes before those of a report: its kind, their number and their digest.
const HEADER: usize = 24;

/// The pipe of this process's own report, or -1.
static OWN: AtomicI32 = AtomicI32::new(-1);

impl Kind {
    const ALL: [Self; 2] = [Self::Done, Self::DamagedHeap];

    const fn word(self) -> [u8; 8] {
        match self {
            Self::Done => *b"clr done",
            Self::DamagedHeap => *b"clr heap",
        }
    }

    /// Returns the bytes before those of a report.
    fn header(self, bytes: &[u8]) -> [u8; HEADER] {
        let mut digest = Fnv1a::default();
        digest.write(bytes);
        let parts =
            [self.word(), (bytes.len() as u64).to_le_bytes(), digest.finish().to_le_bytes()];
        let mut header = [0; HEADER];
        for (to, from) in header.iter_mut().zip(parts.as_flattened()) {
            *to = *from;
        }
        header
    }
}

/// Makes a pipe that of this process's own report.
pub(super) fn settle(to: &File) {
    OWN.store(to.as_raw_fd(), Ordering::Relaxed);
}

/// Sends what was executed. Returns true if it is on its way.
pub(super) fn send(to: &mut File, bytes: &[u8]) -> bool {
    let header = Kind::Done.header(bytes);
    to.write_all(&[&header, bytes].concat()).is_ok()
}

/// Sends the message about a damaged heap, without the heap, as the report of this process. Returns true if it is on its way.
pub(super) fn send_damage(message: &[u8]) -> bool {
    let header = Kind::DamagedHeap.header(message);
    let parts = [&header[..], message]
        .map(|part| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
    // SAFETY: two parts, which the call reads.
    let sent = unsafe { libc::writev(OWN.load(Ordering::Relaxed), parts.as_ptr(), 2) };
    usize::try_from(sent).is_ok_and(|sent| sent == HEADER + message.len())
}

/// Returns the next report; `None` if there is none.
///
/// # Errors
/// Returns [`Garbled`] if there is something else.
pub(super) fn receive(from: &mut File) -> Result<Option<(Kind, Vec<u8>)>, Garbled> {
    let mut header = Vec::new();
    from.take(HEADER as u64).read_to_end(&mut header).map_err(|_| Garbled)?;
    if header.is_empty() {
        return Ok(None);
    }
    let kind =
        Kind::ALL.into_iter().find(|kind| header.starts_with(&kind.word())).ok_or(Garbled)?;
    let size = header.get(8..16).and_then(|size| size.try_into().ok()).ok_or(Garbled)?;
    let mut bytes = Vec::new();
    from.take(u64::from_le_bytes(size)).read_to_end(&mut bytes).map_err(|_| Garbled)?;
    if kind.header(&bytes)[..] == header[..] { Ok(Some((kind, bytes))) } else { Err(Garbled) }
}

#[cfg(test)]
mod tests;
