//! A writer of `__unwind_info`.

/// A second-level page.
pub(crate) enum Page {
    /// Pairs of a function's RVA and its encoding.
    Regular(Vec<(u32, u32)>),
    /// Pairs of a function's RVA and the index of its encoding; and the page's own encodings.
    Compressed(Vec<(u32, u8)>, Vec<u32>),
}

impl Page {
    fn first(&self) -> u32 {
        match self {
            Self::Regular(entries) => entries[0].0,
            Self::Compressed(entries, _) => entries[0].0,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let half = |bytes: &mut Vec<u8>, value: usize| {
            bytes.extend_from_slice(&u16::try_from(value).unwrap().to_le_bytes());
        };
        match self {
            Self::Regular(entries) => {
                bytes.extend_from_slice(&2_u32.to_le_bytes());
                half(&mut bytes, 8);
                half(&mut bytes, entries.len());
                for (rva, encoding) in entries {
                    bytes.extend_from_slice(&rva.to_le_bytes());
                    bytes.extend_from_slice(&encoding.to_le_bytes());
                }
            }
            Self::Compressed(entries, encodings) => {
                bytes.extend_from_slice(&3_u32.to_le_bytes());
                half(&mut bytes, 12);
                half(&mut bytes, entries.len());
                half(&mut bytes, 12 + 4 * entries.len());
                half(&mut bytes, encodings.len());
                for (rva, index) in entries {
                    let word = (rva - self.first()) | u32::from(*index) << 24;
                    bytes.extend_from_slice(&word.to_le_bytes());
                }
                for encoding in encodings {
                    bytes.extend_from_slice(&encoding.to_le_bytes());
                }
            }
        }
        bytes
    }
}

/// Returns a section with these encodings for all pages, pointers to personality routines, pages up
/// to `end`, and for each page pairs of a function and its language-specific data.
pub(crate) fn unwind_info(
    common: &[u32],
    personalities: &[u32],
    pages: &[Page],
    end: u32,
    data: &[Vec<(u32, u32)>],
) -> Vec<u8> {
    let header = 28;
    let personalities_at = header + 4 * common.len();
    let index_at = personalities_at + 4 * personalities.len();
    let data_at = index_at + 12 * (pages.len() + 1);
    let data_count: usize = data.iter().map(Vec::len).sum();
    let mut page_at = data_at + 8 * data_count;
    let mut words = vec![1, header, common.len(), personalities_at, personalities.len()];
    words.extend([index_at, pages.len() + 1]);
    words.extend(common.iter().chain(personalities).map(|word| *word as usize));
    let mut lsda = data_at;
    for (n, page) in pages.iter().enumerate() {
        words.extend([page.first() as usize, page_at, lsda]);
        page_at += page.bytes().len();
        lsda += 8 * data.get(n).map_or(0, Vec::len);
    }
    words.extend([end as usize, 0, lsda]);
    words.extend(data.iter().flatten().flat_map(|(rva, at)| [*rva as usize, *at as usize]));
    let words = words.into_iter().flat_map(|word| u32::try_from(word).unwrap().to_le_bytes());
    words.chain(pages.iter().flat_map(Page::bytes)).collect()
}
