use super::{Garbled, Kind, receive, send, send_damage, settle};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;

fn pipe() -> [File; 2] {
    let (from, to) = std::io::pipe().unwrap();
    [OwnedFd::from(from).into(), OwnedFd::from(to).into()]
}

#[test]
fn a_report_comes_as_it_was_sent() {
    let [mut from, mut to] = pipe();
    assert!(send(&mut to, b"all is well"));
    assert!(send(&mut to, b""));
    settle(&to);
    assert!(send_damage(b"free(): invalid pointer"));
    drop(to);
    assert_eq!(receive(&mut from), Ok(Some((Kind::Done, b"all is well".to_vec()))));
    assert_eq!(receive(&mut from), Ok(Some((Kind::Done, Vec::new()))));
    let damage = b"free(): invalid pointer".to_vec();
    assert_eq!(receive(&mut from), Ok(Some((Kind::DamagedHeap, damage))));
    assert_eq!(receive(&mut from), Ok(None));
}

/// Whatever a guest writes, and wherever a report is cut off: it is no report.
#[test]
fn anything_else_is_garbled() {
    let [mut from, mut to] = pipe();
    assert!(send(&mut to, b"all is well"));
    let mut report = vec![0; 24 + b"all is well".len()];
    std::io::Read::read_exact(&mut from, &mut report).unwrap();
    for at in 0..report.len() {
        let [mut from, mut to] = pipe();
        let mut other = report.clone();
        other[at] ^= 1;
        to.write_all(&other).unwrap();
        drop(to);
        assert_eq!(receive(&mut from), Err(Garbled), "another byte {at}");
        let [mut from, mut to] = pipe();
        to.write_all(&report[..at]).unwrap();
        drop(to);
        let expected = if at == 0 { Ok(None) } else { Err(Garbled) };
        assert_eq!(receive(&mut from), expected, "cut off after {at} bytes");
    }
    let [mut from, mut to] = pipe();
    to.write_all(&[b"hello, world! ", &report[..]].concat()).unwrap();
    // What follows may never come to an end.
    assert_eq!(receive(&mut from), Err(Garbled));
}
