//! Chained unwind infos and indirect function entries.

use super::*;

/// A function, and a chunk of it: {begin, end, unwind info}.
const PARENT: [u32; 3] = [0x100, 0x180, 0x800];
const CHUNK: [u32; 3] = [0x200, 0x280, 0x900];

fn chained(parent: &Info, chunk: Info) -> Case {
    Case::new().function(PARENT, parent).function(CHUNK, &chunk.parent(PARENT))
}

#[test]
fn a_chunk_goes_on_with_its_parent() {
    let parent = Info::new(5, &[(5, Small(0x10)), (1, Push(Rbx))]);
    let chunk = Info::new(4, &[(4, Small(8)), (2, Push(Rsi)), (1, Push(Rdi))]);
    let case = chained(&parent, chunk);
    for case in [case.clone(), case.coreclr()] {
        // The prologue that counts is the parent's, and a chunk after it is beyond that.
        assert_eq!(case.at(0x200), "Body rbx=[2] rip=[3] rsp=4");
        assert_eq!(case.at(0x201), "Body rbx=[3] rdi=[0] rip=[4] rsp=5");
        assert_eq!(case.at(0x204), "Body rbx=[5] rsi=[1] rdi=[2] rip=[6] rsp=7");
        assert_eq!(case.at(0x101), "Prologue rbx=[0] rip=[1] rsp=2");
    }
}

#[test]
fn a_chunk_before_its_parent_is_behind_its_prologue() {
    let parent = Info::new(0xFF, &[(0xFF, Push(Rbx))]);
    let case =
        Case::new().function(CHUNK, &parent).function(PARENT, &Info::new(0, &[]).parent(CHUNK));
    assert_eq!(case.at(0x100), "Body rbx=[0] rip=[1] rsp=2");
    assert_eq!(case.coreclr().at(0x100), "Body rbx=[0] rip=[1] rsp=2");
}

#[test]
fn the_handler_is_that_of_the_primary() {
    let parent = Info::new(0x10, &[(4, Push(Rbx)), (2, Push(Rbp))]).handler(3, 0x1510);
    let case = chained(&parent, Info::new(0x20, &[(2, Push(Rsi))]));
    let expected = "Body rbx=[1] rbp=[2] rsi=[0] rip=[3] rsp=4 handler=1510/80c";
    // Even in the chunk's own prologue.
    assert_eq!(case.at(0x202), expected);
    assert_eq!(case.at(0x240), expected);
    assert_eq!(case.coreclr().at(0x240), expected);
    // A chunk so near that it counts as the parent's prologue.
    let near = [0x108, 0x180, 0x900];
    let case = Case::new()
        .function([0x100, 0x108, 0x800], &parent)
        .function(near, &Info::new(0, &[]).parent([0x100, 0x108, 0x800]));
    assert_eq!(case.at(0x10F), "Prologue rbx=[0] rbp=[1] rip=[2] rsp=3");
    assert_eq!(case.at(0x110), "Body rbx=[0] rbp=[1] rip=[2] rsp=3 handler=1510/80c");
}

#[test]
fn a_chunk_has_the_frame_register_from_its_start() {
    let parent = Info::new(8, &[(8, SetFrame), (2, Push(Rbp))]).frame(Rbp, 0);
    let chunk = Info::new(6, &[(6, Save(Rsi, 0x10))]).frame(Rbp, 0);
    let case = chained(&parent, chunk).with(Rbp, slot(20));
    let expected = "Body rbp=[20] rip=[21] rsp=22 frame=20";
    assert_eq!(case.at(0x200), expected);
    assert_eq!(case.coreclr().at(0x200), expected);
    assert_eq!(case.at(0x206), "Body rbp=[20] rsi=[22] rip=[21] rsp=22 frame=20");
}

#[test]
fn the_parents_saves_count_from_the_parents_frame_register() {
    // The header of the chunk names no frame register.
    let parent = Info::new(8, &[(8, Save(Rsi, 0x10)), (4, SetFrame), (1, Push(Rbp))]);
    let case = chained(&parent.frame(Rbp, 0), Info::new(2, &[(2, Push(Rdi))]));
    let case = case.with(Rbp, slot(20));
    // Also where the parent, at the same distance from its begin, has not set it yet.
    for rva in [0x202, 0x240] {
        assert_eq!(case.at(rva), "Body rbp=[20] rsi=[22] rdi=[0] rip=[21] rsp=22");
    }
    // Windows keeps the initial frame base, rsp.
    assert_eq!(case.coreclr().at(0x240), "Body rbp=[20] rsi=[2] rdi=[0] rip=[21] rsp=22");
}

#[test]
fn the_first_frame_register_of_a_chain_is_the_frame_base() {
    let parent = Info::new(8, &[(8, Save(Rsi, 0x10))]).frame(Rbx, 0);
    let case = chained(&parent, Info::new(0, &[]).frame(Rbp, 0));
    let case = case.with(Rbp, slot(20)).with(Rbx, slot(30));
    for rules in [Rules::Precise, Rules::CoreClr] {
        assert_eq!(case.rules(rules).at(0x240), "Body rsi=[22] rip=[0] rsp=1 frame=20");
    }
}

