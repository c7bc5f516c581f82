use super::*;
use crate::{NoFiles, StoppedProcess as _};
use clr_unwind::Gpr;

#[test]
fn threads_have_the_registers_of_their_notes() {
    let core = CoreWriter::default().thread(7, 0x1111, 0x2222).note(2, &vectors());
    let core = core.thread(3, 0x3333, 0x4444).write();
    let dump = CoreDump::open(&core, &NoFiles).unwrap();
    let ids: Vec<_> = dump.threads().iter().map(|thread| thread.id).collect();
    assert_eq!(ids, [3, 7], "in the order of ids");
    let thread = dump.thread(7).unwrap();
    assert_eq!((thread.registers.rip, thread.registers.rsp()), (0x1111, 0x2222));
    // The order of `struct user_regs_struct`.
    for (index, register) in [Gpr::R15, Gpr::R14, Gpr::R13, Gpr::R12, Gpr::Rbp].iter().enumerate() {
        assert_eq!(thread.registers.get(*register), index as u64);
    }
    assert_eq!(thread.registers.get(Gpr::Rdi), 14);
    assert_eq!((thread.signal, thread.system_call), (19, Some(202)));
    assert_eq!((thread.flags, thread.fs_base, thread.gs_base), (18, 21, 22));
    assert_eq!(thread.registers.xmm[0], u128::from_le_bytes([6; 16]));
    assert_eq!(thread.registers.xmm[9], u128::from_le_bytes([15; 16]));
    assert_eq!(dump.thread(3).unwrap().registers.xmm, [0; 10], "it has no note of them");
    assert!(dump.thread(4).is_none());
}

/// Returns the image of FXSAVE in which each vector register has its number in each byte.
fn vectors() -> Vec<u8> {
    let mut image = vec![0xEE; 512];
    for number in 0..16 {
        image[160 + 16 * number..176 + 16 * number].fill(number as u8);
    }
    image
}

#[test]
fn a_thread_outside_of_system_calls_has_none() {
    let mut status = vec![0; 336];
    status[112 + 15 * 8..][..8].fill(0xFF);
    let core = CoreWriter::default().note(1, &status).write();
    assert_eq!(CoreDump::open(&core, &NoFiles).unwrap().threads()[0].system_call, None);
}

#[test]
fn the_auxiliary_vector_is_read_by_key() {
    let words: Vec<u8> =
        [9_u64, 0x99, 33, 0x42, 0, 0].iter().flat_map(|it| it.to_le_bytes()).collect();
    let core = CoreWriter::default().thread(1, 0, 0).note(6, &words).write();
    let dump = CoreDump::open(&core, &NoFiles).unwrap();
    assert_eq!(
        [dump.auxiliary(9), dump.auxiliary(33), dump.auxiliary(1)],
        [Some(0x99), Some(0x42), None]
    );
}

#[test]
fn mapped_files_are_in_the_order_of_addresses() {
    let core = CoreWriter::default().thread(1, 0, 0);
    let core = core.file(0x5000..0x7000, 0x2000, "/b c").file(0x1000..0x2000, 0, "/a").write();
    let dump = CoreDump::open(&core, &NoFiles).unwrap();
    let mappings: Vec<_> =
        dump.mappings().iter().map(|it| (it.range.clone(), it.offset, it.path.as_str())).collect();
    assert_eq!(mappings, [(0x1000..0x2000, 0, "/a"), (0x5000..0x7000, 0x2000, "/b c")]);
    assert_eq!(dump.mapping_at(0x6FFF).map(|it| it.offset), Some(0x2000));
    assert_eq!(dump.mapping_at(0x7000), None);
}

#[test]
fn a_core_without_threads_is_refused() {
    let core = CoreWriter::default().page(0x1000, &[1]).write();
    assert_eq!(CoreDump::open(&core, &NoFiles).unwrap_err(), DumpError::NoThreads);
}
