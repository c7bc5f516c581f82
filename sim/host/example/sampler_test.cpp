// Tests of the sampler against a simulated runtime. With doctest or gtest, each function is a TEST_CASE or TEST.
#include "sampler.hpp"

#include "clrsim.hpp"

#include <cstdio>
#include <string>

static int failures = 0;

#define CHECK(holds)                                                                                     \
    do {                                                                                                 \
        if (!(holds)) {                                                                                  \
            failures++;                                                                                  \
            std::printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #holds);                        \
        }                                                                                                \
    } while (0)

static std::string texts;

static clrsim::Session stopped(const std::string &text, const std::string &runtime) {
    auto session = clrsim::Session::from_file(texts + "/" + text, runtime);
    session.run_to_stop(0);
    // COR_PRF_ENABLE_STACK_SNAPSHOT. The test plays the profiler, so it may set what Initialize may.
    CHECK(session.info<clrsim::ICorProfilerInfo2>()->SetEventMask(0x10000000) == 0);
    return session;
}

static void a_thread_that_waits_is_walked() {
    for (const char *runtime : {"net10-windows", "net8-windows", "framework-4"}) {
        auto session = stopped("waits.kdl", runtime);
        Sampler sampler(session.info<clrsim::ICorProfilerInfo2>());
        CHECK(sampler.sample(session.stopped_thread()).size() == 2);
        CHECK(sampler.lost() == 0);
        CHECK(session.findings() == 0);
    }
}

static void a_thread_that_allocates_is_lost() {
    auto session = stopped("allocates.kdl", "net8-windows");
    Sampler sampler(session.info<clrsim::ICorProfilerInfo2>());
    CHECK(sampler.sample(session.stopped_thread()).empty());
    CHECK(sampler.lost() == 1);
    // Which rule of the runtime refused it.
    CHECK(session.explanation().find("C-044") != std::string::npos);
}

/// On Unix no running thread can be walked by another one: this sampler is useless there.
static void on_unix_all_is_lost() {
    auto session = stopped("waits.kdl", "net8-unix");
    Sampler sampler(session.info<clrsim::ICorProfilerInfo2>());
    CHECK(sampler.sample(session.stopped_thread()).empty());
    CHECK(sampler.lost() == 1);
    CHECK(session.explanation().find("C-019") != std::string::npos);
}

int main(int count, char **arguments) try {
    if (count != 2) {
        std::printf("usage: sampler_test FOLDER-OF-TEXTS\n");
        return 2;
    }
    texts = arguments[1];
    a_thread_that_waits_is_walked();
    a_thread_that_allocates_is_lost();
    on_unix_all_is_lost();
    std::printf(failures ? "%d checks failed\n" : "all checks hold\n", failures);
    return failures != 0;
} catch (const clrsim::Error &error) {
    std::printf("%s\n", error.what());
    return 2;
}
