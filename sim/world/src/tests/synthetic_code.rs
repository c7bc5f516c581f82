//! Code and threads of synthetic processes.

use super::*;
use clr_runtime::code_manager::Funclet;

fn thread() -> SyntheticThread {
    SyntheticThread::new(Generation::CoreClr31Windows)
}

/// Returns the `len` bytes of code at an address.
fn code(process: &SyntheticProcess, address: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    process.runtime().memory.borrow().read(address, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_return_address_follows_a_call() {
    let process = thread()
        .native("coreclr.dll!Leaf+0x80", 0x1F_E000)
        .native_leaf("coreclr.dll!Begin+0x1", 0x1F_E040)
        .native_leaf("coreclr.dll!Called+0x2", 0x1F_E048)
        .jit("App.Main+0x40", 0x1F_E050)
        .build()
        .unwrap();
    let before = |label: &str| code(&process, process.address(label).unwrap() - 2, 2);
    assert_eq!(before("App.Main+0x40"), [0xFF, 0xD0], "call rax");
    assert_eq!(before("coreclr.dll!Called+0x2"), [0xFF, 0xD0], "at the first instruction");
    assert_eq!(before("coreclr.dll!Begin+0x2"), [0x90, 0x90], "no room for a call");
    assert_eq!(before("coreclr.dll!Leaf+0x80"), [0x90, 0x90], "the leaf has not called");
}

/// Only methods with a GS cookie are made with an epilogue: only for them does code at its end matter.
#[test]
fn methods_with_a_cookie_have_an_epilogue_where_it_fits() {
    // add rsp, 0x18; pop r12; pop rbx; ret
    const EPILOGUE: [u8; 11] = [0x48, 0x81, 0xC4, 0x18, 0, 0, 0, 0x41, 0x5C, 0x5B, 0xC3];
    let with = |offset: u32, cookie: bool| {
        let one =
            thread().jit(&format!("App.One+{offset:#x}"), 0x1F_E000).saves(&[Gpr::Rbx, Gpr::R12]);
        let one = if cookie { one.gs_cookie(0x20) } else { one };
        one.jit("App.Two+0x20", 0x1F_E030).build().unwrap()
    };
    let end_of = |process: &SyntheticProcess| {
        let end = process.address("App.One").unwrap() + u64::from(SIZE);
        code(process, end - EPILOGUE.len() as u64, EPILOGUE.len() + 1)
    };
    let whole: Vec<u8> = EPILOGUE.into_iter().chain([0x90]).collect();
    let none = vec![0x90; EPILOGUE.len() + 1];
    let fits = SIZE - EPILOGUE.len() as u32;
    assert_eq!(end_of(&with(0x20, true)), whole);
    assert_eq!(end_of(&with(fits, true)), whole, "the thread is at its first instruction");
    assert_eq!(end_of(&with(fits + 1, true)), none, "the code of the activation is there");
    assert_eq!(end_of(&with(0x20, false)), none);
    // The first bytes of the next function are its own.
    assert_eq!(code(&with(0x20, true), CODE[0] + 0x400, 4), [0x90; 4]);
}

#[test]
fn code_of_another_function_does_not_count_for_the_size() {
    let process = thread()
        .jit("App.One+0x800", 0x1F_E000)
        .jit("App.Two+0x20", 0x1F_E040)
        .ready_to_run("App.Two+0x900", 0x1F_E080)
        .jit("App.Two+0x30", 0x1F_E0C0)
        .in_funclet(Funclet::Handler)
        .jit("App.Three+0x20", 0x1F_E100)
        .build()
        .unwrap();
    let starts: Vec<u64> =
        [0, 1, 3, 4].map(|row| process.registers(row).unwrap().rip & !0x3FF).into();
    assert_eq!(
        starts.iter().map(|at| at - CODE[0]).collect::<Vec<_>>(),
        [0x800, 0xC00, 0x1000, 0x1400]
    );
    // The address after a function is the first one of the next.
    assert_eq!(process.label(CODE[0] + 0xC00), "App.Two+0x0");
    assert_eq!(process.label(CODE[0] + 0xBFF), "App.One+0xbff");
}

#[test]
fn the_runtime_has_the_code_with_its_names_and_sizes() {
    let process = thread()
        .native("coreclr.dll!JIT_New+0x80", 0x1F_E000)
        .jit("App.Foo@2+0x40", 0x1F_E080)
        .gs_cookie(0x10)
        .jit("App.Main+0x20", 0x1F_E0C0)
        .build()
        .unwrap();
    let runtime = process.runtime();
    let foo = process.registers(1).unwrap().rip;
    let found = runtime.code.find(foo).unwrap();
    assert_eq!(found.method.name, "App.Foo");
    assert_eq!((found.code.start, found.code.size), (foo - 0x40, u64::from(SIZE)));
    assert_eq!(found.code.gs_cookie, Some(0x10));
    let main = runtime.code.find(process.registers(2).unwrap().rip).unwrap();
    assert_eq!((main.method.name.as_str(), main.code.gs_cookie), ("App.Main", None));
    assert_ne!(main.method.id, found.method.id);
    let leaf = process.registers(0).unwrap().rip - 0x80;
    let native = runtime.native.function(leaf).unwrap();
    assert_eq!((native.start, native.end), (leaf, leaf + u64::from(SIZE)));
    assert_eq!((native.module.as_str(), native.name.as_str()), ("coreclr.dll", "JIT_New"));
}

#[test]
fn frames_have_room_for_what_their_functions_save() {
    let with = |at: u64, caller: u64| {
        let thread = thread().jit("App.One+0x20", at).saves(&[Gpr::Rbx]);
        thread.jit("App.Two+0x20", caller).build().map(|_| ())
    };
    let error = Err(SyntheticError::Activation { index: 0 });
    assert_eq!(with(0x1F_E000, 0x1F_E010), Ok(()));
    assert_eq!(with(0x1F_E000, 0x1F_E018), Ok(()));
    assert_eq!(with(0x1F_E000, 0x1F_E008), error, "no room for rbx");
    assert_eq!(with(0x1F_E000, 0x1F_E014), error, "not a multiple of 8");
    // The largest frame that UNWIND_INFO can describe here, and the next one.
    let large = |size: u64| {
        let mut thread = thread();
        thread.stack = (0x10_0000, 0x1_0000_0000);
        let thread =
            thread.jit("App.One+0x20", 0x10_0000).jit("App.Two+0x20", 0x10_0000 + size + 8);
        thread.build().err()
    };
    assert_ne!(large(0x7FFF_FFF8), Some(SyntheticError::Activation { index: 0 }));
    assert_eq!(large(0x8000_0000), Some(SyntheticError::Activation { index: 0 }));
}

#[test]
fn all_code_is_before_the_unwind_data() {
    let with = |count: u64, last: u32| {
        let mut thread = thread();
        for number in 0..count {
            let label = format!("App.F{number}+{:#x}", MAX_OFFSET - 1);
            thread = thread.jit(&label, 0x1F_0000 + 0x40 * number);
        }
        thread.jit(&format!("App.Last+{last:#x}"), 0x1F_0000 + 0x40 * count).build().err()
    };
    assert_eq!(with(63, SIZE - 1), None, "4 MiB");
    assert_eq!(with(63, SIZE), Some(SyntheticError::Size));
}

#[test]
fn threads_are_as_described() {
    let described = SyntheticThread {
        gc_special: true,
        life: ThreadLife::Created,
        leaves_cooperative_mode: true,
        resists_suspension: true,
        ..thread()
    };
    let process = described.build().unwrap();
    let runtime = process.runtime();
    let threads = runtime.threads.borrow();
    let handles: Vec<_> = threads.iter().map(|thread| (thread.os, thread.handle)).collect();
    assert_eq!(handles, [(SELF, 0x104), (NATIVE_WALKER, 0x108), (MANAGED_WALKER, 0x10C)]);
    let flags = |index: usize| {
        let thread = &threads[index];
        (
            thread.is_gc_special,
            thread.leaves_cooperative_mode,
            thread.resists_suspension,
            thread.life,
        )
    };
    assert_eq!(flags(0), (true, true, true, ThreadLife::Created));
    assert_eq!(flags(2), (false, false, false, ThreadLife::default()));
    // Without activations rip is in no code, and rsp in the stack.
    let registers = threads[0].current.registers;
    assert!(registers.rip != 0 && runtime.code.find(registers.rip).is_none());
    assert_eq!(registers.rsp(), 0x20_0000 - 0x100);
}

/// A Frame leads to the first activation of its function that ends above it.
#[test]
fn a_frame_leads_to_the_activation_around_it() {
    let returns_to = |at: u64| {
        let process = thread()
            .jit("App.Foo+0x20", 0x1F_E000)
            .jit("App.Foo+0x20", 0x1F_E100)
            .jit("App.Main+0x20", 0x1F_E200)
            .frame(FrameKind::InlinedCall, at, "App.Foo")
            .build()
            .unwrap();
        let runtime = process.runtime();
        let memory = runtime.memory.borrow();
        // The fields of the Frame that name rsp of its method, wherever they are.
        let words = (0..16).map(|word| memory.read_u64(at + 8 * word).unwrap_or_default());
        words.filter(|word| [0x1F_E000, 0x1F_E100].contains(word)).collect::<Vec<_>>()
    };
    assert_eq!(returns_to(0x1F_E040), [0x1F_E000]);
    assert_eq!(returns_to(0x1F_E0F8), [0x1F_E000]);
    assert_eq!(returns_to(0x1F_E100), [0x1F_E100]);
}

#[test]
fn cookies_are_where_the_code_has_them() {
    let mut with =
        thread().jit("App.Foo+0x20", 0x1F_E000).gs_cookie(0x10).jit("App.Main+0x20", 0x1F_E100);
    with.process = Process { gs_cookie: Some(0xC00C_1E00), ..Process::default() };
    let process = with.build().unwrap();
    let runtime = process.runtime();
    assert_eq!(runtime.memory.borrow().read_u64(0x1F_E100 - 0x10), Ok(0xC00C_1E00));
}
