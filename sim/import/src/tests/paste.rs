//! Texts of debuggers. Those without another source are cut from `clrstack` and others in dumps of .NET 8 and 10.

use crate::{ImportError, Note, Paste, PasteFormat};
use clr_runtime::generation::Generation;
use clr_scenario::{Scenario, SnapshotReport};

/// Imports the thread with an id, and checks that the text gives on its runtimes what it says. Returns the text.
fn import(text: &str, id: u32, format: PasteFormat) -> String {
    let paste = Paste::read(text).unwrap();
    assert_eq!(paste.format, format);
    let thread = paste.threads.iter().find(|thread| thread.id == id).unwrap();
    let observation = paste.observation(thread, None).unwrap();
    let made = observation.text("Made by a test.", paste.calls(thread, None)).unwrap();
    let scenario = Scenario::parse(&made).unwrap_or_else(|error| panic!("{error}\n{made}"));
    for generation in observation.on.iter() {
        let reports = scenario.run_on(generation).unwrap();
        assert!(reports.iter().all(SnapshotReport::is_right), "{generation}: {made}");
    }
    made
}

/// Checks that a text has lines.
fn assert_has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|it| it.trim().starts_with(line)), "{line}:\n{text}");
    }
}

const CLR_STACK: &str = "\
 DBG   ID     OSID ThreadOBJ           State GC Mode     GC Alloc Context                  Domain           Count Apt Exception
   0    1     5604 0000562473D54900  2020020 Preemptive  00007F6F2280D700:00007F6F2280F680 0000562473D397A0 -00001 Ukn
   9    5     5661 0000562473EA2190  2021220 Cooperative 0000000000000000:0000000000000000 0000562473D397A0 -00001 Ukn
OS Thread Id: 0x5604
        Child SP               IP Call Site
00007FFE072C1278 00007fafb3cd0f16 [HelperMethodFrame: 00007ffe072c1278] System.Threading.Thread.SleepInternal(Int32)
00007FFE072C13A0 00007FAF347B84B1 System.Threading.Thread.Sleep(Int32)
00007FFE072C13B0 00007FAF35373D49 Shop.Program.Wait(System.Collections.Generic.List`1<System.Threading.Thread>, System.String, Double) [./Hang.cs @ 134]
OS Thread Id: 0x5604
        Child SP               IP Call Site
00007FFE072C1278                  [HelperMethodFrame: 00007ffe072c1278] System.Private.CoreLib.dll!System.Threading.Thread.SleepInternal(Int32)
00007FFE072C13A0 00007FAF347B84B1 System.Private.CoreLib.dll!System.Threading.Thread.Sleep(Int32) + 17
00007FFE072C13B0 00007FAF35373D49 Hang.dll!Shop.Program.Wait(System.Collections.Generic.List`1<System.Threading.Thread>, System.String, Double) + 265 [./Hang.cs @ 134]
OS Thread Id: 0x5661
        Child SP               IP Call Site
00007FAFAD1FBB80 00007FAF35373A5F Shop.Program.Spin() [./Hang.cs @ 193]
OS Thread Id: 0x5662
        Child SP               IP Call Site
00007F18704AE5A0 00007f1878076eae [SoftwareExceptionFrame: 00007f18704ae5a0]
00007F18704AF390 00007F17F9B244AF Shop.Program.Catches(Int32) [./Hang.cs @ 208]
";

#[test]
fn clr_stack_has_frames_and_modes() {
    let text = import(CLR_STACK, 0x5604, PasteFormat::ClrStack);
    assert_has(
        &text,
        &[
            "jit \"System.Threading.Thread.Sleep+0x11\"",
            "jit \"Shop.Program.Wait+0x109\"",
            "frame \"HelperMethodFrame\"",
            "// Not in the source: native frames",
            "// Not in the source: the runtime's version",
            "frame \"System.Threading.Thread.Sleep+0x11\"",
            "result \"S_OK\"",
        ],
    );
    // .NET 10 has no such Frames.
    assert!(!text.contains("net10") && text.contains("net8"), "{text}");
    assert!(!text.contains("Hang") && !text.contains("7ffe072c"), "{text}");
    assert_has(&import(CLR_STACK, 0x5661, PasteFormat::ClrStack), &["mode \"cooperative\""]);
}

