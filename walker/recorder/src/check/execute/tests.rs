use super::*;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock};

// The functions to execute, and labels in them.
core::arch::global_asm!(
    // As in libcoreclr.so of .NET Core 3.1, an epilogue whose row is the body's.
    ".globl executed_epilogue",
    "executed_epilogue: pop rbp; movzx eax, al; ret",
    // A call, a loop, a system call (getpid), a jump by a return, a tail jump.
    ".globl executed_body",
    "executed_body: sub rsp, 24; call 5f; mov ecx, 3",
    "2: dec ecx; jnz 2b",
    "mov eax, 39; syscall",
    "lea rax, [rip + 3f]; push rax; ret",
    "3: add rsp, 24; jmp 5f",
    "5: ret",
    // Ten million turns, then a call that leads to the same function, and a jump through a register.
    ".globl executed_loop",
    "executed_loop: push rbx; mov ebx, 10000000; cmp r15, 0xF15; jne 3f",
    "2: dec ebx; jnz 2b",
    "call executed_deeper",
    "3: pop rbx; lea rax, [rip + 4f]; jmp rax",
    "4: ret",
    "executed_deeper: push r15; xor r15d, r15d; call executed_loop; pop r15; ret",
    // A lock that another thread has, and a condition that another one sets.
    ".globl executed_lock",
    "executed_lock: mov ebx, 2; lea rdi, [rsp - 64]; mov dword ptr [rdi], 2",
    "2: xor esi, esi; mov edx, 2; xor r10d, r10d; mov eax, 202; syscall",
    "mov eax, 2; xchg eax, [rdi]; test eax, eax; jnz 2b",
    "3: mov dword ptr [rdi], 0",
    "4: xor esi, esi; xor edx, edx; xor r10d, r10d; mov eax, 202; syscall",
    "cmp dword ptr [rdi], 0; je 4b",
    "ret",
    // Writes to file 700, which it maps.
    ".globl executed_map",
    "executed_map: xor edi, edi; mov esi, 4096; mov edx, 3; mov r10d, 1; mov r8d, 700; xor r9d, r9d",
    "mov eax, 9; syscall; mov dword ptr [rax], 0x42; ret",
    // Writes a function to file 702, which it maps, and calls it by another mapping (r14).
    ".globl executed_written_code",
    "executed_written_code: xor edi, edi; mov esi, 4096; mov edx, 3; mov r10d, 1; mov r8d, 702; xor r9d, r9d",
    "mov eax, 9; syscall; mov byte ptr [rax], 0xC3; call r14; ret",
    // As RtlRestoreContext, which goes on in another frame.
    ".globl executed_restore",
    "executed_restore: lea rax, [rip + executed_spin]; mov [rsp + 16], rax; lea rsp, [rsp + 16]; ret",
    // The same where the address was there before.
    ".globl executed_restore_rsp",
    "executed_restore_rsp: lea rax, [rsp + 8]; push rax; mov rsp, [rsp]; ret",
    ".globl executed_iret",
    "executed_iret: mov eax, 1; iretq",
    ".globl executed_spin",
    "executed_spin: jmp executed_spin",
    ".globl executed_fault",
    "executed_fault: xor eax, eax; mov [rax], eax; ret",
    ".globl executed_wait",
    "executed_wait: mov eax, 202; syscall; jmp executed_wait",
    ".globl executed_exit",
    "executed_exit: mov eax, 60; syscall; ret",
    // Maps memory, in what it calls.
    ".globl executed_call_of_map",
    "executed_call_of_map: mov r8d, -1; call 2f; ret",
    "2: xor edi, edi; mov esi, 4096; mov edx, 3; mov r10d, 0x22; xor r9d, r9d; mov eax, 9; syscall",
    "mov [rax], eax; ret",
    ".globl executed_call_of_fault",
    "executed_call_of_fault: call executed_fault; ret",
    ".globl executed_call_of_spin",
    "executed_call_of_spin: call executed_spin; ret",
    // Has a pointer in xmm0 when it sends itself a signal: the arguments are the pointer, process and thread.
    ".globl executed_vector",
    "executed_vector: movq xmm0, rdi; mov edi, esi; mov esi, edx; mov edx, 12; mov eax, 234; syscall",
    "movq rax, xmm0; mov eax, [rax]; ret",
);

unsafe extern "C" {
    fn executed_epilogue();
    fn executed_body();
    fn executed_loop();
    fn executed_lock();
    fn executed_map();
    fn executed_written_code();
    fn executed_restore();
    fn executed_restore_rsp();
    fn executed_iret();
    fn executed_spin();
    fn executed_fault();
    fn executed_wait();
    fn executed_exit();
    fn executed_call_of_map();
    fn executed_call_of_fault();
    fn executed_call_of_spin();
    fn executed_vector(word: &u32, process: i32, thread: i32) -> u32;
}

