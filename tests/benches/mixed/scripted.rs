//! A runtime and a thread that replay recorded answers.

use clr_runtime::Runtime;
use clr_unwind::{CONTEXT_SIZE, Memory, Segment, Unreadable};
use clr_walker::profiling::{
    CallError, FrameInfo, FunctionId, HResult, ProfilerInfo, ReJitId, SnapshotCallback,
    SnapshotFrame, SnapshotRequest, StackBounds, StackRoot, TargetThread, ThreadContext, ThreadId,
};
use clr_world::synthetic::{CodeLocation, SELF, STACK, SyntheticProcess};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::ops::Range;

/// Size of a function's code in bytes.
const FUNCTION: u64 = 0x3C0;

/// A frame that a snapshot reported.
struct Report {
    function: Option<FunctionId>,
    ip: u64,
    context: [u8; CONTEXT_SIZE],
}

/// The thread, and the recorded answers of the runtime.
pub(crate) struct Scripted {
    /// The stack, and code: address (VA) and bytes.
    memory: Vec<(u64, Vec<u8>)>,
    id: ThreadId,
    context: ThreadContext,
    suspensions: Cell<u32>,
    reports: RefCell<Vec<Report>>,
    /// Ascending.
    methods: Vec<(Range<u64>, FunctionId)>,
}

impl Scripted {
    /// Records a runtime's answers about its thread, and copies the readable memory.
    pub(crate) fn record(set: &SyntheticProcess, runtime: &Runtime<'_>) -> Self {
        let activations = &set.synthetic_thread().activations;
        let at = |n: usize| set.registers(n).expect("it is a row");
        let mut methods = Vec::new();
        let mut copied = Vec::new();
        copied.push(at(0).rsp()..STACK.1);
        for place in [CodeLocation::Heap, CodeLocation::Native] {
            let of_place =
                activations.iter().enumerate().filter(|(_, activation)| activation.place == place);
            let starts = of_place.map(|(n, activation)| at(n).rip - u64::from(activation.offset));
            let starts: Vec<_> = starts.collect();
            let (first, last) = (starts.iter().min(), starts.iter().max());
            copied.push(*first.expect("there are such")..last.expect("there are such") + FUNCTION);
        }
        for (n, activation) in activations
            .iter()
            .enumerate()
            .filter(|(_, activation)| activation.place == CodeLocation::Heap)
        {
            let start = at(n).rip - u64::from(activation.offset);
            let id = set.function(&activation.function).expect("it is a method");
            methods.push((start..start + FUNCTION, id));
        }
        methods.sort_by_key(|(range, _)| range.start);

        let first = activations
            .iter()
            .find(|activation| activation.place == CodeLocation::Heap)
            .expect("half are managed");
        let mut seed = set.seed(&first.function).expect("it is a row").to_bytes().to_vec();
        seed.resize(runtime.generation.context_size() as usize, 0);
        let mut reports = Vec::new();
        let call = SnapshotRequest { seed: Some(&seed), ..set.call() };
        let outcome = runtime.on(SELF).do_stack_snapshot(
            &call,
            Some(&mut |frame| {
                let context = *frame.context.first_chunk().expect("a CONTEXT is as long");
                reports.push(Report { function: frame.function, ip: frame.ip, context });
                HResult::OK
            }),
        );
        assert_eq!(outcome, HResult::OK.into());
        let memory = runtime.memory.borrow();
        let copy = |range: Range<u64>| {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            memory.read(range.start, &mut bytes).expect("it is mapped");
            (range.start, bytes)
        };
        Self {
            memory: copied.into_iter().map(copy).collect(),
            id: set.thread(),
            context: ThreadContext { registers: at(0), flags: ThreadContext::FULL },
            suspensions: Cell::new(0),
            reports: RefCell::new(reports),
            methods,
        }
    }

    /// Returns the copy of the stack.
    pub(crate) fn stack_memory(&self) -> Segment<'_> {
        let (address, bytes) = self.memory.first().expect("the stack comes first");
        Segment::new(*address, bytes)
    }

    fn chunk<const N: usize>(&self, address: u64) -> Result<&[u8; N], Unreadable> {
        let mut found = self.memory.iter().filter_map(|(start, bytes)| {
            bytes.get(usize::try_from(address.checked_sub(*start)?).ok()?..)?.first_chunk()
        });
        found.next().ok_or(Unreadable { address, len: N as u32 })
    }
}

impl Memory for Scripted {
    #[inline]
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let len = buffer.len();
        let mut found = self.memory.iter().filter_map(|(start, bytes)| {
            let at = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(at..at.checked_add(len)?)
        });
        let bytes = found.next().ok_or(Unreadable { address, len: len as u32 })?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn read_u64(&self, address: u64) -> Result<u64, Unreadable> {
        self.chunk(address).map(|bytes| u64::from_le_bytes(*bytes))
    }
}

impl TargetThread for Scripted {
    type Error = u32;

    fn id(&self) -> ThreadId {
        self.id
    }

    fn stack(&self) -> StackBounds {
        StackBounds { limit: STACK.0, base: STACK.1, root: StackRoot::ReturnAddress(0) }
    }

    fn suspend(&self) -> Result<(), u32> {
        self.suspensions.set(self.suspensions.get() + 1);
        Ok(())
    }

    fn resume(&self) -> Result<(), u32> {
        self.suspensions.set(self.suspensions.get() - 1);
        Ok(())
    }

    fn context(&self) -> Result<ThreadContext, u32> {
        Ok(self.context)
    }
}

type Answer<T> = Result<T, CallError<Infallible>>;

impl ProfilerInfo for Scripted {
    type Fatal = Infallible;

    fn do_stack_snapshot(
        &self,
        request: &SnapshotRequest<'_>,
        callback: Option<&mut SnapshotCallback<'_>>,
    ) -> Answer<()> {
        let callback = callback.expect("walks have one");
        for Report { function, ip, context } in self.reports.borrow_mut().iter_mut() {
            let result = callback(&mut SnapshotFrame {
                function: *function,
                ip: *ip,
                frame_info: FrameInfo::new(1),
                context,
                client_data: request.client_data,
            });
            if result != HResult::OK {
                return Err(CallError::Failed(HResult::ABORTED));
            }
        }
        Ok(())
    }

    fn get_function_from_ip(&self, ip: u64) -> Answer<FunctionId> {
        let after = self.methods.partition_point(|(range, _)| range.start <= ip);
        let found = after.checked_sub(1).and_then(|at| self.methods.get(at));
        let found = found.filter(|(range, _)| range.contains(&ip));
        found.map(|(_, id)| *id).ok_or(CallError::Failed(HResult::FAIL))
    }

    fn get_function_from_ip3(&self, ip: u64) -> Answer<(FunctionId, ReJitId)> {
        Ok((self.get_function_from_ip(ip)?, ReJitId(0)))
    }

    fn suspend_runtime(&self) -> Answer<()> {
        Ok(())
    }

    fn resume_runtime(&self) -> Answer<()> {
        Ok(())
    }
}
