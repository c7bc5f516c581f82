//! Each kind of Frame, in each generation that has it.

use super::*;

const METHOD: u64 = 0x7FF8_1000_0040;
const RETURN: u64 = 0x7FF8_2000_1234;

/// A Frame placed by hand: its memory, and its expected contents.
struct Hand {
    memory: Words,
    said: Said,
}

impl Hand {
    /// Creates a Frame that leads nowhere.
    fn new(generation: Generation, kind: FrameKind, fields: &[(u64, u64)]) -> Self {
        let said = Said {
            next: NEXT,
            active: false,
            resumable: false,
            function: 0,
            return_address: 0,
            context: before(),
        };
        Self { memory: frame(generation, kind, fields), said: said.leading_to(0) }
    }

    /// Places the callee-saved registers from `first` on.
    fn saved(mut self, generation: Generation, first: u64) -> Self {
        for (register, n) in callee_saved(generation).iter().zip(0..) {
            self.memory.put(first + 8 * n, value_of(*register));
            self.said.context.registers.set(*register, value_of(*register));
        }
        self
    }

    fn put(mut self, at: u64, value: u64) -> Self {
        self.memory.put(at, value);
        self
    }

    fn function(mut self) -> Self {
        self.said.function = METHOD;
        self
    }

    /// Makes the Frame lead to this place.
    fn leads(mut self, rsp: u64) -> Self {
        self.said = self.said.leading_to(RETURN);
        self.said.context.registers.set(Rsp, rsp);
        self
    }

    /// Places a whole CONTEXT at `at` (contract §1.7).
    fn context(mut self, at: u64) -> Self {
        let flags = 0x0810_004B;
        self = self.put(at + 0x30, 0x1F80_0000_0000 | flags).put(at + 0xF8, RETURN);
        for (register, n) in Gpr::ALL.into_iter().zip(0..) {
            self = self.put(at + 0x78 + 8 * n, value_of(register));
            self.said.context.registers.set(register, value_of(register));
        }
        for n in 6..16 {
            self = self.put(at + 0x1A0 + 16 * n, n).put(at + 0x1A8 + 16 * n, 0xF10A7 + n);
            let value = u128::from(0xF10A7 + n) << 64 | u128::from(n);
            self.said.context.registers.xmm[n as usize - 6] = value;
        }
        self.said = self.said.leading_to(RETURN);
        self.said.context.flags = flags as u32;
        self
    }
}

impl Said {
    fn leading_to(mut self, address: u64) -> Self {
        self.return_address = address;
        self.context.registers.rip = address;
        self
    }
}

/// Creates a Frame of this kind, by the class name and the tables of contract §3.5.
fn hand(generation: Generation, kind: FrameKind) -> Hand {
    let windows = is_windows(generation);
    let new = |fields: &[(u64, u64)]| Hand::new(generation, kind, fields);
    match kind.name() {
        "InlinedCallFrame" => {
            let [sp, ra, fp] =
                if is_new(generation) { [0x18, 0x20, 0x28] } else { [0x20, 0x28, 0x30] };
            let fields = [(0x10, METHOD), (sp, 0x1F_0100), (ra, RETURN), (fp, value_of(Rbp))];
            let mut hand = new(&fields).function().leads(0x1F_0100);
            hand.said.active = true;
            // All other registers keep their values (C-098).
            hand.said.context.registers.set(Rbp, value_of(Rbp));
            hand
        }
        "ComPlusMethodFrame"
        | "PInvokeCalliFrame"
        | "PrestubMethodFrame"
        | "CallCountingHelperFrame"
        | "StubDispatchFrame"
        | "ResolveHelperFrame"
        | "ExternalMethodFrame"
        | "DynamicHelperFrame"
        | "SecureDelegateFrame"
        | "MulticastFrame" => {
            let fields = [(0x10, BLOCK), (0x18, METHOD)];
            transition(new(&fields), generation).function()
        }
        "StubHelperFrame" => transition(new(&[(0x10, BLOCK)]), generation),
        name if name.starts_with("HelperMethodFrame") => {
            let (pointers, returns) = if windows { (0x80, 0xC0) } else { (0x70, 0xA0) };
            let fields = [(0x10, METHOD), (0x30, RETURN), (0x38, 0x1F_0400), (returns, 0x1F_03F8)];
            let mut hand = new(&fields).function().leads(0x1F_0400).saved(generation, SLOTS);
            for n in 0..callee_saved(generation).len() as u64 {
                hand = hand.put(AT + pointers + 8 * n, SLOTS + 8 * n);
            }
            hand
        }
        "HijackFrame" => {
            // The return values come first: rax, on Unix rdx, since .NET 10 rcx. On Windows rsp is
            // stored since .NET 8.
            let (is_8, is_10) =
                (generation.family().is_core_since(8), generation.family().is_core_since(10));
            let (first, rsp, behind) = match (windows, is_8, is_10) {
                (true, false, _) => (8, None, 0x50),
                (true, true, false) => (8, Some(0x48), 0x58),
                (true, true, true) => (0x10, Some(0x50), 0x60),
                (false, _, false) => (0x10, None, 0x48),
                (false, _, true) => (0x18, None, 0x50),
            };
            let mut hand = new(&[(0x10, RETURN), (0x20, BLOCK)]).leads(BLOCK + behind);
            if let Some(rsp) = rsp {
                hand = hand.put(BLOCK + rsp, BLOCK + behind);
            }
            hand.saved(generation, BLOCK + first)
        }
        name @ ("ResumableFrame" | "RedirectedThreadFrame" | "FuncEvalFrame") => {
            let mut hand = new(&[(0x10, BLOCK)]).context(BLOCK);
            hand.said.resumable = name != "FuncEvalFrame";
            // Observed: 0x10000B of 0x10004B, and 0xC010001B of 0xC010005B (contract §3.7).
            if hand.said.resumable && generation.family().is_core_since(10) {
                hand.said.context.flags = 0x0810_000B;
            }
            hand
        }
        "FaultingExceptionFrame" => {
            let mut hand = new(&[]).context(AT + 0x20);
            // Observed: 0x810000B of 0x810004B (contract §3.7).
            if generation.family().legacy_exceptions {
                hand.said.context.flags = 0x0810_000B;
            }
            hand
        }
        "SoftwareExceptionFrame" => {
            let context = AT + 0x120;
            let mut hand = new(&[(0x10, RETURN), (0x120 + 0xF8, RETURN)]).leads(value_of(Rsp));
            for register in callee_saved(generation).iter().chain(&[Rsp]) {
                let at = context + 0x78 + 8 * u64::from(register.number());
                hand = hand.put(at, value_of(*register));
                hand.said.context.registers.set(*register, value_of(*register));
            }
            hand
        }
        "TailCallFrame" => {
            let behind = 0x18 + 8 * callee_saved(generation).len() as u64;
            new(&[(behind, RETURN)]).leads(AT + behind + 8).saved(generation, AT + 0x18)
        }
        "ComMethodFrame" | "ComPrestubMethodFrame" | "UMThkCallFrame" => {
            let mut hand = new(&[(0x18, RETURN)]).put(NEXT, 0);
            hand.said = hand.said.leading_to(RETURN);
            hand
        }
        "ProtectValueClassFrame"
        | "DebuggerClassInitMarkFrame"
        | "DebuggerExitFrame"
        | "DebuggerU2MCatchHandlerFrame"
        | "ExceptionFilterFrame"
        | "GCFrame"
        | "ContextTransitionFrame"
        | "ProtectByRefsFrame"
        | "DebuggerSecurityCodeMarkFrame"
        | "AssumeByrefFromJITStack" => new(&[]),
        name => panic!("{name} is not in the table"),
    }
}