/// Executes the code at `code` on a stack with `words`, in memory that is no thread's. Returns ip, and rsp as a
/// number of words.
fn run(code: unsafe extern "C" fn(), words: &[u64]) -> Result<(u64, u64), Unjudged> {
    execute(code, words).map(|(returned, rsp)| (returned.ip, (returned.registers[4] - rsp) / 8))
}

/// Executes the code at `code` on a stack with `words`, in memory that is no thread's. Returns rsp before that, too.
fn execute(code: unsafe extern "C" fn(), words: &[u64]) -> Result<(Returned, u64), Unjudged> {
    execute_with(&Forks::new(1), 0, code, words)
}

/// The same in a copy of `forks`, with this value of r14.
fn execute_with(
    forks: &Forks,
    r14: u64,
    code: unsafe extern "C" fn(),
    words: &[u64],
) -> Result<(Returned, u64), Unjudged> {
    let mut room = vec![0_u128; 4096];
    let used = 32 << 10;
    for (at, word) in (used / 8..).zip(words) {
        room[at / 2] |= u128::from(*word) << (at % 2 * 64);
    }
    let from = room.as_ptr() as u64;
    let mut sample = Sample::new(1 << 20);
    sample.copy = room.iter().flat_map(|words| words.to_le_bytes()).take(48 << 10).collect();
    sample.copy_from = from;
    sample.registers.rip = code as *const () as u64;
    let rsp = from + used as u64;
    sample.registers.set(Gpr::Rsp, rsp);
    sample.registers.set(Gpr::R14, r14);
    sample.registers.set(Gpr::R15, 0xF15);
    forks.make(&sample.registers);
    // What this process does after that is none of the copy's.
    room.fill(0);
    let returned = leaf(&sample, &forks.of(&sample).unwrap())?;
    assert_eq!(returned.registers[15], 0xF15, "callees preserve it");
    Ok((returned, rsp))
}

#[test]
fn a_return_to_an_address_that_was_written_is_not_certain() {
    let is_certain = |code| execute(code, &[0x1234, 7, 8]).unwrap().0.is_certain;
    assert!(is_certain(executed_epilogue) && is_certain(executed_body));
    assert!(!is_certain(executed_restore) && !is_certain(executed_loop));
    assert!(!is_certain(executed_restore_rsp));
    // Address, segment, flags, rsp and segment.
    let context = [0x1234, 0x33, 0x202, 0x5678, 0x2B];
    assert!(!execute(executed_iret, &context).unwrap().0.is_certain);
}

#[test]
fn a_leaf_returns_to_its_caller() {
    assert_eq!(run(executed_epilogue, &[7, 0x1234, 0x5678]), Ok((0x1234, 2)));
    assert_eq!(run(executed_body, &[0x1234, 0x5678]), Ok((0x1234, 1)));
    assert_eq!(run(executed_loop, &[0x1234, 0x5678]), Ok((0x1234, 1)));
    assert_eq!(run(executed_lock, &[0x1234, 0x5678]), Ok((0x1234, 1)));
    assert_eq!(run(executed_call_of_map, &[0x1234, 0x5678]), Ok((0x1234, 1)));
}

#[test]
fn what_a_leaf_writes_to_shared_memory_stays_in_the_copy() {
    // SAFETY: the descriptor 700 and the new mapping are this test's own.
    let shared = unsafe {
        let file = libc::memfd_create(c"code".as_ptr(), 0);
        assert_eq!(libc::dup2(file, 700), 700);
        assert_eq!(libc::ftruncate(file, 4096), 0);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(null_mut(), 4096, protection, libc::MAP_SHARED, file, 0).cast::<u32>()
    };
    assert_eq!(run(executed_map, &[0x1234]), Ok((0x1234, 1)));
    // SAFETY: mapped above.
    assert_eq!(unsafe { shared.read_volatile() }, 0);
}

#[test]
fn code_that_a_copy_writes_by_one_mapping_is_in_its_other() {
    // SAFETY: the descriptor 702 and the new mapping are this test's own.
    let code = unsafe {
        let file = libc::memfd_create(c"doublemapper".as_ptr(), 0);
        assert_eq!(libc::dup2(file, 702), 702);
        libc::close(file);
        assert_eq!(libc::ftruncate(702, 4096), 0);
        assert_eq!(libc::pwrite(702, [0xCC_u8].as_ptr().cast(), 1, 0), 1);
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        libc::mmap(null_mut(), 4096, protection, libc::MAP_SHARED, 702, 0).cast::<u8>()
    };
    let forks = Forks::new(1);
    let (returned, rsp) =
        execute_with(&forks, code as u64, executed_written_code, &[0x1234]).unwrap();
    assert_eq!((returned.ip, returned.registers[4]), (0x1234, rsp + 8));
    // SAFETY: mapped above.
    assert_eq!(unsafe { code.read_volatile() }, 0xCC, "the process's own is as it was");
}

