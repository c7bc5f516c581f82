//! Version 3, byte by byte as Microsoft's page has it.

use super::*;

const BEGIN: u32 = 0x100;
const END: u32 = 0x400;
const INFO: u32 = 0x800;
const FUNCTION: [u32; 3] = [BEGIN, END, INFO];
const BODY: u32 = 0x200;

/// Returns WOD_PUSH of a register by number.
const fn push(register: u8) -> u8 {
    4 | register << 3
}

/// Returns WOD_ALLOC_SMALL of 8 to 128 bytes.
const fn small(bytes: u8) -> u8 {
    8 | (bytes / 8 - 1) << 4
}

/// A description of an epilogue.
#[derive(Clone, Debug)]
struct Epilogue {
    flags: u8,
    distance: i16,
    first: u16,
    last: u16,
    ip_offsets: Vec<u16>,
}

impl Epilogue {
    fn new(distance: i16, first: u16, last: u16, ip_offsets: &[u16]) -> Self {
        Self { flags: 0, distance, first, last, ip_offsets: ip_offsets.to_vec() }
    }

    fn same_as_before(distance: i16) -> Self {
        Self::new(distance, 0, 0, &[])
    }

    fn flags(self, flags: u8) -> Self {
        Self { flags, ..self }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.flags | (self.ip_offsets.len() as u8) << 3];
        bytes.extend(self.distance.to_le_bytes());
        if self.ip_offsets.is_empty() {
            return bytes;
        }
        bytes.extend(self.first.to_le_bytes());
        for offset in [self.last].iter().chain(&self.ip_offsets) {
            match self.flags & 2 {
                0 => bytes.push(u8::try_from(*offset).unwrap()),
                _ => bytes.extend(offset.to_le_bytes()),
            }
        }
        bytes
    }
}

/// An UNWIND_INFO_V3.
#[derive(Clone, Debug, Default)]
struct Fragment {
    flags: u8,
    size: u16,
    ip_offsets: Vec<u16>,
    epilogues: Vec<Epilogue>,
    pool: Vec<u8>,
    trailer: Vec<u8>,
}

impl Fragment {
    /// Creates a fragment with a prologue of `size` bytes, the IP offsets of its operations, the last
    /// one first, and a pool.
    fn new(size: u16, ip_offsets: &[u16], pool: &[u8]) -> Self {
        let (ip_offsets, pool) = (ip_offsets.to_vec(), pool.to_vec());
        Self { size, ip_offsets, pool, ..Self::default() }
    }

    fn epilogue(mut self, epilogue: Epilogue) -> Self {
        self.epilogues.push(epilogue);
        self
    }

    fn large(self) -> Self {
        Self { flags: self.flags | 8, ..self }
    }

    fn parent(self, parent: [u32; 3]) -> Self {
        Self { flags: self.flags | 4, trailer: bytes_of(&parent), ..self }
    }

    fn handler(self, rva: u32) -> Self {
        Self { flags: self.flags | 1, trailer: bytes_of(&[rva]), ..self }
    }

    fn payload(&self) -> Vec<u8> {
        let large = self.flags & 8 != 0;
        let mut payload = Vec::new();
        if large {
            payload.push((self.size >> 8) as u8);
        }
        for offset in &self.ip_offsets {
            if large {
                payload.extend(offset.to_le_bytes());
            } else {
                payload.push(u8::try_from(*offset).unwrap());
            }
        }
        payload.extend(self.epilogues.iter().flat_map(Epilogue::bytes));
        payload.extend(&self.pool);
        payload
    }

    fn bytes(&self) -> Vec<u8> {
        let mut payload = self.payload();
        if payload.len() % 2 == 1 {
            payload.push(0xEE);
        }
        let counts = self.ip_offsets.len() as u8 | (self.epilogues.len() as u8) << 5;
        let mut bytes =
            vec![3 | self.flags << 3, self.size as u8, (payload.len() / 2) as u8, counts];
        bytes.extend(payload);
        if bytes.len() % 4 != 0 {
            bytes.extend([0xEE; 2]);
        }
        bytes.extend(&self.trailer);
        bytes
    }

    fn case(&self) -> Case {
        Case::new().put(INFO, &self.bytes()).entry(FUNCTION)
    }
}

