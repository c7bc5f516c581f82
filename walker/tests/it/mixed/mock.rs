//! A process of two kinds of code, with frames of 32 bytes each, and a runtime that answers as the
//! test sets it up.

use super::*;
use clr_unwind::{Memory, Unreadable};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;

/// Native code, with unwind data.
pub(crate) const NATIVE: u64 = 0x1_4000_0000;
/// Native code without unwind data, in the same region.
pub(crate) const NATIVE_LEAF: u64 = NATIVE + CODE_SIZE + 0x10;
/// Managed code.
pub(crate) const MANAGED: u64 = 0x2_0000_0000;
/// Bytes after managed functions: in none, but part of the last one for the runtime.
pub(crate) const PADDING: u64 = MANAGED + CODE_SIZE + 0x10;
/// Code that neither the runtime nor the profiler knows.
pub(crate) const UNKNOWN: u64 = 0x3_0000_0000;
/// rsp of the leaf (VA).
pub(crate) const STACK: u64 = 0x7FFE_0000_0000;
/// Size in bytes of every function, and of every frame.
const FUNCTION: u64 = 0x100;
pub(crate) const FRAME: u64 = 32;
const CODE_SIZE: u64 = 0x1000;
/// Offset in each function of the instruction after its call.
pub(crate) const CALLED: u64 = 0x42;
pub(crate) const THREAD: ThreadId = ThreadId(0x7007);

/// A call to the thread or the runtime, as logged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Done {
    Suspended,
    Resumed,
    ContextRead,
    LookedUp(u64),
    Snapshot { seed: Option<(u64, u64)> },
    RuntimeSuspended,
    RuntimeResumed,
}

/// A frame that the runtime reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) managed: bool,
    pub(crate) ip: u64,
    pub(crate) sp: u64,
}

/// The process.
#[expect(clippy::struct_excessive_bools, reason = "they are independent")]
pub(crate) struct Mock {
    code: Vec<u8>,
    table: Vec<u8>,
    /// The system knows the unwind data of managed code.
    pub(crate) knows_managed: bool,
    stack: Vec<u8>,
    pub(crate) context: ThreadContext,
    pub(crate) cannot_suspend: bool,
    pub(crate) cannot_resume: bool,
    /// Only code from files is known.
    pub(crate) hides_code: bool,
    pub(crate) reports: Vec<Report>,
    /// rbx in the contexts of reports.
    pub(crate) reported_rbx: u64,
    pub(crate) result: HResult,
    /// Seeds in code that is not managed have no reports, and another result than the others.
    pub(crate) refuses_native_seeds: bool,
    /// True if methods are unloaded as soon as the thread, or the runtime, runs on.
    pub(crate) unloads: bool,
    /// The result of `GetFunctionFromIP` instead of the usual one.
    pub(crate) lookup: Option<HResult>,
    pub(crate) suspend_runtime: HResult,
    pub(crate) resume_runtime: HResult,
    pub(crate) suspensions: Cell<i32>,
    pub(crate) done: RefCell<Vec<Done>>,
    pub(crate) bounds: StackBounds,
    /// The Thread object.
    pub(crate) object: Vec<u8>,
}

/// Returns the return address in function `n` of some code.
pub(crate) const fn returns_to(code: u64, n: u64) -> u64 {
    code + n * FUNCTION + CALLED
}

/// Returns the stack pointer of frame `n`; the leaf is 0.
pub(crate) const fn sp(n: u64) -> u64 {
    STACK + n * FRAME
}

impl Mock {
    /// Creates a stopped thread with these frames, leaf first.
    pub(crate) fn new(ips: &[u64]) -> Self {
        let mut code = vec![0x90; CODE_SIZE as usize];
        for function in code.chunks_mut(FUNCTION as usize) {
            function[0x40..0x42].copy_from_slice(&[0xFF, 0xD0]);
        }
        // sub rsp, 24: the UNWIND_INFO of all functions, after their code; then code without any.
        code.extend([1, 4, 1, 0, 4, 0x22, 0, 0]);
        code.extend([0x90; 0x38]);
        let functions = (0..CODE_SIZE / FUNCTION).map(|n| n * FUNCTION);
        let table = functions
            .flat_map(|begin| [begin as u32, (begin + FUNCTION) as u32, CODE_SIZE as u32])
            .flat_map(u32::to_le_bytes)
            .collect();
        let mut stack = Vec::new();
        for caller in ips.iter().skip(1).chain(&[0]) {
            stack.extend([0xAA; 24]);
            stack.extend(caller.to_le_bytes());
        }
        stack.extend([0; 64]);
        let mut registers = Registers { rip: ips[0], ..Registers::default() };
        registers.set(Gpr::Rsp, STACK);
        registers.set(Gpr::Rbx, 0xB0B);
        let base = STACK + stack.len() as u64;
        let mut mock = Self {
            code,
            table,
            knows_managed: false,
            stack,
            context: ThreadContext { registers, flags: ThreadContext::FULL },
            cannot_suspend: false,
            cannot_resume: false,
            hides_code: false,
            reports: Vec::new(),
            reported_rbx: 0,
            result: HResult::OK,
            refuses_native_seeds: false,
            unloads: false,
            lookup: None,
            suspend_runtime: HResult::OK,
            resume_runtime: HResult::OK,
            suspensions: Cell::new(0),
            done: RefCell::default(),
            bounds: StackBounds { limit: STACK - 0x1000, base, root: StackRoot::ReturnAddress(0) },
            object: vec![0; 0x1000],
        };
        mock.reports = Self::truth(ips);
        mock
    }

