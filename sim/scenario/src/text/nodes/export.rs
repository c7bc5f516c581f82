//! Exports of a profiler's library, and the buffers that they get pointers to.

use crate::text::codec::{Codec, SIZE64, between};
use crate::text::grammar::{Kind, Level};
use crate::text::problem::ProblemKind;
use crate::{Buffer, ExpectedContent, Export};

/// Returns a buffer as it is without what a text says.
pub(super) fn blank() -> Buffer {
    Buffer { size: Buffer::SIZE, ..Buffer::default() }
}

pub(super) fn buffer(buffer: &mut Buffer, c: &mut Codec<'_>) {
    c.arg(&mut buffer.name);
    let size = between(1, Buffer::MOST_BYTES.into());
    c.or_of("size", size, &mut buffer.size, &Buffer::SIZE);
    c.with_of("number", SIZE64, &mut buffer.number);
    c.with("text", &mut buffer.text);
    let is_twice = c.is_written("number") && c.is_written("text");
    c.refuse(is_twice, ProblemKind::Excluded("number=", "text="));
    let is_large = buffer.text.as_ref().is_some_and(|text| text.len() > buffer.size as usize);
    let is_small = !buffer.fits(buffer.number) || is_large;
    c.refuse(is_small, ProblemKind::SmallBuffer(buffer.size));
}

pub(super) fn export(export: &mut Export, buffers: &[Buffer], c: &mut Codec<'_>) {
    c.named_args(&mut export.name, Export::MOST_ARGUMENTS, &mut export.arguments);
    c.with_of("result", Kind::Buffer, &mut export.result);
    c.block(Level::Export, |c| {
        c.each("expect", &mut export.expect, &ExpectedContent::default(), |expected, c| {
            c.arg_of(Kind::Buffer, &mut expected.buffer);
            c.with_of("is", SIZE64, &mut expected.is);
            c.with_of("not", SIZE64, &mut expected.not);
            content(expected, buffers, c);
        });
    });
}

/// Checks that an expectation says one number, which the buffer can hold.
fn content(expected: &ExpectedContent, buffers: &[Buffer], c: &mut Codec<'_>) {
    let (is, not) = (c.is_written("is"), c.is_written("not"));
    c.refuse(is && not, ProblemKind::Excluded("is=", "not="));
    c.refuse(!is && !not, ProblemKind::Without("expect", "is="));
    let Some(buffer) = buffers.get(expected.buffer as usize) else { return };
    let is_small = [expected.is, expected.not].into_iter().flatten().any(|it| !buffer.fits(it));
    c.refuse(is_small, ProblemKind::SmallBuffer(buffer.size));
}