/// Returns the step, which must be the same by precise rules and by those of ntdll.
fn at(case: &Case, rva: u32) -> String {
    let precise = case.at(rva);
    assert_eq!(case.rules(Rules::Ntdll).at(rva), precise, "{rva:#x}");
    precise
}

/// Returns the operations of a prologue, or the error of the first one that is wrong.
fn decoded(pool: &[u8], count: usize) -> Result<Vec<String>, UnwindError> {
    let bytes = Fragment::new(0, &vec![0; count], pool).bytes();
    let region = CodeRegion::heap(0, &bytes, FunctionTable::default()).unwrap();
    let info = UnwindInfoV3::read(&UnwindInfo::read(&region, 0).unwrap()).unwrap();
    info.prologue().codes().map(|code| code.map(|code| format!("{:?}", code.operation))).collect()
}

#[test]
fn operations_are_encoded_in_1_to_5_bytes() {
    for (bytes, operation) in [
        (&[0x1C][..], "Push(ExtendedGpr(3))"),
        (&[0xFC], "Push(ExtendedGpr(31))"),
        // The number of the first register is split over both bytes.
        (&[0x20 | 3 << 6, 7 << 3], "Push2(ExtendedGpr(3), ExtendedGpr(7))"),
        (&[0x20 | 1 << 6, 4 | 30 << 3], "Push2(ExtendedGpr(17), ExtendedGpr(30))"),
        (&[7 | 12 << 3], "Push2(ExtendedGpr(12), ExtendedGpr(13))"),
        (&[7 | 30 << 3], "Push2(ExtendedGpr(30), ExtendedGpr(31))"),
        (&[0x08], "Alloc(8)"),
        (&[0xF8], "Alloc(128)"),
        (&[2, 0x34, 0x12], "Alloc(37280)"),
        (&[2, 0xFF, 0xFF], "Alloc(524280)"),
        (&[1, 0x78, 0x56, 0x34, 0xF2], "Alloc(4063516280)"),
        (&[0, 0x5], "SetFpreg(Rbp, 0)"),
        (&[0, 0xFD], "SetFpreg(R13, 240)"),
        (&[6 | 3 << 3, 0xFF, 0xFF], "SaveNonvol(ExtendedGpr(3), 524280)"),
        (&[5 | 16 << 3, 1, 2, 3, 4], "SaveNonvol(ExtendedGpr(16), 67305985)"),
        (&[0x6A, 2, 0], "SaveXmm128(6, 32)"),
        (&[0xF9, 1, 2, 3, 4], "SaveXmm128(15, 67305985)"),
        (&[3, 1], "PushCanonicalFrame(1)"),
    ] {
        // A second operation shows the length of the first.
        let two = [bytes, &[0x1C]].concat();
        let expected = [operation, "Push(ExtendedGpr(3))"].map(str::to_owned).to_vec();
        assert_eq!(decoded(&two, 2), Ok(expected), "{bytes:02x?}");
        // Two IP offsets are before the pool. A padding byte may follow it.
        for len in (1..bytes.len()).filter(|len| len % 2 == 1 || *len + 1 < bytes.len()) {
            let cut = Fragment::new(0, &[0], &bytes[..len]).bytes();
            let padded = cut.len() - 5 > len;
            if !padded {
                let error = UnwindError::PayloadCutOff { rva: 5 };
                assert_eq!(decoded(&bytes[..len], 1), Err(error), "{bytes:02x?}, {len}");
            }
        }
    }
}

#[test]
fn other_operations_are_invalid() {
    let valid = |byte: u8| match byte {
        // A register after r31 does not exist.
        0xFF => false,
        _ => {
            byte & 7 >= 4 || matches!(byte & 15, 8..=10) || byte & 63 == 32 || matches!(byte, 0..=3)
        }
    };
    let mut invalid = 0;
    for byte in 0..=255 {
        let answer = decoded(&[byte, 0, 0, 0, 0], 1);
        if valid(byte) {
            assert!(answer.is_ok(), "{byte:#x}");
        } else {
            invalid += 1;
            let error = UnwindError::InvalidOperation { operation: byte, rva: 5 };
            assert_eq!(answer, Err(error), "{byte:#x}");
        }
    }
    assert_eq!(invalid, 73);
}

/// push rbp; sub rsp, 20h; mov \[rsp+10h\], rbx; movaps \[rsp\], xmm6: at 0, 1, 5 and 10.
fn saves() -> Fragment {
    let pool = [0x6A, 0, 0, 6 | 3 << 3, 2, 0, small(0x20), push(5)];
    Fragment::new(14, &[10, 5, 1, 0], &pool)
}