    /// Returns the reports of a runtime for these frames: the managed ones, and a marker for each
    /// run of native code except the leaf's. Unknown code counts as hidden.
    fn truth(ips: &[u64]) -> Vec<Report> {
        let mut reports = Vec::new();
        let mut in_run = true;
        for (n, &ip) in (0..).zip(ips) {
            let (managed, native) = (is_managed(ip), ip < MANAGED);
            if managed || native && !in_run {
                reports.push(Report { managed, ip, sp: sp(n) });
            }
            in_run = native;
        }
        reports
    }

    /// Lets function `n` of all code end with a call, so that its return address is outside the
    /// function.
    pub(crate) fn end_with_call(&mut self, n: u64) {
        let end = ((n + 1) * FUNCTION) as usize;
        self.code[end - 2..end].copy_from_slice(&[0xFF, 0xD0]);
    }

    /// Changes the code at this offset of each kind of code.
    pub(crate) fn patch(&mut self, offset: usize, code: &[u8]) {
        self.code[offset..offset + code.len()].copy_from_slice(code);
    }

    /// Gives all functions a frame pointer in rbx, by which alone their frames can be left.
    pub(crate) fn use_rbx_as_frame_pointer(&mut self) {
        // sub rsp, 24; mov rbx, rsp: UWOP_SET_FPREG is done before the allocation is looked at.
        let info = CODE_SIZE as usize;
        self.code[info..info + 8].copy_from_slice(&[1, 8, 2, 0x03, 8, 0x03, 4, 0x22]);
    }

    /// Gives all functions frames of 96 bytes.
    pub(crate) fn use_wide_frames(&mut self) {
        // sub rsp, 88
        let info = CODE_SIZE as usize;
        self.code[info..info + 8].copy_from_slice(&[1, 4, 1, 0, 4, 0xA2, 0, 0]);
    }

    /// Writes a word into the stack.
    pub(crate) fn poke(&mut self, address: u64, value: u64) {
        let at = (address - STACK) as usize;
        self.stack[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// Walks the thread.
    pub(crate) fn walk(&self, policy: Policy) -> MixedStack {
        self.walk_in(policy, &mut WalkBuffer::new(32))
    }

    /// Walks the thread with this buffer.
    pub(crate) fn walk_in(&self, policy: Policy, buffer: &mut WalkBuffer) -> MixedStack {
        self.walk_by(&self.map(), policy, buffer)
    }

    /// Returns the code that the profiler knows.
    pub(crate) fn map(&self) -> CodeMap<'_> {
        let mut map = CodeMap::new();
        let table = || FunctionTable::new(&self.table);
        map.insert(CodeRegion::heap(NATIVE, &self.code, table()).unwrap()).unwrap();
        if self.knows_managed {
            map.insert(CodeRegion::heap(MANAGED, &self.code, table()).unwrap()).unwrap();
        }
        map
    }

    /// Returns the functions of each kind of code. Their unwind data are 64 bytes after the code.
    pub(crate) fn functions(&self) -> FunctionTable<'_> {
        FunctionTable::new(&self.table)
    }

    /// Returns the bytes of native code.
    pub(crate) fn code(&self) -> &[u8] {
        &self.code
    }

    /// Walks the thread with another code map.
    pub(crate) fn walk_by(
        &self,
        map: &CodeMap<'_>,
        policy: Policy,
        buffer: &mut WalkBuffer,
    ) -> MixedStack {
        let stack = Walker::new(self, map, policy).walk(self, buffer);
        let left = i32::from(self.cannot_resume);
        assert_eq!(self.suspensions.replace(0), left, "suspended once too often, or resumed");
        stack
    }

    /// Walks the thread as the calling one, which is stopped already.
    pub(crate) fn walk_itself(&self, buffer: &mut WalkBuffer) -> MixedStack {
        let map = self.map();
        let walker = Walker::new(self, &map, Policy::Seeded);
        let Ok(()) = walker.take_stopped(&Stopped::itself(self), buffer);
        let Ok(stack) = walker.stitch(buffer);
        stack
    }

    /// Prepares the calling thread.
    pub(crate) fn prepare(&self) -> Preparation {
        let Ok(prepared) = Walker::new(self, &CodeMap::new(), Policy::Seeded).prepare(self);
        prepared
    }

