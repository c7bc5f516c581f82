// The calls of edges.hpp through libclrsim.
#include "edges.hpp"
#include "clrsim.hpp"

static const char *TEXT = R"(
module "/app/Workloads.dll" { type "Workloads.Program" { method "Main" } }
function "Workloads.Program.Main" kind="jit" { body { first-call "Workloads.Program.Work" } }
function "Workloads.Program.Work" kind="jit" { body { work 3 } }
)";

int main(int, char **words) {
    clrsim::Session session(TEXT, words[1]);
    guest::EdgeProfiler profiler;
    if (session.initialize(&profiler) != guest::S_OK) return 1;
    session.run();
    if (session.findings() != 0) std::printf("%s", session.report().c_str());
    return !profiler.done || session.findings() != 0;
}