#[test]
fn an_operation_is_undone_once_its_instruction_has_run() {
    let case = saves().handler(0x1510).case();
    let entry = "Prologue rip=[0] rsp=1";
    let pushed = "Prologue rbp=[0] rip=[1] rsp=2";
    let allocated = "Prologue rbp=[4] rip=[5] rsp=6";
    let saved = "Prologue rbx=[2] rbp=[4] rip=[5] rsp=6";
    for (offset, expected) in [(0, entry), (1, pushed), (5, allocated), (10, saved)] {
        assert_eq!(at(&case, BEGIN + offset), expected, "{offset}");
    }
    // The payload has 12 bytes.
    let body = format!("Body rbx=[2] rbp=[4] xmm6=[0][1] rip=[5] rsp=6 handler=1510/{:x}", 0x814);
    assert_eq!(at(&case, BEGIN + 14), body);
    assert_eq!(at(&case.returned_to(), BODY), body);
}

#[test]
fn a_displacement_counts_from_rsp_at_its_instruction() {
    // mov [rsp+8], rbx; push rbp; sub rsp, 20h
    let case = Fragment::new(10, &[6, 5, 0], &[small(0x20), push(5), 6 | 3 << 3, 1, 0]).case();
    assert_eq!(at(&case, BODY), "Body rbx=[6] rbp=[4] rip=[5] rsp=6");
    assert_eq!(at(&case, BEGIN + 5), "Prologue rbx=[1] rip=[0] rsp=1");
    assert_eq!(at(&case, BEGIN + 6), "Prologue rbx=[2] rbp=[0] rip=[1] rsp=2");
}

#[test]
fn a_frame_register_tells_rsp_at_the_end_of_the_prologue() {
    // push rbp; sub rsp, 20h; lea rbp, [rsp+10h]; push rsi; mov [rsp+8], rbx; sub rsp, 8
    let pool = [small(8), 6 | 3 << 3, 1, 0, push(6), 0, 0x15, small(0x20), push(5)];
    let case = Fragment::new(20, &[15, 10, 9, 5, 1, 0], &pool).case();
    // rsp has moved since.
    let case = case.with(Rbp, slot(52));
    // lea set rbp two slots above slot 50, where rsi is below and rbx replaced the allocation.
    let expected = "Body rbx=[50] rbp=[54] rsi=[49] rip=[55] rsp=56 frame=50";
    assert_eq!(at(&case, BODY), expected);
    assert_eq!(at(&case.returned_to(), BODY), expected);
    // Before lea, rbp is the caller's.
    assert_eq!(at(&case, BEGIN + 5), "Prologue rbp=[4] rip=[5] rsp=6");
    let set = "Prologue rbp=[54] rip=[55] rsp=56 frame=50";
    assert_eq!(at(&case, BEGIN + 9), set);
    assert_eq!(at(&case, BEGIN + 10), "Prologue rbp=[54] rsi=[49] rip=[55] rsp=56 frame=50");
}

#[test]
fn any_register_may_be_the_frame_register() {
    for register in Gpr::ALL.into_iter().filter(|register| *register != Gpr::Rsp) {
        let case = Fragment::new(4, &[0], &[0, 0x20 | register.number()]).case();
        let case = case.with(register, slot(24));
        assert_eq!(at(&case, BODY), "Body rip=[20] rsp=21 frame=20", "{register:?}");
    }
}

#[test]
fn two_registers_are_pushed_by_one_instruction() {
    // push2 rbx, rdi; push2 r12, r13
    let case = Fragment::new(12, &[6, 0], &[7 | 12 << 3, 0xE0, 0x38]).case();
    assert_eq!(at(&case, BODY), "Body rbx=[3] rdi=[2] r12=[1] r13=[0] rip=[4] rsp=5");
    assert_eq!(at(&case, BEGIN + 6), "Prologue rbx=[1] rdi=[0] rip=[2] rsp=3");
}

