//! Clauses about the frames that a walk visits, and those that it reports.

use super::ClauseEntry;
use super::sets::{ALL, CLR4, HELPER_FRAMES, MANAGED_EH};

clauses! {
    Reported:
    57: ALL, "docs: DoStackSnapshot; stackwalk.cpp; recordings",
        "The newest frame is reported first, the oldest last.";
    58: ALL, "docs: StackSnapshotCallback; stackwalk.cpp; recordings",
        "A managed method that has metadata gives one callback for each of its activations: one \
         that calls itself twice is reported three times.";
    59: ALL,
        "docs: StackSnapshotCallback; stackwalk.cpp: PostProcessingForManagedFrames; recordings",
        "Native frames between two managed parts of a stack give one marker together, a callback \
         with FunctionID 0. Where managed code dispatches exceptions, its own native callees \
         (C-087), and those between a filter and the throw (C-085), give none.";
    60: ALL, "stackwalk.cpp: Filter; recordings",
        "Native frames newer than all managed ones are never reported, however the walk began.";
    61: ALL, "stackwalk.cpp: IsValid, PostProcessingForManagedFrames; recordings",
        "Native frames older than all managed ones give one marker, even if no Frame is left.";
    62: ALL, "stackwalk.cpp; recordings",
        "Native code below a managed frame gives its marker even if that managed frame itself is \
         not reported. The exception-handling methods of C-087 hide the marker too, and so do the \
         calls that they make.";
    63: ALL,
        "stackwalk.cpp; proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback; recordings",
        "Two markers follow each other where every managed frame between two native parts is \
         hidden.";
    64: ALL,
        "stackwalk.cpp; proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback; recordings",
        "A marker can be the first callback of all, where the newest managed frame is hidden.";
    65: ALL, "proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback; recordings",
        "No Frame, whatever its kind, gives a callback.";
    66: ALL, "proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback; recordings",
        "Dynamic methods (LCG) give no callback.";
    67: ALL,
        "stackwalk.cpp: Filter; method.inl: MethodDesc::IsDiagnosticsHidden; \
         proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback; recordings",
        "IL stubs give no callback, be they for P/Invoke, reverse P/Invoke, COM or delegates. \
         .NET 11 skips every method that is hidden from diagnostics in the same way: thunks of \
         async methods, and unboxing and instantiating stubs.";
    68: ALL, "stackwalk.cpp",
        "A method that was inlined gives no callback: the frame belongs to the method it was \
         inlined into.";
    69: ALL, "frames.h: PrestubMethodFrame; stackwalk.cpp; recordings",
        "A method that is still being prepared or compiled is not reported. Its caller is, with \
         the return address of the call as ip.";
    70: ALL, "cgenamd64.cpp: InlinedCallFrame::UpdateRegDisplay; recordings",
        "An active InlinedCallFrame represents the managed method whose frame contains it, and \
         provides Rip, Rsp and Rbp of that method.";
    71: ALL, "frames.h: InlinedCallFrame; recordings",
        "An InlinedCallFrame without an active call leads nowhere and is dropped.";
    72: HELPER_FRAMES, "cgenamd64.cpp: HelperMethodFrame::UpdateRegDisplay; recordings",
        "A HelperMethodFrame leads to the managed code that called the helper, and provides all of \
         its callee-saved registers.";
    73: ALL, "cgenamd64.cpp: TransitionFrame::UpdateRegDisplay; recordings",
        "A TransitionFrame leads to its caller: Rsp is the end of the TransitionBlock, and all \
         callee-saved registers are restored from the block.";
    74: ALL, "cgenamd64.cpp: HijackFrame::UpdateRegDisplay; recordings",
        "A HijackFrame leads to the return address that was on the stack before the hijack.";
    75: CLR4, "stackwalk.cpp: NextRaw; recordings",
        "If a resumable Frame leads on into managed code and the call has suspended the target, \
         the walk ends there with E_FAIL.";
    76: CLR4, "stackwalk.cpp: NextRaw; recordings",
        "If the target was not suspended by the call, because it is the caller or the profiler \
         has suspended the runtime, a resumable Frame is passed and the walk goes on with its \
         full CONTEXT.";
    77: ALL, "stackwalk.cpp: StackFrameIterator::Init; recordings",
        "A return address that was hijacked is put back onto the stack of the target before the \
         walk begins, and the hijack is forgotten.";
    78: ALL, "stackwalk.cpp: NextRaw; recordings",
        "Frames that have neither a function nor a return address change nothing: those of the \
         GC, of protected values, of debugger marks.";
    79: ALL, "stackwalk.cpp: NextRaw; recordings",
        "If the return address of a Frame is not in managed code, the walk goes on to the next \
         Frame. There is no marker. Only an InlinedCallFrame with an active call is not left then: \
         the walk never ends.";
    80: ALL, "frames.cpp: UnmanagedToManagedFrame::GetReturnAddress",
        "An UnmanagedToManagedFrame has no return address if the next Frame is an active \
         InlinedCallFrame with the same one.";
    81: ALL, "stackwalk.cpp: Filter; recordings",
        "If exception handling has called a catch, finally or fault funclet, everything from the \
         funclet to the method it belongs to is hidden. That method is reported once.";
    82: ALL, "stackwalk.cpp: Filter; recordings",
        "Between a funclet that exception handling has called and its method, the native code of \
         exception handling gives no marker.";
    83: ALL, "stackwalk.cpp: Filter; recordings",
        "When a method is reported in place of its funclet, its ip is the place where it left the \
         try block: the return address of the call, or the instruction that faulted. It is never \
         in the handler.";
    84: ALL, "exceptionhandling.cpp: FindParentStackFrameHelper; recordings",
        "A finally funclet that its method has called in normal execution hides only itself.";
    85: ALL, "exceptionhandling.cpp: FindParentStackFrameForStackWalk; recordings",
        "A filter funclet is reported, with the FunctionID of its method and an ip inside the \
         filter. After it come a marker, the frames from the throw on, and among these the method \
         again. Where managed code dispatches exceptions there is no marker: the frame of the throw \
         comes next.";
    86: ALL,
        "stackwalk.cpp: StackFrameIterator::Filter; exceptionhandling.cpp: \
         IsInStackRegionUnwoundByCurrentException; runtime#88463; recordings",
        "In the second pass of the current exception, managed frames are hidden whose caller SP is \
         above the lower bound of the range scanned so far, and not above the upper one. Older \
         exceptions hide nothing.";
    87: MANAGED_EH,
        "dotnet/runtime proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback; recordings",
        "Managed code of the runtime that dispatches exceptions is hidden, and so are native \
         frames that it has called directly. These are the methods of three classes, but not of the \
         nested ExInfo (C-163). A handler that was left shows its native caller (C-165). The datum of the InlinedCallFrame around the call says which it \
         is: its lowest three bits are 2 for a helper of exception handling, 6 for a caller of \
         handlers.";
    88: ALL, "proftoeeinterfaceimpl.cpp: MethodDescToFunctionID; recordings",
        "All versions of a method, by tier or by ReJIT, have one FunctionID. They differ in ip.";
}