#[test]
fn what_an_exception_hides_is_not_guessed() {
    let paste = Paste::read(CLR_STACK).unwrap();
    let thread = paste.threads.iter().find(|thread| thread.id == 0x5662).unwrap();
    let refused = paste.observation(thread, Some(Generation::Net10Unix)).unwrap_err();
    assert_eq!(refused, ImportError::Exception(0x5662));
}

#[test]
fn parallel_stacks_share_frames() {
    let text = "
________________________________________________
 ~~~~ 37a1
    1 System.Threading.Thread.Sleep(Int32)
    1 Shop.Program.Main(String[])


________________________________________________
      ~~~~ 382f
         1 System.Threading.Monitor.Wait(Object, Int32)
         1 Shop.Program.WaitForever()
      ~~~~ 3830,3831
         2 Shop.Program.NapForever()
    3 System.Threading.Thread.StartCallback()


==> 4 threads with 2 roots
";
    let paste = Paste::read(text).unwrap();
    let counts: Vec<_> =
        paste.threads.iter().map(|thread| (thread.id, thread.frame_count())).collect();
    assert_eq!(counts, [(0x37a1, 2), (0x382f, 3), (0x3830, 2), (0x3831, 2)]);
    let made = import(text, 0x3831, PasteFormat::ParallelStacks);
    assert_has(
        &made,
        &[
            "jit \"Shop.Program.NapForever+0x20\"",
            "jit \"System.Threading.Thread.StartCallback+0x20\"",
            "// Not in the source: the runtime's Frames",
            "// Not in the source: stack pointers",
            "// Not in the source: offsets in functions",
        ],
    );
}

/// The form is that of documentation in dotnet/diagnostics#1702 and dotnet/docs#21618.
#[test]
fn dotnet_stack_has_one_line_for_native_frames() {
    let text = "\
Thread (0x151c):
  [Native Frames]
  System.Private.CoreLib!System.Threading.Thread.Sleep(int32)
  Shop!Shop.Program.Main(class System.String[])

Thread (0x5678):
  [Native Frames]
";
    let made = import(text, 0x151c, PasteFormat::DotnetStack);
    assert_has(&made, &["native \"native+0x20\"", "jit \"System.Threading.Thread.Sleep+0x20\""]);
    // Without managed frames there is nothing to call for.
    assert!(!import(text, 0x5678, PasteFormat::DotnetStack).contains("\nsnapshot"));
}

const GDB: &str = "\
Thread 12 (Thread 0x7fe8ed9286c0 (LWP 11850) \"orders\"):
#0  __futex_abstimed_wait_common64 (private=0, cancel=true, abstime=0x0, op=393) at ./nptl/futex-internal.c:57
#1  0x00007fe8f4eb95d8 in __pthread_cond_wait_common (abstime=0x0, clockid=0) at ./nptl/pthread_cond_wait.c:503
#2  0x00007fe8f49fb192 in ?? () from target:/opt/dotnet/shared/Microsoft.NETCore.App/10.0.15/libcoreclr.so
#3  0x00007fe8f49fb193 in (anonymous namespace)::join_thread (this=0x0) at prof.cpp:10
#4  0x00007fdc6c000e58 in ?? ()
#5  0x00007fe876a00558 in ?? ()
";

