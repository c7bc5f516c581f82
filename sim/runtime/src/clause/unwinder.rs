//! How managed frames are unwound on x64.

use super::Entry;
use super::Evidence::{Observed, Read};
use super::sets::ALL;

clauses! {
    Unwinder:
    137: ALL, Observed, "unwinder_amd64.cpp: UnwindPrologue; recordings",
        "In front of the first instruction of a method nothing has to be undone: the return \
         address is at [Rsp].";
    138: ALL, Observed, "unwinder_amd64.cpp: UnwindPrologue; recordings",
        "Inside a prologue, the codes that are undone are those whose CodeOffset is not above the \
         offset of the ip.";
    139: ALL, Observed, "unwinder_amd64.cpp: VirtualUnwind; recordings",
        "If the code at the ip is what is left of an epilogue (version 1), it is carried out \
         instead of undoing codes.";
    140: ALL, Read, "unwinder_amd64.cpp: VirtualUnwind",
        "Not only ret ends an epilogue: so do a jmp to another function, jmp [rip+x], and jmp r/m \
         with REX.W.";
    141: ALL, Read, "unwinder_amd64.cpp: VirtualUnwind",
        "A jmp that stays inside the function ends no epilogue, unless it goes to the start of a \
         function that is not chained.";
    142: ALL, Read, "unwinder_amd64.cpp: VirtualUnwind",
        "An epilogue may begin with lea rsp, [fp+d] only if fp is the frame register that the \
         unwind data names.";
    143: ALL, Read, "unwinder_amd64.cpp",
        "Unwind data that is chained goes on with its parent, up to the one that is not chained. \
         There may be 32 links.";
    144: ALL, Read, "unwinder_amd64.cpp",
        "PUSH_MACHFRAME restores Rip from [Rsp], and Rsp from [Rsp+0x18]; with an error code both \
         lie 8 higher. No return address is popped after it.";
    145: ALL, Read, "stackwalk.cpp: VirtualUnwindCallFrame",
        "The runtime unwinds managed frames by its own tables. It never asks the OS for them.";
    146: ALL, Read, "stackwalk.cpp: VirtualUnwindLeafCallFrame",
        "Where no function entry covers the ip, the code is a leaf: Rip is [Rsp], and Rsp grows \
         by 8.";
    147: ALL, Observed, "codeman.cpp: FindMethodCode; recordings",
        "The nibble map of a code heap gives the start of a method that is nearest to the \
         address, at it or below.";
}
