//! A runtime's data written here and read back.

mod hang;
mod hijacks;
mod layouts;
mod methods;
mod monitors;
mod profiler;
mod ready_to_run;
mod threads;
#[expect(dead_code, reason = "images are for other tests")]
#[path = "../../../../walker/dump/src/tests/writer.rs"]
mod writer;

use clr_unwind::{Segment, Segments};

/// Memory of a process: parts by address.
#[derive(Default)]
struct Parts {
    parts: Vec<(u64, Vec<u8>)>,
}

impl Parts {
    fn part(&mut self, address: u64, size: usize) -> &mut Self {
        self.parts.push((address, vec![0; size]));
        self
    }

    fn put_bytes(&mut self, address: u64, bytes: &[u8]) -> &mut Self {
        let is_in =
            |part: &&mut (u64, Vec<u8>)| (part.0..part.0 + part.1.len() as u64).contains(&address);
        let (start, part) = self.parts.iter_mut().find(is_in).unwrap();
        let at = (address - *start) as usize;
        part[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    fn put(&mut self, address: u64, word: u64) -> &mut Self {
        self.put_bytes(address, &word.to_le_bytes())
    }

    /// Writes a contract descriptor with pointers to pointers.
    fn put_descriptor(&mut self, address: u64, text: &str, pointers: u64) -> &mut Self {
        let text_at = address + 0x1_0000;
        self.part(address, 40).part(text_at, text.len()).put_bytes(text_at, text.as_bytes());
        self.put(address, u64::from_le_bytes(*b"DNCCDAC\0"));
        self.put(address + 8, 1 | (text.len() as u64) << 32).put(address + 16, text_at);
        self.put(address + 24, 3).put(address + 32, pointers)
    }

    fn memory(&self) -> Segments<'_> {
        let segments = self.parts.iter().map(|(address, bytes)| Segment::new(*address, bytes));
        Segments::new(segments).unwrap()
    }
}
