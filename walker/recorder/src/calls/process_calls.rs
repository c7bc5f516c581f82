//! Calls about threads and about the process.

use super::names::Names;
use super::walks::{Walk, result};
use super::{Block, Trace};
use clr_com::{AppDomainId, ICorProfilerModuleEnum, Interface, ModuleId};
use clr_sampler::lock;
use clr_walker::profiling::{ProfilerInfo as _, ThreadId};
use std::ptr::{null, null_mut};

/// COR_PRF_ENABLE_REJIT: it can only be set in `Initialize`.
const ENABLE_REJIT: u32 = 0x0004_0000;

/// The callbacks of a suspension in which EnumThreads is not called: a .NET 9 may wait for itself
/// (dotnet/runtime#110062).
const IN_SUSPENSIONS: [&str; 7] = [
    "RuntimeSuspendStarted",
    "RuntimeThreadSuspended",
    "RuntimeSuspendFinished",
    "GarbageCollectionStarted",
    "GarbageCollectionFinished",
    "RuntimeResumeStarted",
    "RuntimeThreadResumed",
];

/// A byte that is no code.
static DATA: u8 = 0;

const fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

impl Trace {
    /// Asks about the calling thread, and about another one.
    pub(super) fn ask_threads(&self, block: &mut Block, callback: &str, own: ThreadId) {
        block.add("GetCurrentThreadID", result(&self.info.get_current_thread_id()), "");
        if own.0 != 0 {
            let os = self.info.get_thread_info(own);
            block.add("GetThreadInfo(own id)", result(&os), yes_or_no(os.is_ok_and(|os| os != 0)));
            let handle = self.info.get_handle_from_thread(own);
            block.add("GetHandleFromThread(own id)", result(&handle), "");
            let mut domain = AppDomainId(0);
            // SAFETY: the pointer is to a local.
            let found = unsafe { self.raw.GetThreadAppDomain(own, &raw mut domain) };
            block.add("GetThreadAppDomain(own id)", found, "");
            if !found.is_failure() {
                // SAFETY: NULL where the result is not wanted.
                let named = unsafe {
                    self.raw.GetAppDomainInfo(domain, 0, null_mut(), null_mut(), null_mut())
                };
                block.add("GetAppDomainInfo", named, "");
            }
        }
        let nobody = self.info.get_thread_info(ThreadId(0));
        block.add("GetThreadInfo(0)", result(&nobody), "");
        let nobody = self.info.get_handle_from_thread(ThreadId(0));
        block.add("GetHandleFromThread(0)", result(&nobody), "");
        block.add("InitializeCurrentThread", result(&self.info.initialize_current_thread()), "");
        if !IN_SUSPENSIONS.contains(&callback) {
            let threads = self.info.enum_threads();
            let listed = threads.as_ref().is_ok_and(|threads| threads.contains(&own));
            block.add("EnumThreads with the own one", result(&threads), yes_or_no(listed));
            let mut lasting = lock(&self.lasting);
            if lasting.is_empty() {
                lasting.extend(threads.unwrap_or_default().into_iter().take(2));
            }
        }
        let other = lock(&self.lasting).iter().copied().find(|id| *id != own);
        if let Some(other) = other {
            let walk = self.walk(Walk::of(other, 0), &mut Vec::new());
            block.add_walk("DoStackSnapshot(another's id, 0)", &walk);
        }
    }

    /// Asks about the process.
    pub(super) fn ask_process(&self, block: &mut Block) {
        let mask = self.info.get_event_mask();
        let low = mask.map_or(0, |mask| mask.0);
        block.add("GetEventMask", result(&mask), &format!("{low:#x}"));
        let (mut low2, mut high) = (0, 0);
        // SAFETY: the pointers are to locals.
        let both = unsafe { self.raw.GetEventMask2(&raw mut low2, &raw mut high) };
        block.add("GetEventMask2", both, &format!("{low2:#x} {high:#x}"));
        let (mut kind, mut major, mut minor) = (0, 0, 0);
        // SAFETY: the pointers are to locals, or NULL where the result is not wanted.
        let version = unsafe {
            let (kind, major, minor) = (&raw mut kind, &raw mut major, &raw mut minor);
            let (id, text, len) = (null_mut(), null_mut(), null_mut());
            let (build, qfe) = (null_mut(), null_mut());
            self.raw.GetRuntimeInformation(id, kind, major, minor, build, qfe, 0, len, text)
        };
        block.add("GetRuntimeInformation", version, &format!("{kind} {major}.{minor}"));
        for (what, ip) in [("0", 0), ("of data", &raw const DATA as u64)] {
            let found = self.info.get_function_from_ip(ip);
            block.add(&format!("GetFunctionFromIP({what})"), result(&found), "");
            let found = self.info.get_function_from_ip2(ip);
            block.add(&format!("GetFunctionFromIP2({what})"), result(&found), "");
            let found = self.info.get_function_from_ip3(ip);
            block.add(&format!("GetFunctionFromIP3({what})"), result(&found), "");
        }
        self.ask_modules(block);
    }

    /// Tries what can be done in `Initialize` alone.
    pub(super) fn ask_too_late(&self, block: &mut Block) {
        let low = self.info.get_event_mask().map_or(0, |mask| mask.0);
        // SAFETY: the calls have no pointers but NULL, which removes hooks where that is allowed.
        let refused = unsafe {
            [
                ("SetEventMask(with ENABLE_REJIT)", self.raw.SetEventMask(low | ENABLE_REJIT)),
                (
                    "SetEnterLeaveFunctionHooks3(NULL)",
                    self.raw.SetEnterLeaveFunctionHooks3(null(), null(), null()),
                ),
                ("SetFunctionIDMapper2(NULL)", self.raw.SetFunctionIDMapper2(null(), null_mut())),
            ]
        };
        for (call, result) in refused {
            block.add(call, result, "");
        }
    }

    fn ask_modules(&self, block: &mut Block) {
        let mut modules = null_mut();
        // SAFETY: the pointer is to a local.
        let result = unsafe { self.raw.EnumModules(&raw mut modules) };
        // SAFETY: NULL, or the reference that the successful call has given.
        let modules = unsafe { ICorProfilerModuleEnum::from_raw(modules) };
        let mut listed = false;
        while let Some(modules) = &modules {
            let (mut module, mut count) = (ModuleId(0), 0);
            // SAFETY: the pointers are to locals, and there is room for one.
            let next = unsafe { modules.Next(1, &raw mut module, &raw mut count) };
            if next.is_failure() || count == 0 {
                break;
            }
            listed |= self.names.is_own(&Names::module(&self.raw, module));
        }
        block.add("EnumModules with the program's", result, yes_or_no(listed));
    }

    /// Suspends the runtime, walks the own thread and another one, and resumes it.
    pub(super) fn ask_suspension(&self, block: &mut Block) {
        block.add("ResumeRuntime alone", result(&self.info.resume_runtime()), "");
        let _ = Self::nested();
        let suspended = result(&self.info.suspend_runtime());
        let during = Self::nested().join(" ");
        block.add("SuspendRuntime", suspended, &during);
        if suspended.is_failure() {
            return;
        }
        block.add_walk("DoStackSnapshot(NULL, 0) while suspended", &self.walk_own());
        block.add("SuspendRuntime again", result(&self.info.suspend_runtime()), "");
        let _ = Self::nested();
        let resumed = result(&self.info.resume_runtime());
        block.add("ResumeRuntime", resumed, &Self::nested().join(" "));
    }
}