#[test]
fn registers_that_only_apx_has_move_rsp_alone() {
    // push r16; push2 r31, rbx; push2 r20, r21; mov [rsp+8], r17
    let pool = [6 | 17 << 3, 1, 0, 7 | 20 << 3, 0x20 | 3 << 6, 7 | 3 << 3, push(16)];
    let case = Fragment::new(20, &[14, 8, 2, 0], &pool).case();
    assert_eq!(at(&case, BODY), "Body rbx=[2] rip=[5] rsp=6");
}

#[test]
fn a_large_prologue_has_16_bit_offsets() {
    let ip_offsets = [0x203, 0x1FF, 0];
    let fragment = Fragment::new(0x208, &ip_offsets, &[small(0x20), push(3), push(5)]).large();
    let case = fragment.case();
    assert_eq!(at(&case, BEGIN + 0x1FF), "Prologue rbp=[0] rip=[1] rsp=2");
    assert_eq!(at(&case, BEGIN + 0x203), "Prologue rbx=[0] rbp=[1] rip=[2] rsp=3");
    assert_eq!(at(&case, BEGIN + 0x207), "Prologue rbx=[4] rbp=[5] rip=[6] rsp=7");
    assert_eq!(at(&case, BEGIN + 0x208), "Body rbx=[4] rbp=[5] rip=[6] rsp=7");
}

#[test]
fn from_the_end_of_the_prologue_on_all_operations_apply() {
    // As in a cold part, whose frame was set up elsewhere.
    let case = Fragment::new(0, &[0, 7], &[small(0x20), push(3)]).case();
    assert_eq!(at(&case, BEGIN), "Body rbx=[4] rip=[5] rsp=6");
}

#[test]
fn without_operations_there_is_only_the_return_address() {
    let case = Fragment::default().handler(0x1510).case();
    assert_eq!(at(&case, BEGIN), format!("Body rip=[0] rsp=1 handler=1510/{:x}", INFO + 8));
}

const SAVES: &str = "Body rbx=[2] rbp=[4] xmm6=[0][1] rip=[5] rsp=6";

/// movaps xmm6, \[rsp\]; mov rbx, \[rsp+10h\]; add rsp, 20h; pop rbp; ret: at 0, 4, 9, 13 and 14.
fn epilogue(distance: i16) -> Epilogue {
    Epilogue::new(distance, 0, 14, &[0, 4, 9, 13])
}

fn assert_epilogue(case: &Case, start: u32) {
    let whole = "EpilogueCodes rbx=[2] rbp=[4] xmm6=[0][1] rip=[5] rsp=6";
    for (offset, expected) in [
        (0, whole),
        (4, "EpilogueCodes rbx=[2] rbp=[4] rip=[5] rsp=6"),
        (9, "EpilogueCodes rbp=[4] rip=[5] rsp=6"),
        (13, "EpilogueCodes rbp=[0] rip=[1] rsp=2"),
        (14, "EpilogueCodes rip=[0] rsp=1"),
    ] {
        assert_eq!(at(case, start + offset), expected, "{start:#x} + {offset}");
    }
    assert_eq!(at(case, start - 1), SAVES);
    assert_eq!(case.returned_to().at(start), SAVES, "callers are in the body");
}

#[test]
fn an_epilogue_undoes_what_its_rest_does() {
    let case = saves().epilogue(epilogue(0x80)).case();
    assert_epilogue(&case, BEGIN + 0x80);
    assert_eq!(at(&case, BEGIN + 0x80 + 15), SAVES, "after the last instruction");
    assert_epilogue(&saves().epilogue(epilogue(-15)).case(), END - 15);
}

#[test]
fn each_epilogue_counts_from_the_one_before() {
    let same = Epilogue::same_as_before;
    let ascending = saves().epilogue(epilogue(0x40)).epilogue(same(0x20)).epilogue(epilogue(0x18));
    let descending = saves().epilogue(epilogue(-0x20)).epilogue(same(-0x20)).epilogue(same(-0x40));
    for (case, starts) in [
        (ascending.case(), [0x140, 0x160, 0x178]),
        (descending.case(), [END - 0x20, END - 0x40, END - 0x80]),
    ] {
        for start in starts {
            assert_epilogue(&case, start);
        }
    }
}