    /// Returns the logged calls without look-ups.
    pub(crate) fn calls(&self) -> Vec<Done> {
        let done = self.done.borrow();
        done.iter().filter(|one| !matches!(one, Done::LookedUp(_))).cloned().collect()
    }

    fn did(&self, what: Done) {
        self.done.borrow_mut().push(what);
    }
}

/// Returns true if the runtime knows a method there.
pub(crate) fn is_managed(ip: u64) -> bool {
    (MANAGED..=PADDING).contains(&ip)
}

/// Returns the FunctionID.
pub(crate) fn function_at(ip: u64) -> FunctionId {
    FunctionId(ip & !(FUNCTION - 1))
}

impl Memory for Mock {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        for (start, bytes) in [
            (STACK, &self.stack),
            (NATIVE, &self.code),
            (MANAGED, &self.code),
            (UNKNOWN, &self.code),
            (THREAD.0, &self.object),
        ] {
            let found = address.checked_sub(start).and_then(|at| {
                let at = usize::try_from(at).ok()?;
                bytes.get(at..at.checked_add(buffer.len())?)
            });
            let found = found.filter(|_| [STACK, THREAD.0].contains(&start) || !self.hides_code);
            if let Some(found) = found {
                buffer.copy_from_slice(found);
                return Ok(());
            }
        }
        Err(unreadable)
    }
}

impl TargetThread for Mock {
    type Error = u32;

    fn id(&self) -> ThreadId {
        THREAD
    }

    fn stack(&self) -> StackBounds {
        self.bounds
    }

    fn suspend(&self) -> Result<(), u32> {
        if self.cannot_suspend {
            return Err(5);
        }
        self.did(Done::Suspended);
        self.suspensions.set(self.suspensions.get() + 1);
        Ok(())
    }

    fn resume(&self) -> Result<(), u32> {
        if self.cannot_resume {
            return Err(5);
        }
        self.did(Done::Resumed);
        self.suspensions.set(self.suspensions.get() - 1);
        Ok(())
    }

    fn context(&self) -> Result<ThreadContext, u32> {
        self.did(Done::ContextRead);
        Ok(self.context)
    }
}

fn fail<T>(result: HResult) -> Result<T, CallError<Infallible>> {
    Err(CallError::Failed(result))
}

fn returns(result: HResult) -> Result<(), CallError<Infallible>> {
    if result == HResult::OK { Ok(()) } else { fail(result) }
}

impl ProfilerInfo for Mock {
    type Fatal = Infallible;

    fn do_stack_snapshot(
        &self,
        request: &SnapshotRequest<'_>,
        callback: Option<&mut SnapshotCallback<'_>>,
    ) -> Result<(), CallError<Infallible>> {
        let &SnapshotRequest { thread, flags, seed, context_size, client_data } = request;
        assert_eq!((thread, flags), (THREAD, SnapshotFlags::REGISTER_CONTEXT));
        assert_eq!(seed.map_or(0, <[u8]>::len), context_size as usize);
        let seed = seed.map(|context| Registers::from_context(context).unwrap());
        self.did(Done::Snapshot { seed: seed.map(|seed| (seed.rip, seed.rsp())) });
        if self.refuses_native_seeds && seed.is_some_and(|seed| !is_managed(seed.rip)) {
            return fail(HResult::UNMANAGED_CONTEXT);
        }
        let callback = callback.unwrap();
        for report in &self.reports {
            let mut registers = Registers { rip: report.ip, ..Registers::default() };
            registers.set(Gpr::Rsp, report.sp);
            registers.set(Gpr::Rbx, self.reported_rbx);
            let mut context = [0; CONTEXT_SIZE];
            registers.write_context(&mut context).unwrap();
            let result = callback(&mut SnapshotFrame {
                function: report.managed.then(|| function_at(report.ip)),
                ip: report.ip,
                frame_info: FrameInfo::new(1),
                context: &mut context,
                client_data,
            });
            if result != HResult::OK {
                return fail(HResult::ABORTED);
            }
        }
        returns(self.result)
    }

    fn get_function_from_ip(&self, ip: u64) -> Result<FunctionId, CallError<Infallible>> {
        let runs_on = |done: &Done| matches!(done, Done::Resumed | Done::RuntimeResumed);
        let unloaded = self.unloads && self.done.borrow().iter().any(runs_on);
        self.did(Done::LookedUp(ip));
        match self.lookup {
            None if unloaded => Ok(FunctionId(0xBAD)),
            Some(result) => fail(result),
            None if is_managed(ip) => Ok(function_at(ip)),
            None => fail(HResult::FAIL),
        }
    }

    fn suspend_runtime(&self) -> Result<(), CallError<Infallible>> {
        self.did(Done::RuntimeSuspended);
        returns(self.suspend_runtime)
    }

    fn resume_runtime(&self) -> Result<(), CallError<Infallible>> {
        self.did(Done::RuntimeResumed);
        returns(self.resume_runtime)
    }
}
