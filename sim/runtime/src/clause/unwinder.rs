//! Clauses about the unwinding of managed frames on x64.

use super::ClauseEntry;
use super::sets::ALL;

clauses! {
    Unwinder:
    137: ALL, "unwinder_amd64.cpp: UnwindPrologue; recordings",
        "Before the first instruction of a method nothing has to be undone: the return address is \
         at [Rsp].";
    138: ALL, "unwinder_amd64.cpp: UnwindPrologue; recordings",
        "Inside a prologue, the codes that are undone are those whose CodeOffset is not above the \
         offset of the ip.";
    139: ALL, "unwinder_amd64.cpp: VirtualUnwind; recordings",
        "If the code at the ip is the rest of an epilogue (version 1), the epilogue is executed \
         instead of undoing codes.";
    140: ALL, "unwinder_amd64.cpp: VirtualUnwind",
        "Not only ret ends an epilogue: so do a jmp to another function, jmp [rip+x], and jmp r/m \
         with REX.W.";
    141: ALL, "unwinder_amd64.cpp: VirtualUnwind",
        "A jmp that stays inside the function ends no epilogue, unless it goes to the start of a \
         function that is not chained.";
    142: ALL, "unwinder_amd64.cpp: VirtualUnwind",
        "An epilogue may begin with lea rsp, [fp+d] only if fp is the frame register that the \
         unwind data names.";
    143: ALL, "unwinder_amd64.cpp",
        "Chained unwind data continues with its parent, up to the data that is not chained. The \
         runtime counts no links, and follows a circle for ever; here more than 32 end the walk.";
    144: ALL, "unwinder_amd64.cpp",
        "PUSH_MACHFRAME restores Rip from [Rsp], and Rsp from [Rsp+0x18]; with an error code both \
         are 8 bytes higher. No return address is popped after it.";
    145: ALL, "stackwalk.cpp: VirtualUnwindCallFrame",
        "The runtime unwinds managed frames by its own tables. It never asks the OS for them.";
    146: ALL, "stackwalk.cpp: VirtualUnwindLeafCallFrame",
        "Where no function entry covers the ip, the code is a leaf: Rip is [Rsp], and Rsp grows \
         by 8.";
    147: ALL, "codeman.cpp: FindMethodCode; recordings",
        "The nibble map of a code heap gives the nearest method start at or below the address. From \
         .NET 10 on it is read at two slots of 256 bytes, that of the address and the one before. A \
         slot leads to the starts in it, or to the start of the block that covers it wholly. If \
         neither leads to a start at or below the address, no method is found.";
}