#[test]
fn gdb_loses_its_way_in_managed_code() {
    let made = import(GDB, 11850, PasteFormat::Gdb);
    assert_has(
        &made,
        &[
            "native \"__futex_abstimed_wait_common64+0x20\"",
            "native \"libcoreclr.so!unknown+0x20\"",
            "native \"anonymous.join_thread+0x20\"",
            "// Not in the source: the last 2 lines of the stack",
        ],
    );
    assert!(!made.contains("\nsnapshot") && !made.contains("/opt"), "{made}");
    assert_eq!(Paste::read(GDB).unwrap().version, Some(Generation::Net10Unix));
}

/// The form is that of dotnet/corefx#9416 and dotnet/coreclr#26579.
#[test]
fn lldb_prints_module_and_function() {
    let text = "\
(lldb) bt all
  thread #1: tid = 16997, 0x00007f98105ff414 libpthread.so.0`__pthread_cond_wait + 196, name = 'corerun'
    frame #0: 0x00007f98105ff414 libpthread.so.0`__pthread_cond_wait + 196
    frame #1: 0x00007f980f28ce40 libcoreclr.so`Thread::DoAppropriateWait(int, void**, int) + 80
    frame #2: 0x00007f9795afa473
* thread #2, name = 'dotnet'
  * frame #0: 0x00007f71a70698f8 libpthread.so.0`__pthread_cond_wait(cond=0x0000000001524228) at pthread_cond_wait.c:655
";
    let made = import(text, 16997, PasteFormat::Lldb);
    assert_has(
        &made,
        &[
            "native \"libpthread.so.0!__pthread_cond_wait+0xc4\"",
            "native \"libcoreclr.so!Thread.DoAppropriateWait+0x50\"",
            "// Not in the source: the last 1 lines",
        ],
    );
    assert_has(
        &import(text, 2, PasteFormat::Lldb),
        &["native \"libpthread.so.0!__pthread_cond_wait+0x20\""],
    );
}

