// Functions of the system that are looked up by name, and threads of C11.
#include "sampler.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <threads.h>

namespace guest {

struct LookedUp final : Sampler {
    enum { RIGHT, CROSSED };
    using Lock = int (*)(pthread_mutex_t *);
    Lock lock = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    Lock unlock = reinterpret_cast<Lock>(dlvsym(RTLD_DEFAULT, "pthread_mutex_unlock", "GLIBC_2.2.5"));
    pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    mtx_t other;
    cnd_t changed;
    bool ends = false;
    thrd_t worker;

    using Sampler::Sampler;

    static int run(void *data) {
        static_cast<LookedUp *>(data)->work();
        return 3;
    }

    HRESULT Initialize(void *unknown) override {
        if (!lock || !unlock) return E_FAIL;
        HRESULT result = open(unknown, JIT | SNAPSHOT);
        mtx_init(&other, mtx_timed);
        cnd_init(&changed);
        return thrd_create(&worker, run, this) == thrd_success ? result : E_FAIL;
    }

    void work() {
        mtx_lock(&other);
        while (!ends) {
            timespec until;
            timespec_get(&until, TIME_UTC);
            cnd_timedwait(&changed, &other, &until);
            lock(&one);
            unlock(&one);
            mtx_unlock(&other);
            sample();
            mtx_lock(&other);
        }
        mtx_unlock(&other);
    }

    HRESULT JITCompilationFinished(uint64_t, HRESULT, BOOL) override {
        if (form == CROSSED) lock(&one);
        mtx_lock(&other);
        if (form == RIGHT) lock(&one);
        unlock(&one);
        mtx_unlock(&other);
        return S_OK;
    }

    HRESULT Shutdown() override {
        mtx_lock(&other);
        ends = true;
        mtx_unlock(&other);
        cnd_broadcast(&changed);
        int result = 0;
        thrd_join(worker, &result);
        close();
        return result == 3 ? S_OK : E_FAIL;
    }
};

} // namespace guest