/// Places a TransitionBlock at [`BLOCK`]: on Unix, argument registers precede the saved ones.
fn transition(hand: Hand, generation: Generation) -> Hand {
    let (first, returns, size) =
        if is_windows(generation) { (0, 0x40, 0x48) } else { (0x30, 0x60, 0x68) };
    hand.put(BLOCK + returns, RETURN).leads(BLOCK + size).saved(generation, BLOCK + first)
}

#[test]
fn frames_placed_by_hand_are_read() {
    for kind in FrameKind::ALL {
        for generation in generations_of(*kind) {
            let Hand { memory, said } = hand(generation, *kind);
            assert_eq!(ask(generation, &memory), Ok(said), "{kind}, {generation}");
        }
    }
}

#[test]
fn every_field_is_needed_and_named_if_it_cannot_be_read() {
    for kind in FrameKind::ALL {
        for generation in generations_of(*kind) {
            let Hand { memory, .. } = hand(generation, *kind);
            let returns = if is_windows(generation) { 0xC0 } else { 0xA0 };
            for at in memory.addresses() {
                // Only the code that completes a HelperMethodFrame checks if it is complete.
                if kind.name().starts_with("HelperMethodFrame") && at == AT + returns {
                    continue;
                }
                let error = ask(generation, &memory.without(at)).unwrap_err();
                let Unreadable { address, len } = error;
                let reported = address..address + u64::from(len);
                assert!(
                    reported.start <= at + 7 && at < reported.end,
                    "{kind}, {generation}: {error}"
                );
            }
        }
    }
}

/// The Frame classes of each runtime (contract §3.5).
#[test]
fn generations_have_the_kinds_of_the_contract() {
    let kinds = |names: &[&'static str]| names.to_vec();
    let old = kinds(&["GCFrame", "ContextTransitionFrame"]);
    let until_9 = kinds(&[
        "HelperMethodFrame",
        "HelperMethodFrame_1OBJ",
        "HelperMethodFrame_2OBJ",
        "HelperMethodFrame_3OBJ",
        "HelperMethodFrame_PROTECTOBJ",
    ]);
    let from_8 = kinds(&["CallCountingHelperFrame"]);
    let from_10 = kinds(&["SoftwareExceptionFrame"]);
    for generation in Generation::ALL {
        let is_8 = generation.family().is_core_since(8);
        let newest = generation.family().is_core_since(10);
        for (names, exist) in
            [(&old, !is_8), (&until_9, !newest), (&from_8, is_8), (&from_10, newest)]
        {
            for name in names {
                let kind = FrameKind::from_name(name).unwrap();
                assert_eq!(kind.exists_in(generation), exist, "{name}, {generation}");
            }
        }
    }
}
