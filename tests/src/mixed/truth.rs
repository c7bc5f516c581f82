//! A stopped thread, with everything that decides the claims that a walk of it may make.

use clr_codegen::{CodeKind, FunctionIndex};
use clr_reference::{
    ActivationCode, CallFacts, CallerKind, ExpectedCall, ProgramFacts, ReferenceActivation,
    ThreadFacts, expected,
};
use clr_runtime::code_manager::StubKind;
use clr_runtime::generation::ProfilerSuspension;
use clr_runtime::profiling::Policy;
use clr_runtime::{MethodKind, Suspension};
use clr_unwind::{CodeMap, Memory as _, Position};
use clr_walker::profiling::{HResult, SnapshotFlags};
use clr_world::World;
use clr_world::stubs::{Identity, Shared};

/// A profiler's knowledge of a row's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// True if the profiler has unwind data for the code.
    pub unwinds: bool,
    /// True if the code lies in an image, not in a heap.
    pub in_image: bool,
    /// True if the code is the stack probe that native functions call in their prologues.
    pub probes: bool,
}

/// The true state of a stopped thread.
#[derive(Clone, Debug)]
pub struct Truth {
    /// The thread as the reference model sees it.
    pub seen: ThreadFacts,
    /// A profiler's knowledge of the rows' code.
    pub known: Vec<Known>,
    /// The row whose code pretends to have been called by the code that it interrupted (contract
    /// §2.4).
    pub redirected: Option<usize>,
    /// The row whose return address is replaced, and the replacement (VA): the runtime's code for
    /// hijacked returns.
    pub hijacked: Option<(usize, u64)>,
    /// The row at the target of hijacked returns while no return address lies on the stack, or the
    /// return value in its place (contract §2.4, H-32).
    pub tripped: Option<usize>,
    /// The leaf is a stub of virtual stub dispatch: it may have pushed a word, without unwind data.
    pub dispatches: bool,
    /// Error of `SuspendRuntime`; `None` if the call succeeds.
    pub suspend: Option<HResult>,
}

/// A walk's treatment of a leaf that has no unwind data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// Ends the walk.
    Unknown,
    /// Leaves a stub that only jumps on.
    Stub,
    /// Makes a seed from code that may be an IL stub or a dynamic method.
    Seeds,
    /// Leaves a stub that only jumps on, and makes a seed from such code behind it.
    StubThenSeeds,
    /// Leaves a stub that is no seed, and makes a seed from its caller, if that is such code.
    CallerSeeds,
}

impl Leaf {
    const fn leaves_stub(self) -> bool {
        matches!(self, Self::Stub | Self::StubThenSeeds | Self::CallerSeeds)
    }

    const fn seeds(self) -> bool {
        matches!(self, Self::Seeds | Self::StubThenSeeds | Self::CallerSeeds)
    }
}