#[test]
fn a_copy_is_for_the_registers_that_it_was_made_with() {
    let forks = Forks::new(2);
    let mut sample = Sample::new(0);
    sample.registers.rip = 5;
    for _ in 0..2 {
        forks.make(&sample.registers);
    }
    sample.registers.rip = 6;
    assert!(forks.of(&sample).is_none());
    forks.make(&sample.registers);
    assert_eq!(forks.unused.load(Ordering::Relaxed), 1, "that of the first request");
    assert!(forks.of(&sample).is_some() && forks.any().is_none());
    let none = Forks::new(0);
    none.make(&sample.registers);
    assert!(none.any().is_none());
}

#[test]
fn a_fault_of_what_a_leaf_calls_is_its_handlers() {
    /// Goes on after `mov [rax], eax`, of two bytes.
    extern "C" fn skip(_: c_int, _: *mut c_void, context: *mut libc::ucontext_t) {
        // SAFETY: the kernel passes the context.
        unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] += 2 };
    }
    // SAFETY: nothing else of these tests faults, but in a copy.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = skip as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGSEGV, &raw const action, null_mut());
    }
    let (returned, rsp) = execute(executed_call_of_fault, &[0x1234]).unwrap();
    assert_eq!((returned.ip, returned.registers[4] - rsp), (0x1234, 8));
    assert!(!returned.is_certain, "an exception may end the leaf's frame");
}

#[test]
fn a_copy_has_the_vector_registers_that_the_thread_had() {
    static FORKS: OnceLock<Forks> = OnceLock::new();
    static SEEN: Mutex<Option<(Registers, Vec<u8>)>> = Mutex::new(None);
    extern "C" fn interrupt(_: c_int, _: *mut c_void, context: *const c_void) {
        // SAFETY: the kernel passes the context; the stack goes on above rsp.
        unsafe {
            let context = context.cast::<[u8; Registers::LINUX_UCONTEXT_SIZE]>();
            let registers = Registers::from_linux_ucontext(&*context);
            let stack = std::slice::from_raw_parts(registers.rsp() as *const u8, 64);
            *SEEN.lock().unwrap() = Some((registers, stack.to_vec()));
            std::arch::asm!("pxor xmm0, xmm0", out("xmm0") _);
            FORKS.get().unwrap().make(&registers);
        }
    }
    assert!(FORKS.set(Forks::new(1)).is_ok());
    // SAFETY: SIGUSR2 is this test's own.
    let loaded = unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = interrupt as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGUSR2, &raw const action, null_mut());
        executed_vector(&7, libc::getpid(), libc::gettid())
    };
    assert_eq!(loaded, 7);
    let (registers, copy) = SEEN.lock().unwrap().take().unwrap();
    let mut sample = Sample::new(64);
    (sample.copy, sample.copy_from, sample.registers) = (copy, registers.rsp(), registers);
    let returned = leaf(&sample, &FORKS.get().unwrap().of(&sample).unwrap());
    assert_eq!(
        returned.map(|returned| (returned.is_certain, returned.registers[0])),
        Ok((true, 7))
    );
}

#[test]
fn what_does_not_return_is_not_judged() {
    for (code, why) in [
        (executed_spin as unsafe extern "C" fn(), Unjudged::Long),
        (executed_fault, Unjudged::Faults),
        (executed_wait, Unjudged::Waits),
        (executed_exit, Unjudged::Exits),
        (executed_call_of_spin, Unjudged::CalledForEver),
    ] {
        assert_eq!(run(code, &[0x1234]), Err(why));
    }
}

#[test]
fn instructions_are_told_apart() {
    for (code, expected) in [
        (&[0xC3][..], Kind::Return),
        (&[0xF3, 0xC3], Kind::Return),
        (&[0xC2, 8, 0], Kind::Return),
        (&[0xE8, 0, 0, 0, 0], Kind::Call),
        (&[0x41, 0xFF, 0xD2], Kind::Call),
        (&[0x2E, 0xFF, 0x15, 0, 0, 0, 0], Kind::Call),
        (&[0xFF, 0xE0], Kind::Other),
        (&[0x0F, 0x05], Kind::SystemCall),
        (&[0x0F, 0x0B], Kind::Other),
        (&[0x90], Kind::Other),
    ] {
        let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
        assert!(kind(&instruction) == expected, "{code:02x?}");
    }
}
