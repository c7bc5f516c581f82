//! The recorded call as a call of a text.

use super::state::NO_THREAD;
use crate::run::observed::{ObservedStack, PlacedObservation};
use crate::{
    LastCallback, NestedCall, SEED_FLAGS, SeedAddress, SeedSource, SnapshotCall, SnapshotCaller,
    SnapshotSeed, SnapshotThread,
};
use clr_recording::{SeedLine, WalkLine};
use clr_runtime::profiling::HResult;
use clr_unwind::Gpr;
use clr_walker::profiling::SnapshotFlags;
use clr_world::synthetic::CodeLocation;

/// Returns the call of a walk on its placed stack.
pub(super) fn call(
    walk: &WalkLine,
    stack: &ObservedStack,
    placed: &PlacedObservation,
) -> SnapshotCall {
    let own = walk.relation == "self";
    let knows_no_thread = walk.state.target.as_deref() == Some("none");
    let by = match walk.walker.as_str() {
        _ if own && !knows_no_thread => SnapshotCaller::Own,
        "managed" if !own => SnapshotCaller::ManagedWalker,
        _ => SnapshotCaller::NativeWalker,
    };
    let thread = match (own, walk.call.thread.as_str(), walk.state.target.as_deref()) {
        (_, "null", Some("none")) | (true, _, Some("none")) | (true, "null", _) => {
            SnapshotThread::Null
        }
        (_, _, Some("invalid")) => SnapshotThread::Value(NO_THREAD),
        _ => SnapshotThread::Own,
    };
    let policy = walk.call.policy.unwrap_or_default();
    let nests = policy.nested || policy.nested_at.is_some();
    SnapshotCall {
        title: Some(format!("{}, {}", walk.situation, walk.variant)),
        by,
        thread,
        flags: SnapshotFlags(walk.call.flags.0 as u32),
        seed: walk.call.seed.as_ref().map(|line| seed(line, stack, placed)),
        null_callback: walk.call.callback.as_deref() == Some("null"),
        stop_at: policy.stop_at.zip(policy.returns).map(|(before, returns)| LastCallback {
            callback: before.saturating_add(1),
            returns: HResult(returns.0 as u32),
        }),
        nested: if nests { vec![NestedCall { by, thread }] } else { Vec::new() },
        ..SnapshotCall::default()
    }
}

/// Converts a seed. One with the registers of an activation names it.
fn seed(line: &SeedLine, stack: &ObservedStack, placed: &PlacedObservation) -> SnapshotSeed {
    let registers = line.registers();
    let (ip, sp) = (registers.rip, registers.rsp());
    let all = line.registers.iter().map(|it| it.0);
    let byte = u8::try_from(ip & 0xFF).unwrap_or_default();
    let repeated = u64::from_le_bytes([byte; 8]);
    let flags = line.context_flags.0 as u32;
    let mut made = if byte != 0 && all.clone().all(|value| value == repeated) {
        SnapshotSeed::new(SeedSource::Bytes(byte))
    } else {
        let activations = &stack.activations;
        let index = stack
            .index_of((ip, sp))
            .or_else(|| activations.iter().position(|it| it.sp == sp))
            .or_else(|| activations.iter().position(|it| it.ip == ip));
        let source = index.and_then(|index| source(placed, index));
        let mut made = SnapshotSeed::new(source.clone().unwrap_or(SeedSource::Bytes(0)));
        let of = index.filter(|_| source.is_some()).and_then(|index| stack.activations.get(index));
        if of.is_none_or(|of| of.ip != ip) {
            made.rip = Some(address(ip, stack, placed));
        }
        if of.is_none_or(|of| of.sp != sp) {
            made.registers.push((Gpr::Rsp, placed.small(sp)));
        }
        if of.is_none() {
            let rbp = placed.small(registers.get(Gpr::Rbp));
            made.registers.extend((rbp != 0).then_some((Gpr::Rbp, rbp)));
        }
        let usual = if of.is_some() { SEED_FLAGS } else { 0 };
        made.flags = (flags != usual).then_some(flags);
        made
    };
    made.features = line.xstate_features.map_or(0, |it| it.0);
    made.cut = line.readable;
    made
}

/// Returns the source of a seed with the registers of an activation, if a text can name it.
fn source(placed: &PlacedObservation, index: usize) -> Option<SeedSource> {
    let activations = &placed.thread.activations;
    let managed = activations.iter().position(|it| it.place != CodeLocation::Native);
    if index == 0 {
        return Some(SeedSource::Leaf);
    }
    if managed == Some(index) {
        return Some(SeedSource::TopManaged);
    }
    let function = &activations.get(index)?.function;
    let first = activations.iter().position(|it| it.function == *function);
    (first == Some(index)).then(|| SeedSource::Function(function.clone()))
}

/// Returns the rip of a seed: a label if its code is on the stack.
fn address(ip: u64, stack: &ObservedStack, placed: &PlacedObservation) -> SeedAddress {
    let index = stack.activations.iter().position(|it| it.ip == ip);
    match index.and_then(|index| placed.label(index)) {
        Some(label) => SeedAddress::Label(label),
        None => SeedAddress::Address(placed.small(ip)),
    }
}