impl Truth {
    /// Inspects a thread. Returns `None` if the runtime does not know the thread.
    #[must_use]
    pub fn new(facts: &ProgramFacts, world: &mut World<'_>, thread: usize) -> Option<Self> {
        let seen = ThreadFacts::new(facts, world, thread)?;
        let unix = seen.generation.is_unix();
        let (expanded, linked) = (world.expanded(), world.linked());
        let functions = &expanded.program.functions;
        let functions_of: Vec<_> =
            world.activations(thread).into_iter().map(|activation| activation.function).collect();
        let known = seen.activations.iter().zip(&functions_of).map(|(activation, function)| {
            let function = function.and_then(|id| functions.get(id.index()));
            // Code outside any function is one of the runtime's services, in a heap that every
            // profiler knows, or the probe.
            let probes =
                function.is_none() && linked.instruction(activation.registers.rip).is_some();
            let in_image = function.map_or(probes, |function| function.kind != CodeKind::Jit);
            Known { unwinds: in_image || !unix || function.is_none(), in_image, probes }
        });
        let known = known.collect();
        let case = expanded.shared.get(&Shared::RedirectedHandledJitCase).copied();
        let redirected = case.and_then(|case| {
            let is_interrupted = |activation: usize| {
                let caller = seen.activations.get(activation + 1);
                caller.is_some_and(|caller| caller.position == Position::Interrupted)
            };
            let mut activations = functions_of.iter().enumerate();
            activations
                .find(|(activation, function)| {
                    **function == Some(case) && is_interrupted(*activation)
                })
                .map(|(activation, _)| activation)
        });
        let trip = expanded.shared.get(&Shared::OnHijackTripThread).copied();
        let save = expanded.shared.get(&Shared::OnHijackSave).copied();
        let trips = |function: &Option<FunctionIndex>| {
            function.is_some() && [trip, save].contains(function)
        };
        let tripped = functions_of.iter().position(trips).filter(|activation| {
            let caller = seen.activations.get(activation + 1).map(|caller| caller.registers);
            let own = seen.activations.get(*activation);
            let slot = own.map(|own| own.caller_sp.wrapping_sub(8));
            let holds = slot.map(|slot| world.as_synced().memory.borrow().read_u64(slot));
            // The return value lies there, or nothing yet (H-32).
            own.map(|own| own.registers.rsp()) == caller.map(|caller| caller.rsp())
                || holds != caller.map(|caller| Ok(caller.rip))
        });
        let trip = trip.and_then(|id| {
            let mut placed = linked.instructions.iter();
            placed.find(|one| one.function == Some(id)).map(|one| one.address)
        });
        let runtime = world.runtime();
        let memory = runtime.memory.borrow();
        let hijacked = trip.and_then(|trip| {
            let activation = seen.activations.iter().position(|activation| {
                memory.read_u64(activation.caller_sp.wrapping_sub(8)) == Ok(trip)
            })?;
            Some((activation, trip))
        });
        let process = runtime.process.get();
        let suspend = if seen.generation.profiler_suspension() == ProfilerSuspension::None {
            Some(HResult::NOT_IMPLEMENTED)
        } else if process.suspension == Suspension::None {
            None
        } else {
            Some(HResult::SUSPENSION_IN_PROGRESS)
        };
        drop(memory);
        let leaf = functions_of.first().copied().flatten();
        let leaf = leaf.and_then(|id| expanded.identities.get(id.index()));
        let dispatches = leaf == Some(&Identity::Stub(StubKind::VirtualStubDispatch));
        Some(Self { seen, known, redirected, hijacked, tripped, dispatches, suspend })
    }

    /// Returns the truth for a profiler with this code map.
    #[must_use]
    pub fn known_by(&self, map: &CodeMap<'_>) -> Self {
        let mut truth = self.clone();
        for (known, activation) in truth.known.iter_mut().zip(&truth.seen.activations) {
            let before = u64::from(activation.position == Position::ReturnAddress);
            known.unwinds |= map.find(activation.registers.rip - before).is_some();
        }
        truth
    }

    /// Returns the first row that `GetFunctionFromIP` names, if unwind data leads from the leaf to
    /// the row, or a jump out of a stub without unwind data.
    #[must_use]
    pub fn first_managed(&self, leaves_stub: bool) -> Option<usize> {
        for (index, activation) in self.seen.activations.iter().enumerate() {
            match activation.code {
                ActivationCode::Managed(
                    _,
                    MethodKind::Ordinary | MethodKind::ExceptionHandling,
                ) => {
                    return Some(index);
                }
                _ if index == 0 && leaves_stub && self.is_in_stub() => {}
                _ if !self.can_be_left(index) => return None,
                _ => {}
            }
        }
        None
    }

