//! A sampler that follows the documentation, on every thread of the gallery.

use clr_sim::harness::{Sampler, judge};
use core::fmt::Write as _;

#[test]
fn a_seeded_sampler_is_never_wrong() {
    let (mut complete, mut all, mut wrong) = (0, 0, String::new());
    for fixture in clr_fixtures::gallery() {
        let text = core::str::from_utf8(fixture.bytes).unwrap();
        for verdict in judge(&Sampler, text).unwrap() {
            all += 1;
            complete += usize::from(verdict.is_complete());
            if !verdict.is_right() {
                writeln!(wrong, "{}: {verdict}", fixture.name).unwrap();
            }
        }
    }
    assert!(complete > 500 && all > 2 * complete, "{complete} of {all}");
    assert!(wrong.is_empty(), "{wrong}");
}
