//! The rules of today's ntdll, where they differ from CoreCLR's copy. The facts are those of wine's
//! test of `RtlVirtualUnwind`, which passes on Windows 11.

use super::*;

const BEGIN: u32 = 0x100;
const INFO: u32 = 0x800;

/// Returns the step at `rva` by the rules of ntdll and by those of CoreCLR.
fn both(case: &Case, rva: u32) -> [String; 2] {
    [Rules::Ntdll, Rules::CoreClr].map(|rules| case.rules(rules).at(rva))
}

#[test]
fn a_function_without_codes_has_no_epilogue() {
    // push rbp; pop rbp; ret
    let case = Case::new()
        .function([BEGIN, BEGIN + 3, INFO], &Info::new(0, &[]).handler(1, 0x1510))
        .put(BEGIN, &[0x55, 0x5D, 0xC3]);
    let [ntdll, coreclr] = both(&case, BEGIN + 1);
    assert_eq!(ntdll, format!("Body rip=[0] rsp=1 handler=1510/{:x}", INFO + 8));
    assert_eq!(coreclr, "EpilogueInstructions rbp=[0] rip=[1] rsp=2");
    // Execution agrees with CoreCLR.
    assert_eq!(case.at(BEGIN + 1), coreclr);
}

#[test]
fn a_chunk_without_codes_has_the_epilogues_of_its_parent() {
    let parent = [BEGIN, BEGIN + 0x20, INFO];
    let chunk = [BEGIN + 0x20, BEGIN + 0x40, INFO + 0x40];
    // pop rbx; ret
    let case = Case::new()
        .function(parent, &Info::new(1, &[(1, Push(Rbx))]))
        .function(chunk, &Info::new(0, &[]).parent(parent))
        .put(BEGIN + 0x30, &[0x5B, 0xC3]);
    assert_eq!(both(&case, BEGIN + 0x31), ["EpilogueInstructions rip=[0] rsp=1"; 2]);
}

#[test]
fn the_establisher_frame_in_an_epilogue_is_below_the_callers_stack() {
    let codes = [
        (0x16, Save(Rbx, 0x120)),
        (0x0F, SetFrame),
        (0x0A, Op::Large(0x110)),
        (3, Push(Rbp)),
        (1, Push(Rdi)),
    ];
    // lea rsp, [rbp+0E0h]; pop rbp; pop rdi; ret
    let code = [0x48, 0x8D, 0xA5, 0xE0, 0, 0, 0, 0x5D, 0x5F, 0xC3];
    let at = 0x140;
    let case = Case::new()
        .function([BEGIN, 0x200, INFO], &Info::new(0x16, &codes).frame(Rbp, 0x30))
        .put(at, &code)
        // Six slots above the frame base, slot 2.
        .with(Rbp, slot(2 + 6));
    let body = "Body rbx=[38] rbp=[36] rdi=[37] rip=[38] rsp=39 frame=2";
    assert_eq!(both(&case, at - 1), [body; 2]);
    let step = |text: &str, frame: &str| format!("EpilogueInstructions {text}{frame}");
    for (offset, text, frame) in [
        (0, "rbp=[36] rdi=[37] rip=[38] rsp=39", " frame=38"),
        (7, "rbp=[0] rdi=[1] rip=[2] rsp=3", " frame=2"),
        (8, "rdi=[0] rip=[1] rsp=2", " frame=1"),
        (9, "rip=[0] rsp=1", ""),
    ] {
        let [ntdll, coreclr] = both(&case, at + offset);
        assert_eq!(ntdll, step(text, frame));
        assert_eq!(coreclr, step(text, " frame=2"));
    }
}

#[test]
fn without_a_frame_register_the_establisher_frame_is_rsp() {
    let info = Info::new(6, &[(6, Small(0x20)), (2, Push(Rbx)), (1, Push(Rbp))]);
    // add rsp, 20h; pop rbx; pop rbp; ret
    let case = Case::new()
        .function([BEGIN, 0x200, INFO], &info)
        .put(0x140, &[0x48, 0x83, 0xC4, 0x20, 0x5B, 0x5D, 0xC3]);
    let expected = "EpilogueInstructions rbx=[4] rbp=[5] rip=[6] rsp=7";
    assert_eq!(both(&case, 0x140), [expected; 2]);
}