    /// Returns the row that makes the seed: the first named row; or else, of code without metadata, the
    /// caller of a stub that is left, or the row where unwinding ends. A seed of the caller comes before named rows
    /// if the walk has tried the stub itself.
    fn seed(&self, leaf: Leaf) -> Option<usize> {
        let named = self.first_managed(leaf.leaves_stub());
        let is_hidden = |row: usize| self.seen.activations.get(row).is_some_and(lacks_metadata);
        let leaves = leaf.leaves_stub() && self.is_in_stub();
        let caller = (leaves && is_hidden(1)).then_some(1);
        let seed = if leaf == Leaf::CallerSeeds { caller.or(named) } else { named };
        if seed.is_some() || !leaf.seeds() {
            return seed;
        }
        if caller.is_some() {
            return caller;
        }
        let first = usize::from(leaves);
        let last = (first..self.seen.activations.len()).find(|row| !self.can_be_left(*row))?;
        let known = self.known.get(last).is_none_or(|known| known.unwinds);
        (is_hidden(last) && !known).then_some(last)
    }

    /// Returns true if unwinding a row leads to its caller.
    #[must_use]
    pub fn can_be_left(&self, activation: usize) -> bool {
        let known = self.known.get(activation).is_some_and(|known| known.unwinds);
        let misleads = [self.redirected, self.tripped].contains(&Some(activation));
        known && !misleads && self.hijacked.is_none_or(|(at, _)| at != activation)
    }

    /// Returns true if the leaf is in a stub without unwind data, or in a method without metadata
    /// that only jumps on, with the return address on top of the stack (coreclr#25676), or above the
    /// word that a stub has pushed.
    #[must_use]
    pub fn is_in_stub(&self) -> bool {
        let leaf = self.seen.activations.first();
        let leaf =
            leaf.filter(|leaf| leaf.code == ActivationCode::Unmanaged || lacks_metadata(leaf));
        let known = self.known.first().is_none_or(|known| known.unwinds);
        !known && leaf.is_some() && (self.is_at_return_address() || self.dispatches)
    }

    /// Returns true if the leaf has only its return address on the stack.
    fn is_at_return_address(&self) -> bool {
        let leaf = self.seen.activations.first();
        leaf.is_some_and(|leaf| leaf.caller_sp == leaf.registers.rsp() + 8)
    }

    /// Returns true if the leaf has only its return address on the stack, and a function with
    /// UNWIND_INFO has called it.
    #[must_use]
    pub fn is_entered_by_a_method(&self) -> bool {
        self.is_in_stub()
            && self.is_at_return_address()
            && self.seen.activations.get(1).is_some_and(ReferenceActivation::is_managed)
    }

    /// Returns true if the runtime refuses to look up managed code, for a thread that may hold the
    /// lock itself (C-116).
    #[must_use]
    pub fn refuses_lookups(&self, policy: Policy) -> bool {
        // After a walk that asks nothing, another thread names the frames.
        policy.is_for_itself() && policy != Policy::Signal && self.seen.forbidden
    }

    /// Returns the call that a policy makes.
    #[must_use]
    pub fn question(&self, policy: Policy, leaf: Leaf) -> CallFacts {
        let seeded = matches!(policy, Policy::Seeded | Policy::SignalSnapshot);
        CallFacts {
            caller: if policy.is_for_itself() { CallerKind::Target } else { CallerKind::Native },
            unnamed: false,
            flags: SnapshotFlags::REGISTER_CONTEXT,
            seed: self.seed(leaf).filter(|_| seeded).map(|activation| (activation, 0x10_000B)),
            suspended_by_profiler: policy == Policy::RuntimeSuspended,
            stop_at: None,
        }
    }

    /// Returns the model's expectation. The model does not cover seeds that are not a row, such as
    /// that of a redirected thread's pretended caller.
    #[must_use]
    pub fn expected(&self, policy: Policy, leaf: Leaf) -> Option<ExpectedCall> {
        let found = self.first_managed(leaf.leaves_stub());
        if self.seen.cooperative && self.redirected.is_some() && found.is_none() {
            return None;
        }
        expected(&self.seen, &self.question(policy, leaf))
    }
}

/// Returns true for a method without metadata, which the runtime does not name.
pub(super) fn lacks_metadata(activation: &ReferenceActivation) -> bool {
    matches!(activation.code, ActivationCode::Managed(_, MethodKind::IlStub | MethodKind::Dynamic))
}
