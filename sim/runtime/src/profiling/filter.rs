//! The filter that decides which items of a walk are internal stops (contract §3.3, §3.9).

use super::iterator::{Break, FrameIterator, SkipTo, State};
use crate::explain::{Event, HiddenReason};
use crate::{Funclet, MethodKind, RunningFunclet, TargetMemory};

impl<M: TargetMemory> FrameIterator<'_, '_, M> {
    /// Skips items that are not internal stops.
    pub(super) fn filter(&mut self) -> Result<(), Break> {
        while self.is_valid() {
            let stops = match self.state {
                State::Frameless => self.stops_at_method(),
                State::Frame => self.stops_at_frame()?,
                State::Marker => self.stops_at_marker(),
                State::InitialNative | State::Done => false,
            };
            if stops {
                return Ok(());
            }
            self.advance()?;
        }
        Ok(())
    }

    fn hide(&self, why: HiddenReason) -> bool {
        let ip = self.context.registers.rip;
        self.runtime.record(|| Event::Hidden { ip, why });
        false
    }

    /// Returns true if the target's exceptions have already unwound the stack at `sp` (VA).
    fn is_unwound(&self, sp: u64) -> bool {
        let object = self.target.object.0;
        self.runtime.thread_of(object, |thread| thread.exceptions.is_unwound(sp)).unwrap_or(false)
    }

    fn stops_at_method(&mut self) -> bool {
        let caller_sp = self.caller.as_ref().map_or(0, |caller| caller.registers.rsp());
        if self.is_unwound(caller_sp) {
            return self.hide(HiddenReason::Unwound);
        }
        match self.skip_to {
            Some(SkipTo::CallerSp(sp)) if sp != caller_sp => {
                return self.hide(HiddenReason::BelowFunclet);
            }
            _ => self.skip_to = None,
        }
        if self.funclet == Some(Funclet::Handler) {
            self.skip_to = self.parent_of_funclet(caller_sp);
        }
        if let Some(skip_to) = self.skip_to {
            let ip = self.context.registers.rip;
            let parent = match skip_to {
                SkipTo::CallerSp(sp) => Some(sp),
                SkipTo::Next => None,
            };
            self.runtime.record(|| Event::FuncletMet { ip, parent });
            return self.hide(HiddenReason::Funclet);
        }
        if self.method == Some(MethodKind::IlStub) {
            return self.hide(HiddenReason::IlStub);
        }
        true
    }

    fn stops_at_marker(&self) -> bool {
        self.skip_to.is_none() || self.hide(HiddenReason::BelowFunclet)
    }

    /// Returns the parent of a handler funclet; the items up to its frame are hidden.
    fn parent_of_funclet(&self, caller_sp: u64) -> Option<SkipTo> {
        let object = self.target.object.0;
        let running = self
            .runtime
            .thread_of(object, |thread| thread.exceptions.running_funclet(caller_sp))
            .flatten();
        if let Some(RunningFunclet { parent_caller_sp, .. }) = running {
            return parent_caller_sp.map(SkipTo::CallerSp);
        }
        // Finally handlers that managed code calls hide only themselves (C-084).
        let caller = self.caller.as_ref().map(|caller| caller.registers.rip)?;
        self.runtime.code.find(caller).map(|_| SkipTo::Next)
    }

    fn stops_at_frame(&self) -> Result<bool, Break> {
        if self.skip_to.is_some() || self.is_unwound(self.frame) {
            return Ok(false);
        }
        self.frame_has_function()
    }
}