#[test]
fn an_epilogue_may_have_operations_of_its_own() {
    // The prologue saves rbx; this epilogue pops rcx instead of adding 8.
    let pool = [small(8), push(3), push(1), push(3)];
    let fragment = Fragment::new(5, &[1, 0], &pool).epilogue(Epilogue::new(0x100, 2, 2, &[0, 1]));
    let case = fragment.case();
    assert_eq!(at(&case, BODY), "EpilogueCodes rcx=[0] rbx=[1] rip=[2] rsp=3");
    assert_eq!(at(&case, BODY + 1), "EpilogueCodes rbx=[0] rip=[1] rsp=2");
    assert_eq!(at(&case, BODY + 2), "EpilogueCodes rip=[0] rsp=1");
    assert_eq!(at(&case, BODY + 3), "Body rbx=[1] rip=[2] rsp=3");
}

#[test]
fn a_large_epilogue_has_16_bit_offsets() {
    let large = Epilogue::new(0x40, 0, 0x205, &[0x100, 0x204]).flags(2);
    let fragment = Fragment::new(5, &[1, 0], &[small(0x20), push(3)]);
    let last = Epilogue::same_as_before(0x210);
    let case = fragment.epilogue(large).epilogue(last).case();
    let whole = "EpilogueCodes rbx=[4] rip=[5] rsp=6";
    assert_eq!(at(&case, BEGIN + 0x40), whole);
    assert_eq!(at(&case, BEGIN + 0x140), whole);
    assert_eq!(at(&case, BEGIN + 0x141), "EpilogueCodes rbx=[0] rip=[1] rsp=2");
    assert_eq!(at(&case, BEGIN + 0x245), "EpilogueCodes rip=[0] rsp=1");
    assert_eq!(at(&case, BEGIN + 0x246), "Body rbx=[4] rip=[5] rsp=6");
    assert_eq!(at(&case, BEGIN + 0x250), whole);
}

#[test]
fn an_epilogue_may_begin_with_the_frame_register() {
    // push rbp; sub rsp, 20h; lea rbp, [rsp+10h]; …; lea rsp, [rbp-10h]; add rsp, 20h; pop rbp; ret
    let fragment = Fragment::new(10, &[5, 1, 0], &[0, 0x15, small(0x20), push(5)])
        .epilogue(Epilogue::new(-10, 0, 9, &[0, 4, 8]));
    let case = fragment.case().with(Rbp, slot(52));
    let start = END - 10;
    assert_eq!(at(&case, start), "EpilogueCodes rbp=[54] rip=[55] rsp=56 frame=50");
    assert_eq!(at(&case, start + 4), "EpilogueCodes rbp=[4] rip=[5] rsp=6");
    assert_eq!(at(&case, start + 8), "EpilogueCodes rbp=[0] rip=[1] rsp=2");
    assert_eq!(at(&case, start + 9), "EpilogueCodes rip=[0] rsp=1");
}

#[test]
fn an_epilogue_without_a_descriptor_is_found_by_its_instructions() {
    // add rsp, 20h; pop rbp; ret
    let code = [0x48, 0x83, 0xC4, 0x20, 0x5D, 0xC3];
    let fragment = Fragment::new(5, &[1, 0], &[small(0x20), push(5)]);
    for fragment in [fragment.clone(), fragment.epilogue(Epilogue::new(-1, 0, 0, &[0, 0]))] {
        let case = fragment.case().put(BODY, &code);
        assert_eq!(case.at(BODY + 4), "EpilogueInstructions rbp=[0] rip=[1] rsp=2");
        assert_eq!(case.at(BODY + 5), "EpilogueInstructions rip=[0] rsp=1");
        let body = "Body rbp=[4] rip=[5] rsp=6";
        assert_eq!(case.rules(Rules::Ntdll).at(BODY + 4), body, "ntdll believes the descriptors");
    }
    // lea rsp, [rbp+10h]; pop rbp; ret, where rbp is the frame register, or is not.
    let code = [0x48, 0x8D, 0x65, 0x10, 0x5D, 0xC3];
    let with_frame = Fragment::new(10, &[5, 1, 0], &[0, 0x15, small(0x20), push(5)]).case();
    let case = with_frame.put(BODY, &code).with(Rbp, slot(52));
    assert_eq!(case.at(BODY), "EpilogueInstructions rbp=[54] rip=[55] rsp=56");
    let without = Fragment::new(5, &[1, 0], &[small(0x20), push(5)]).case().put(BODY, &code);
    assert_eq!(without.at(BODY), "Body rbp=[4] rip=[5] rsp=6");
}