#[test]
fn a_machine_frame_in_a_chunk_ends_the_function() {
    let case = chained(&Info::new(0, &[]), Info::new(0, &[(0, MachineFrame)]));
    let case = case.with_slot(3, slot(50));
    assert_eq!(case.at(0x240), "Body rip=[0] rsp=50 interrupted");
    // Windows forgets the machine frame at the parent and loads a return address too.
    assert_eq!(case.coreclr().at(0x240), "Body rip=[50] rsp=51");
    let case = chained(&Info::new(0, &[(0, MachineFrame)]), Info::new(0, &[]));
    let case = case.with_slot(3, slot(50));
    assert_eq!(case.at(0x240), "Body rip=[0] rsp=50 interrupted");
    assert_eq!(case.coreclr().at(0x240), "Body rip=[0] rsp=50 interrupted");
}

#[test]
fn an_odd_count_of_codes_is_padded_before_the_parent() {
    for pushes in 0..5 {
        let codes = vec![(1, Push(Rsi)); pushes];
        let case = chained(&Info::new(1, &[(1, Push(Rbx))]), Info::new(1, &codes));
        let text = case.at(0x240);
        assert!(text.contains(&format!("rbx=[{pushes}]")), "{pushes}: {text}");
    }
}

/// Returns a chain of `links`, each chunk with a push; the last is the primary.
fn long_chain(links: u32) -> Case {
    let entry = |n: u32| [0x100 + 0x10 * n, 0x110 + 0x10 * n, 0x800 + 0x20 * n];
    (0..=links).fold(Case::new(), |case, n| {
        let info = Info::new(1, &[(1, Push(Rbx))]);
        let info = if n < links { info.parent(entry(n + 1)) } else { info };
        case.function(entry(n), &info)
    })
}

#[test]
fn a_chain_has_up_to_32_links() {
    for links in [1, 2, 31, 32] {
        for rules in [Rules::Precise, Rules::CoreClr] {
            let expected = format!("Body rbx=[{links}] rip=[{}] rsp={}", links + 1, links + 2);
            // 8: after the primary's prologue wherever that is.
            assert_eq!(long_chain(links).rules(rules).at(0x108), expected, "{links}");
        }
    }
    for links in [33, 34] {
        // The search stops at the info after the 33rd link.
        let error = UnwindError::ChainTooLong { rva: 0x800 + 0x20 * 33 };
        for rules in [Rules::Precise, Rules::CoreClr] {
            assert_eq!(long_chain(links).rules(rules).step(0x108), Err(error), "{links}");
        }
    }
}

/// C-143.
#[test]
fn a_chain_to_itself_is_too_long() {
    for info in [Info::new(0, &[]), Info::new(0, &[(0, Push(Rbx))]), Info::new(0, &[]).version(2)] {
        let case = Case::new().function(PARENT, &info.parent(PARENT));
        let error = UnwindError::ChainTooLong { rva: PARENT[2] };
        for rules in [Rules::Precise, Rules::CoreClr] {
            assert_eq!(case.rules(rules).step(0x140), Err(error));
            assert_eq!(case.returned_to().rules(rules).step(0x140), Err(error));
        }
    }
}

#[test]
fn an_indirect_entry_refers_to_another() {
    let info = Info::new(4, &[(4, Push(Rbx))]);
    let case = Case::new()
        .put(0x800, &info.bytes())
        // The entry's own begin is forgotten: the offset counts from 0x100.
        .entry([0x200, 0x280, 0xA01])
        .put(0xA00, &bytes_of(&[0x1FE, 0x280, 0x800]));
    assert_eq!(case.at(0x201), "Prologue rip=[0] rsp=1");
    assert_eq!(case.at(0x202), "Body rbx=[0] rip=[1] rsp=2");
}

/// Returns a function after `links` indirect entries.
fn indirections(links: u32) -> Case {
    let case = Case::new().put(0x800, &Info::new(0, &[]).bytes()).entry([0x100, 0x180, 0xA01]);
    (1..=links).fold(case, |case, n| {
        let next = if n < links { 0xA01 + 12 * n } else { 0x800 };
        // At odd multiples of 4 too: only the lowest bit is the mark.
        case.put(0xA00 + 12 * (n - 1), &bytes_of(&[0x100, 0x180, next]))
    })
}

#[test]
fn indirections_have_up_to_32_links() {
    for links in [1, 2, 32] {
        assert_eq!(indirections(links).at(0x140), "Body rip=[0] rsp=1", "{links}");
    }
    let error = UnwindError::ChainTooLong { rva: 0xA01 + 12 * 33 };
    assert_eq!(indirections(40).step(0x140), Err(error));
    let to_itself =
        Case::new().entry([0x100, 0x180, 0xA01]).put(0xA00, &bytes_of(&[0x100, 0x180, 0xA01]));
    let error = UnwindError::ChainTooLong { rva: 0xA01 };
    assert_eq!(to_itself.step(0x140), Err(error));
    assert_eq!(to_itself.coreclr().step(0x140), Err(error));
}

#[test]
fn a_parent_may_lie_beyond_the_image() {
    let beyond = [0x100, 0x180, 0x4_0000];
    let case = Case::new().function(CHUNK, &Info::new(0, &[]).parent(beyond));
    let error = UnwindError::UnwindDataUnmapped { rva: 0x4_0000 };
    assert_eq!(case.step(0x240), Err(error));
    assert_eq!(case.coreclr().step(0x240), Err(error));
}
