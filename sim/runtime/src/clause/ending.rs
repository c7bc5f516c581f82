//! Clauses about the end of a walk, and its HRESULT.

use super::ClauseEntry;
use super::sets::{ALL, CLR4, F2, WINDOWS};

clauses! {
    Ending:
    104: ALL, "proftoeeinterfaceimpl.cpp: ProfilerStackWalkCallback; recordings",
        "The walk goes on only if the callback returns S_OK. Any other value ends it, S_FALSE as \
         well.";
    105: ALL, "proftoeeinterfaceimpl.cpp: ProfilerStackWalkFramesWrapper; recordings",
        "A walk that the callback has ended makes no more callbacks, and the call gets \
         CORPROF_E_STACKSNAPSHOT_ABORTED.";
    106: CLR4, "stackwalk.cpp: StackWalkFramesEx; recordings",
        "A walk that meets no managed frame, no marker and no Frame that has a method gives \
         E_FAIL.";
    107: F2, "sscli2 stackwalk.cpp: StackWalkFramesEx",
        "A walk without anything to report gives E_FAIL only if it neither starts in managed code \
         nor finds any Frame, and otherwise S_OK.";
    108: CLR4, "stackwalk.cpp; recordings",
        "S_OK does not promise callbacks: a PrestubMethodFrame whose caller is native, alone on \
         the chain, gives S_OK without a callback.";
    109: CLR4, "stackwalk.cpp: NextRaw; recordings",
        "Every unwound Rsp must be at or above the limit of the stack that is walked, and below \
         its base. If one is not, the walk ends with E_FAIL. On Unix, from .NET 5 on, nothing is \
         checked in a thread that handles the overflow of its stack on another one.";
    110: F2, "sscli2 stackwalk.cpp",
        "The slot of the return address, and the code at the new ip, must be readable after every \
         unwinding. If not, the walk ends with E_FAIL.";
    111: WINDOWS, "DoStackSnapshotHelper; recordings",
        "An access violation during the walk or in the callback ends the call with E_UNEXPECTED; \
         everything is cleaned up and the process lives. On Unix such a fault kills the process.";
    112: ALL,
        "stackwalk.cpp: MakeStackwalkerCallback; eetwain.cpp: EECodeManager::GetGSCookieAddr; \
         runtime#40637; recordings",
        "If a GS cookie that the walk passes is wrong, the process fails fast. There is no \
         HRESULT. From .NET 5 on the cookie of a method is not looked at if it lies below Rsp: in \
         an epilogue that part of the frame is gone.";
    113: ALL, "stackwalk.cpp; recordings",
        "Callbacks that were made before a walk failed are not taken back.";
}