#[test]
fn a_jump_into_version_3_is_a_tail_call_only_where_no_frame_is_set_up() {
    const OTHER: [u32; 3] = [0x500, 0x580, 0x900];
    let pushes = Fragment::new(2, &[1, 0], &[push(3), push(5)]);
    let caller = Info::new(1, &[(1, Op::Push(Rbp))]);
    let jump = |target: u32, other: &Fragment| {
        // pop rbp; jmp target
        let [a, b, ..] = target.wrapping_sub(BODY + 6).to_le_bytes();
        Case::new()
            .function(FUNCTION, &caller)
            .put(OTHER[2], &other.bytes())
            .entry(OTHER)
            .put(BODY, &[0x5D, 0xE9, a, b, 0, 0])
            .at(BODY)
    };
    let tail_call = "EpilogueInstructions rbp=[0] rip=[1] rsp=2";
    let body = "Body rbp=[0] rip=[1] rsp=2";
    assert_eq!(jump(0x500, &pushes), tail_call);
    assert_eq!(jump(0x501, &pushes), body);
    assert_eq!(jump(0x540, &pushes), body);
    assert_eq!(jump(0x540, &Fragment::default()), tail_call);
    assert_eq!(jump(0x500, &Fragment::default().parent(FUNCTION)), body);
    assert_eq!(jump(0x500, &Fragment::new(0, &[0], &[push(3)])), body, "a cold part");
    assert_eq!(jump(0x500, &Fragment::new(0, &[0], &[0x0B])), body, "broken");
}

#[test]
fn a_machine_frame_is_there_from_the_start() {
    // sub rsp, 20h after the processor's push.
    let case = Fragment::new(4, &[0, 0], &[small(0x20), 3, 0]).case().with_slot(3, slot(40));
    assert_eq!(at(&case, BEGIN), "Prologue rip=[0] rsp=40 interrupted");
    let case = case.with_slot(7, slot(50));
    assert_eq!(at(&case, BODY), "Body rip=[4] rsp=50 interrupted");
    let with_error = Fragment::new(4, &[0, 0], &[small(0x20), 3, 1]).case().with_slot(8, slot(50));
    assert_eq!(at(&with_error, BODY), "Body rip=[5] rsp=50 interrupted");
    // add rsp, 20h; iretq
    let epilogue = Epilogue::new(-6, 0, 4, &[0, 4]);
    let case = Fragment::new(4, &[0, 0], &[small(0x20), 3, 0]).epilogue(epilogue).case();
    let case = case.with_slot(3, slot(40)).with_slot(7, slot(50));
    assert_eq!(at(&case, END - 6), "EpilogueCodes rip=[4] rsp=50 interrupted");
    assert_eq!(at(&case, END - 2), "EpilogueCodes rip=[0] rsp=40 interrupted");
}

#[test]
fn frames_of_other_types_are_errors_where_they_would_be_undone() {
    for frame_type in 2..=255 {
        let fragment = Fragment::new(4, &[2, 0], &[3, frame_type, push(3)]);
        let error = UnwindError::UnknownFrameType { frame_type, rva: INFO + 6 };
        assert_eq!(fragment.case().step(BODY), Err(error));
        assert_eq!(fragment.case().at(BEGIN + 1), "Prologue rbx=[0] rip=[1] rsp=2");
    }
}

const CHUNK: [u32; 3] = [0x500, 0x580, 0x900];

/// Returns a function that pushes rbx and allocates 0x20 bytes, and a chunk of it.
fn chunk(chunk: &Fragment) -> Case {
    let parent = Fragment::new(5, &[1, 0], &[small(0x20), push(3)]).handler(0x1510);
    let chunk = chunk.clone().parent(FUNCTION);
    parent.case().put(CHUNK[2], &chunk.bytes()).entry(CHUNK)
}

#[test]
fn a_chunk_is_undone_before_its_parent() {
    let case = chunk(&Fragment::new(1, &[0], &[push(6)]));
    let handler = format!("handler=1510/{:x}", INFO + 4 + 4 + 4);
    assert_eq!(at(&case, 0x500), format!("Body rbx=[4] rip=[5] rsp=6 {handler}"));
    assert_eq!(at(&case, 0x501), format!("Body rbx=[5] rsi=[0] rip=[6] rsp=7 {handler}"));
    assert_eq!(
        at(&case.returned_to(), 0x550),
        format!("Body rbx=[5] rsi=[0] rip=[6] rsp=7 {handler}")
    );
}

