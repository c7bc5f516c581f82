//! Threads and modules, as another reader of the same dumps has them.

use crate::collection::{Dump, number};
use clr_dump::StoppedProcess as _;
use clr_unwind::Memory as _;

/// Numbers of the system calls in which threads of the collection wait (arch/x86/entry/syscalls of Linux).
const CALLS: [(&str, u64); 7] = [
    ("poll", 7),
    ("futex", 202),
    ("openat", 257),
    ("read", 0),
    ("clock_nanosleep", 230),
    ("recvmsg", 47),
    ("rt_sigtimedwait", 128),
];

#[test]
#[ignore = "needs the collection, in the folder that CLR_ORACLES names, and xz"]
fn threads_are_as_expected() {
    let mut count = 0;
    for dump in Dump::all() {
        let (process, expected) = (dump.open_alone(), dump.json("expected"));
        let threads = expected["threads"].as_array().unwrap();
        assert_eq!(process.threads().len(), threads.len(), "{}", dump.name);
        for expected in threads {
            let id = expected["tid"].as_u64().unwrap() as u32;
            let thread = process.thread(id).unwrap();
            let registers = [thread.registers.rip, thread.registers.rsp(), thread.registers.rbp()];
            let known = [&expected["rip"], &expected["rsp"], &expected["rbp"]].map(number);
            assert_eq!(registers, known, "{} {id}", dump.name);
            let call = expected["syscall"].as_str();
            let found = CALLS.iter().find(|(_, number)| Some(*number) == thread.system_call);
            assert_eq!(found.map(|(name, _)| *name), call, "{} {id}", dump.name);
            // The first word of a thread's control block, if the dump has it, is its own address.
            let itself = process.read_u64(thread.fs_base).unwrap_or(thread.fs_base);
            assert_eq!(itself, thread.fs_base, "{} {id}", dump.name);
            count += 1;
        }
    }
    println!("{count} threads");
}

#[test]
#[ignore = "needs the collection, in the folders that CLR_ORACLES and CLR_RUNTIMES name"]
fn modules_are_those_of_the_runtime() {
    for dump in Dump::all() {
        let (process, known) = (dump.open(), dump.json("clrmd"));
        let runtime = &known["runtime"];
        let runtimes: Vec<_> =
            process.modules().iter().filter(|module| module.name() == "libcoreclr.so").collect();
        let [module] = runtimes[..] else { panic!("{}: {runtimes:?}", dump.name) };
        assert_eq!(module.range.start, number(&runtime["base"]));
        let id = module.build_id().unwrap().to_string();
        assert_eq!(Some(id.as_str()), runtime["build_id"].as_str());
        assert_eq!(Some(module.path.as_str()), runtime["file"].as_str());
        if let Some(descriptor) = runtime["contract_descriptor"].as_str().filter(|it| *it != "0x0")
        {
            let symbol = module.symbol(&process, "DotNetRuntimeContractDescriptor").unwrap();
            assert_eq!(symbol.map(|it| format!("{it:#x}")).as_deref(), Some(descriptor));
        }
        for module in process.modules() {
            assert!(module.file.is_ok(), "{}: {}", dump.name, module.path);
        }
    }
}
