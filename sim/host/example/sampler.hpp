// A part of a profiler: it walks threads that it has not suspended, as some products do on Windows.
#ifndef SAMPLER_HPP
#define SAMPLER_HPP

// A profiler of your own includes corprof.h here.
#include "clrsim_interfaces.hpp"

#include <vector>

class Sampler {
public:
    explicit Sampler(clrsim::ICorProfilerInfo2 *info) : info_(info) {}

    /// Walks a thread. Returns the FunctionIDs from the leaf on; none if the runtime refuses, which is counted.
    std::vector<uint64_t> sample(uint64_t thread) {
        std::vector<uint64_t> functions;
        int32_t result = info_->DoStackSnapshot(thread, on_frame, 0, &functions, nullptr, 0);
        if (result < 0) lost_++;
        return functions;
    }

    unsigned lost() const { return lost_; }

private:
    static int32_t on_frame(uint64_t function, uint64_t, uint64_t, uint32_t, uint8_t *, void *functions) {
        // 0 stands for native code.
        if (function) static_cast<std::vector<uint64_t> *>(functions)->push_back(function);
        return 0;
    }

    clrsim::ICorProfilerInfo2 *info_;
    unsigned lost_ = 0;
};

#endif