#[test]
fn an_epilogue_of_a_chunk_leaves_the_function_or_returns_to_the_parent() {
    let pool = [push(6), push(6), small(0x20), push(3)];
    let fragment = Fragment::new(1, &[0], &pool);
    // pop rsi; add rsp, 20h; pop rbx; ret
    let leaves = Epilogue::new(-7, 1, 6, &[0, 1, 5]);
    let case = chunk(&fragment.clone().epilogue(leaves));
    let start = CHUNK[1] - 7;
    assert_eq!(at(&case, start), "EpilogueCodes rbx=[5] rsi=[0] rip=[6] rsp=7");
    assert_eq!(at(&case, start + 5), "EpilogueCodes rbx=[0] rip=[1] rsp=2");
    assert_eq!(at(&case, start + 6), "EpilogueCodes rip=[0] rsp=1");
    // pop rsi; jmp parent
    let transfers = Epilogue::new(-3, 0, 1, &[0]).flags(1);
    let case = chunk(&fragment.clone().epilogue(transfers.clone()));
    let start = CHUNK[1] - 3;
    assert_eq!(at(&case, start), "EpilogueCodes rbx=[5] rsi=[0] rip=[6] rsp=7");
    assert_eq!(at(&case, start + 1), "EpilogueCodes rbx=[4] rip=[5] rsp=6");
    // A fragment without a parent cannot return to it.
    let root = fragment.epilogue(transfers).case();
    let error = UnwindError::InvalidEpilogue { rva: INFO + 4 + 1 + 7 };
    assert_eq!(root.step(END - 3), Err(error));
    assert_eq!(root.step(END - 4).map(|_| ()), Ok(()));
}

#[test]
fn a_frame_register_of_the_parent_serves_its_chunks() {
    let parent = Fragment::new(10, &[5, 1, 0], &[0, 0x15, small(0x20), push(5)]);
    let chunk = Fragment::default().parent(FUNCTION);
    let case = parent.case().put(CHUNK[2], &chunk.bytes()).entry(CHUNK).with(Rbp, slot(52));
    let expected = "Body rbp=[54] rip=[55] rsp=56 frame=50";
    assert_eq!(at(&case, 0x540), expected);
    assert_eq!(at(&case.returned_to(), 0x540), expected);
}

#[test]
fn chains_may_mix_versions() {
    let old = Info::new(7, &[(7, Op::Small(0x20)), (1, Op::Push(Rbx))]);
    let new = Fragment::new(5, &[1, 0], &[small(0x20), push(3)]);
    let mixed = [
        Case::new()
            .function(FUNCTION, &old)
            .put(CHUNK[2], &Fragment::new(1, &[0], &[push(6)]).parent(FUNCTION).bytes())
            .entry(CHUNK),
        new.case().function(CHUNK, &Info::new(1, &[(1, Op::Push(Rsi))]).parent(FUNCTION)),
    ];
    for case in mixed {
        let expected = "Body rbx=[5] rsi=[0] rip=[6] rsp=7";
        assert_eq!(at(&case, 0x540), expected);
        assert_eq!(at(&case.returned_to(), 0x540), expected);
        // pop rsi; add rsp, 20h; pop rbx; ret
        let code = [0x5E, 0x48, 0x83, 0xC4, 0x20, 0x5B, 0xC3];
        let case = case.put(0x550, &code);
        assert_eq!(case.at(0x555), "EpilogueInstructions rbx=[0] rip=[1] rsp=2");
    }
    // The first frame register in the chain is the base of the saves of versions 1 and 2.
    let old = Info::new(9, &[(9, Op::Save(Rsi, 8)), (5, Op::SetFrame), (1, Op::Push(Rbp))]);
    let chunk = Fragment::default().parent(FUNCTION);
    let case = Case::new()
        .function(FUNCTION, &old.frame(Rbp, 0x10))
        .put(CHUNK[2], &chunk.bytes())
        .entry(CHUNK)
        .with(Rbp, slot(52));
    assert_eq!(at(&case, 0x540), "Body rbp=[50] rsi=[51] rip=[51] rsp=52 frame=50");
}

#[test]
fn endless_chains_are_given_up() {
    let case = Fragment::default().parent(FUNCTION).case();
    assert_eq!(case.step(BODY), Err(UnwindError::ChainTooLong { rva: INFO }));
}

