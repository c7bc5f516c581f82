//! A second reader of `__unwind_info`, which lists all entries instead of searching them.

use super::sample;
use clr_walker::compact::{Layout, SavedRegisters};
use clr_walker::image::macho::MachoImage;

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn word(&self, at: usize) -> usize {
        (0..4).rev().fold(0, |value, n| value << 8 | usize::from(self.0[at + n]))
    }

    fn half(&self, at: usize) -> usize {
        self.word(at) & 0xFFFF
    }
}

/// Returns the section by a search for its name in the load commands.
fn section(file: &[u8]) -> &[u8] {
    let name = b"__unwind_info\0\0\0__TEXT\0";
    let at = file.windows(name.len()).position(|window| window == name).unwrap();
    let bytes = Bytes(file);
    &file[bytes.word(at + 48)..][..bytes.word(at + 40)]
}

/// Returns the start and the encoding of each entry.
fn entries(section: &[u8]) -> Vec<(usize, usize)> {
    let bytes = Bytes(section);
    let (common, common_count) = (bytes.word(4), bytes.word(8));
    let (index, index_count) = (bytes.word(20), bytes.word(24));
    let mut entries = Vec::new();
    for n in 0..index_count {
        let (start, page) = (bytes.word(index + 12 * n), bytes.word(index + 12 * n + 4));
        if page == 0 {
            entries.push((start, usize::MAX));
            continue;
        }
        let first = page + bytes.half(page + 4);
        for n in 0..bytes.half(page + 6) {
            if bytes.word(page) == 2 {
                entries.push((bytes.word(first + 8 * n), bytes.word(first + 8 * n + 4)));
                continue;
            }
            let word = bytes.word(first + 4 * n);
            let own = page + bytes.half(page + 8);
            let encoding = match word >> 24 {
                index if index < common_count => bytes.word(common + 4 * index),
                index => bytes.word(own + 4 * (index - common_count)),
            };
            entries.push((start + (word & 0x00FF_FFFF), encoding));
        }
    }
    entries
}

/// Lists the orders of N registers out of six, each as the numbers that encodings have, in the order
/// of their permutation numbers.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(count - 1);
    let mut all = Vec::new();
    for order in shorter {
        all.extend((1..=6).filter(|next| !order.contains(next)).map(|next| {
            let mut longer = order.clone();
            longer.push(next);
            longer
        }));
    }
    all
}

const NAMES: [&str; 7] = ["", "rbx", "r12", "r13", "r14", "r15", "rbp"];

fn names(saved: SavedRegisters) -> Vec<(&'static str, usize)> {
    saved.iter().map(|(register, below)| (register.name(), usize::from(below))).collect()
}

#[test]
fn entries_of_a_linked_image_are_those_of_the_second_reader() {
    let image = MachoImage::parse(sample()).unwrap();
    let table = image.compact_unwind();
    let entries = entries(section(sample()));
    assert!(entries.len() > 20, "{entries:x?}");
    let listed = table.entries().map(Result::unwrap);
    let listed: Vec<_> =
        listed.map(|entry| (entry.range.start as usize, entry.encoding.0 as usize)).collect();
    assert_eq!(listed[..], entries[..entries.len() - 1]);
    for pair in entries.windows(2) {
        for rva in pair[0].0..pair[1].0 {
            let found = table.find(rva as u32).unwrap().unwrap();
            assert_eq!((found.range.start as usize, found.encoding.0 as usize), pair[0]);
            assert_eq!(found.range.end as usize, pair[1].0);
        }
    }
}

#[test]
fn permutations_are_numbered_as_in_the_second_reader() {
    for count in 0..=6 {
        for (number, order) in orders(count).into_iter().enumerate() {
            let encoding = 0x0209_0000 | (count as u32) << 10 | number as u32;
            let layout = clr_walker::compact::Encoding(encoding).layout().unwrap();
            let Layout::Frameless { size, saved } = layout else { panic!("{encoding:#x}") };
            assert_eq!(size, 72);
            let slots = (1..=count).rev().map(|n| 8 + 8 * n);
            let expected: Vec<_> = order.iter().map(|n| NAMES[*n]).zip(slots).collect();
            assert_eq!(names(saved), expected, "{encoding:#x}");
        }
    }
}