/// The form of WinDbg's `kn` is that of dotnet/runtime#42375, with managed frames as in dotnet/coreclr#18680; that of `kv` is that
/// of dotnet/runtime#89297.
#[test]
fn windbg_prints_stack_pointers() {
    let text = "\
   3  Id: 1e40.1f2c Suspend: 1 Teb: 00000035`4f1f4000 Unfrozen
 # Child-SP          RetAddr           Call Site
00 00000035`5210bd68 00007ff9`af73818e ntdll!ZwDelayExecution+0x14 [minkernel\\ntdll\\usrstubs.asm @ 595]
01 00000035`5210bd70 00007ff9`638bdce7 KERNELBASE!SleepEx+0x9e
02 (Inline Function) --------`-------- coreclr!ClrSleepEx+0xb [F:\\src\\hosting.cpp @ 259]
03 00000035`5210be10 00007ff9`63751e30 coreclr!__SwitchToThread+0x1459df
04 00000035`5210be50 00007ff9`8c0a4579 System_Private_CoreLib!System.Threading.Tasks.TaskAwaiter+<>c.<Wait>b__12_0(System.Action)+0x140
05 00000035`5210bf00 00007fff`f58c971b     : 000000cc`b917e858 00000000`00000000 : coreclr!RunMainInternal+0x11f
";
    let made = import(text, 0x1f2c, PasteFormat::WinDbg);
    assert_has(
        &made,
        &[
            "native \"ntdll!ZwDelayExecution+0x14\"",
            "jit \"System.Threading.Tasks.TaskAwaiter+<>c.<Wait>b__12_0+0x140\"",
            "native \"coreclr!RunMainInternal+0x11f\"",
        ],
    );
    assert!(made.contains("windows") && !made.contains("unix"), "{made}");
}

/// The form is that of perf-script(1), with the names that the runtime writes to perf's map (dotnet/coreclr#24967 for the tier): it is
/// assumed, and compared with no thread.
#[test]
fn perf_prints_samples() {
    let text = "\
dotnet  1234/1240  [001]  5023.123456:     250000 cpu-clock:u:
            7f2b3c1d2e3f clock_nanosleep+0x2f (/usr/lib/x86_64-linux-gnu/libc.so.6)
            7f2b3a1d2e3f void [Shop] Shop.Program::Main(string[])[Tier0]+0x1f (/tmp/perf-1234.map)
            7f2b3b1d2e3f CallDescrWorkerInternal+0x7b (/usr/share/dotnet/libcoreclr.so)

dotnet  1234/1241  [001]  5023.123457:     250000 cpu-clock:u:
            7f2b3a1d2e3f [unknown] ([unknown])
";
    let made = import(text, 1240, PasteFormat::Perf);
    assert_has(
        &made,
        &[
            "native \"libc.so.6!clock_nanosleep+0x2f\"",
            "jit \"Shop.Program.Main+0x1f\"",
            "native \"libcoreclr.so!CallDescrWorkerInternal+0x7b\"",
        ],
    );
    assert!(!made.contains("/tmp") && !made.contains("/usr"), "{made}");
    let paste = Paste::read(text).unwrap();
    assert_eq!(paste.observation(&paste.threads[1], None).unwrap_err(), ImportError::NoFrames);
}

#[test]
fn a_crash_report_has_texts_alone() {
    let text = r#"{ "payload": { "configuration": { "version": "8.0.3426.52217 @Commit: b455" }, "threads": [ {
        "is_managed": "true", "native_thread_id": "0x6f72", "stack_frames": [
        { "is_managed": "false", "stack_pointer": "0x7ffc188c8700", "native_image_offset": "0x85f16",
          "native_module": "libc.so.6" },
        { "is_managed": "true", "stack_pointer": "0x7ffc188c9420", "native_offset": "0xe3",
          "method_name": "Shop.Program.Main(System.String[])", "filename": "Hang.dll" } ] } ] } }"#;
    let made = import(text, 0x6f72, PasteFormat::CrashReport);
    assert_has(&made, &["native \"libc.so.6!0x85f16+0x20\"", "jit \"Shop.Program.Main+0xe3\""]);
    assert!(made.contains("net8-unix"), "{made}");
    let cut = &text[..200];
    assert!(matches!(Paste::read(cut), Err(ImportError::Line { .. } | ImportError::Format)));
    let damaged = text.replace("\"is_managed\": \"false\"", "\"is_managed\": false");
    assert_eq!(Paste::read(&damaged), Err(ImportError::Line { line: 3, column: 29 }));
}

#[test]
fn other_texts_are_refused() {
    for text in ["", "hello", "{}", "{\"trace\":1}", "Child\nOS Thread Id:"] {
        assert_eq!(Paste::read(text), Err(ImportError::Format), "{text}");
    }
}

#[test]
fn notes_have_small_addresses() {
    let paste = Paste::read(CLR_STACK).unwrap();
    let observation = paste.observation(&paste.threads[0], None).unwrap();
    assert!(observation.small_notes().contains(&Note::Leads));
    let note = Note::Cut { sp: 0x7FFE_072C_1278 }.at(|at| at & 0xFFF);
    assert_eq!(note, Note::Cut { sp: 0x278 });
}

#[test]
fn damaged_texts_do_no_harm() {
    let mut state = 1_u64;
    let mut random = |limit: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    let mut made = 0;
    for text in [CLR_STACK, GDB] {
        for _ in 0..100 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..=random(8) {
                let at = random(bytes.len());
                bytes[at] = b" 0F:[]+(\n"[random(9)];
            }
            bytes.truncate(bytes.len() - random(200));
            let Ok(paste) = Paste::read(&String::from_utf8(bytes).unwrap()) else { continue };
            for thread in &paste.threads {
                let Ok(observation) = paste.observation(thread, Some(Generation::Net8Unix)) else {
                    continue;
                };
                let calls = paste.calls(thread, None);
                made += usize::from(observation.text("Made by a test.", calls).is_ok());
            }
        }
    }
    assert!(made > 100, "{made}");
}