#[test]
fn a_payload_must_hold_its_parts() {
    let parts = saves().epilogue(epilogue(0x80)).epilogue(Epilogue::same_as_before(0x40)).bytes();
    // The header, 4 IP offsets, 10 bytes of a descriptor, 3 of another, and the pool.
    let pool = 4 + 4 + 10 + 3;
    for words in 0..=parts[2] {
        let mut bytes = parts.clone();
        bytes[2] = words;
        let end = 4 + 2 * usize::from(words);
        let case = Case::new().put(INFO, &bytes).entry(FUNCTION);
        let answer = case.step(BODY).map(|_| ());
        if end < pool + 8 {
            let Err(UnwindError::PayloadCutOff { rva }) = answer else { panic!("{answer:?}") };
            assert!((INFO..=INFO + end as u32).contains(&rva), "{words}: {rva:#x}");
        } else {
            assert_eq!(answer, Ok(()), "{words}");
        }
    }
    // The section ends before the payload.
    let case = saves().case().cut(INFO + 4 + 6);
    assert_eq!(case.step(BODY), Err(UnwindError::UnwindDataUnmapped { rva: INFO }));
    // An epilogue's operations begin after the pool.
    let beyond = saves().epilogue(Epilogue::new(0x80, 10, 14, &[0])).case();
    assert_eq!(beyond.step(BODY), Err(UnwindError::PayloadCutOff { rva: INFO + 4 + 4 + 7 }));
}

#[test]
fn epilogues_that_cannot_be_are_errors() {
    let invalid = |rva| Err(UnwindError::InvalidEpilogue { rva: INFO + rva });
    let same = Epilogue::same_as_before;
    // Nothing to inherit from.
    assert_eq!(saves().epilogue(same(0x80)).case().step(BODY), invalid(8));
    for (first, second) in [(0x80, -0x10), (-0x20, 0x10), (-0x20, 0)] {
        let case = saves().epilogue(epilogue(first)).epilogue(same(second)).case();
        assert_eq!(case.step(BODY), invalid(8 + 10), "{first:#x}, {second:#x}");
    }
    for outside in [0x300, -0x301] {
        assert_eq!(saves().epilogue(epilogue(outside)).case().step(BODY), invalid(8));
    }
    // Callers are in the body, where epilogues do not matter.
    let case = saves().epilogue(same(0x80)).case();
    assert_eq!(case.returned_to().at(BODY), SAVES);
}

#[test]
fn damaged_bytes_give_an_answer_or_an_error() {
    let whole = saves().epilogue(epilogue(0x80)).epilogue(Epilogue::same_as_before(-0x40));
    let bytes = whole.handler(0x1510).bytes();
    for at in 0..bytes.len() {
        for value in 0..=255 {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            let case = Case::new().put(INFO, &bytes).entry(FUNCTION);
            for rva in [BEGIN, BEGIN + 5, BEGIN + 0x84, BODY] {
                let _: Result<_, _> = case.step(rva);
                let _: Result<_, _> = case.returned_to().step(rva);
            }
        }
    }
}

#[test]
fn descriptors_are_printed_in_words() {
    let bytes = saves().epilogue(epilogue(0x80).flags(1)).epilogue(Epilogue::same_as_before(0x40));
    let bytes = bytes.bytes();
    let region = CodeRegion::heap(BASE, &bytes, FunctionTable::default()).unwrap();
    let info = UnwindInfoV3::read(&UnwindInfo::read(&region, 0).unwrap()).unwrap();
    assert_eq!((info.prologue_size(), info.prologue().count()), (14, 4));
    let function = RuntimeFunction { begin: BEGIN, end: END, unwind_info: 0 };
    let found: Vec<_> = info
        .epilogues(function)
        .map(|epilogue| epilogue.map(|e| (e.start, e.last, e.is_transfer, e.winding.count())))
        .collect();
    assert_eq!(found, [Ok((0x180, 14, true, 4)), Ok((0x1C0, 14, true, 4))]);
    let codes: Vec<_> =
        info.prologue().codes().map(|code| code.map(|c| (c.ip_offset, c.rva))).collect();
    let pool = 4 + 4 + 10 + 3;
    assert_eq!(codes, [Ok((10, pool)), Ok((5, pool + 3)), Ok((1, pool + 6)), Ok((0, pool + 7))]);
}
