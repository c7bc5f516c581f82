// The tests of garbage collections and of the heap.
#ifndef HEAP_HPP
#define HEAP_HPP

#include "suite.hpp"

#include <chrono>
#include <set>
#include <thread>

namespace guest {

/// Counts collections: each that ends has begun, and at most two are in progress.
struct Collections : Test {
    std::atomic<int> begun{0}, ended{0};

    HRESULT GarbageCollectionStarted(int32_t, const BOOL *, uint32_t) override {
        wants(++begun - ended <= 2, "at most two collections at a time");
        return S_OK;
    }
    HRESULT GarbageCollectionFinished() override {
        wants(++ended <= begun, "a collection that ends has begun");
        return S_OK;
    }
    void end() override {
        wants(begun != 0, "a collection begins");
        wants(ended != 0, "a collection ends");
    }
};

/// `gc`: objects of the pinned heap are seen among references and roots.
struct Gc : Collections {
    std::set<uint64_t> referred, roots;
    int pinned_referred = 0, pinned_roots = 0;

    HRESULT begin() override { return ask(GC); }
    HRESULT ObjectReferences(uint64_t, uint64_t, uint32_t count, const uint64_t *objects) override {
        for (uint32_t index = 0; index < count; index++) if (objects[index]) referred.insert(objects[index]);
        return S_OK;
    }
    HRESULT RootReferences(uint32_t count, const uint64_t *objects) override {
        for (uint32_t index = 0; index < count; index++) if (objects[index]) roots.insert(objects[index]);
        return S_OK;
    }
    int pinned(const std::set<uint64_t> &objects) {
        int count = 0;
        for (uint64_t object : objects) {
            GenerationRange range = {};
            // The original stops counting, and does not fail.
            if (info->GetObjectGeneration(object, &range) < 0) return count;
            count += range.generation == PINNED_OBJECTS;
        }
        return count;
    }
    HRESULT GarbageCollectionFinished() override {
        Collections::GarbageCollectionFinished();
        pinned_referred += pinned(referred);
        pinned_roots += pinned(roots);
        return S_OK;
    }
    void end() override {
        Collections::end();
        wants(pinned_roots != 0, "a root is in the pinned heap");
        wants(pinned_referred != 0, "a referred object is in the pinned heap");
    }
};

/// `gcbasic`: the basic events, and the bounds of generations before the first collection. What is reserved for generation 1
/// was as small as its filler before .NET 7: one stored version of the test asks for that, the newest does not.
struct GcBasic : Collections {
    HRESULT begin() override { return ask(0, HIGH_BASIC_GC); }
    HRESULT GarbageCollectionStarted(int32_t generations, const BOOL *collected, uint32_t reason) override {
        Collections::GarbageCollectionStarted(generations, collected, reason);
        if (begun == 1) check_bounds();
        return S_OK;
    }
    void check_bounds() {
        std::vector<GenerationRange> ranges(32);
        uint32_t count = 0, again = 0;
        if (!is_good(info->GetGenerationBounds(32, &count, ranges.data()), "GetGenerationBounds")) return;
        if (count > 32) {
            ranges.resize(count);
            is_good(info->GetGenerationBounds(count, &again, ranges.data()), "GetGenerationBounds with all ranges");
            wants(again == count, "as many ranges as before");
        }
        ranges.resize(count);
        bool is_there[PINNED_OBJECTS + 1] = {};
        for (const GenerationRange &range : ranges) {
            if (range.generation > PINNED_OBJECTS) fails("a generation that exists");
            else is_there[range.generation] = true;
            wants(range.size <= range.reserved, "what is used is reserved");
            if (range.generation == 1) wants(range.size <= 0x18, "generation 1 is empty but for a filler");
        }
        for (bool it : is_there) wants(it, "each generation has a range");
    }
};

/// `gcskip`: ObjectsAllocatedByClass is not called, if the statistic is refused by a high bit.
struct GcSkip : Collections {
    HRESULT begin() override { return ask(GC, is_broken("bit") ? 0 : HIGH_NO_STATISTIC); }
    HRESULT ObjectsAllocatedByClass(uint32_t, const uint64_t *, const uint32_t *) override {
        fails("ObjectsAllocatedByClass");
        return S_OK;
    }
};

/// `gcallocate`: only objects of the large and of the pinned heap are reported.
struct GcAllocate : Test {
    int large = 0, pinned = 0;

    HRESULT begin() override { return ask(ENABLE_OBJECTS, HIGH_BASIC_GC | HIGH_LARGE | HIGH_PINNED); }
    HRESULT ObjectAllocated(uint64_t object, uint64_t) override {
        GenerationRange range = {};
        if (!is_good(info->GetObjectGeneration(object, &range), "GetObjectGeneration")) return S_OK;
        if (range.generation == LARGE_OBJECTS) large++;
        else if (range.generation == PINNED_OBJECTS) pinned++;
        else fails("an object of another generation");
        return S_OK;
    }
    void end() override {
        wants(pinned != 0, "an object of the pinned heap");
        wants(large != 0, "a large object");
    }
};

/// `nongcheap`: objects outside of the heap have no generation, and are listed in a collection.
struct NonGcHeap : Test {
    std::atomic<int> objects{0}, collections{0};

    HRESULT begin() override { return ask(ENABLE_OBJECTS | OBJECTS, HIGH_BASIC_GC); }
    HRESULT ObjectAllocated(uint64_t object, uint64_t) override {
        GenerationRange range = {};
        HRESULT result = info->GetObjectGeneration(object, &range);
        // Up to 2022 the test's runtimes said -1.
        if (range.generation == INT32_MAX || range.generation == UINT32_MAX) {
            objects++;
            wants(result == NOT_GC_OBJECT, "an object outside of the heap is refused");
            wants(range.start == 0 && range.size == 0 && range.reserved == 0, "it has no range");
        } else {
            is_good(result, "GetObjectGeneration");
        }
        return S_OK;
    }
    HRESULT GarbageCollectionFinished() override {
        collections++;
        void *list = nullptr;
        if (!fourteen) return fails("ICorProfilerInfo14"), S_OK;
        if (!is_good(fourteen->EnumerateNonGCObjects(&list), "EnumerateNonGCObjects")) return S_OK;
        auto *all = static_cast<ICorProfilerObjectEnum *>(list);
        int count = 0;
        uint64_t object = 0;
        while (all->Next(1, &object, nullptr) == S_OK) count++;
        all->Release();
        wants(count == objects, "each object outside of the heap was reported, and is listed");
        return S_OK;
    }
    void end() override {
        wants(collections != 0, "a collection");
        wants(objects != 0, "an object outside of the heap");
    }
};

/// `handles`: weak, strong and pinned handles over three collections.
struct Handles : Test {
    uint64_t weak = 0, strong = 0, pinned = 0, pinned_object = 0;
    int count = 0;
    bool is_induced = false;

    HRESULT begin() override {
        if (!handles) return E_FAIL;
        return ask(ENABLE_OBJECTS | OBJECTS, HIGH_BASIC_GC | HIGH_LARGE | HIGH_PINNED);
    }
    HRESULT ObjectAllocated(uint64_t object, uint64_t type) override {
        std::string name = class_of(info, type);
        if (is_named(name, "Weak")) is_good(handles->CreateHandle(object, 1, &weak), "a weak handle");
        if (is_named(name, "Strong")) is_good(handles->CreateHandle(object, 2, &strong), "a strong handle");
        if (is_named(name, "Pinned")) {
            pinned_object = object;
            is_good(handles->CreateHandle(object, 3, &pinned), "a pinned handle");
        }
        return S_OK;
    }
    /// Returns the object of a handle, if it is alive as expected.
    uint64_t object_of(uint64_t handle, bool is_alive) {
        uint64_t object = 0, type = 0;
        if (!handle) return fails("a handle"), 0;
        if (!is_good(handles->GetObjectIDFromHandle(handle, &object), "GetObjectIDFromHandle")) return 0;
        wants((object != 0) == is_alive, is_alive ? "the object lives" : "the object is dead");
        if (object) is_good(info->GetClassFromObject(object, &type), "GetClassFromObject");
        return object;
    }
    void weaken(uint64_t *handle) {
        uint64_t object = object_of(*handle, true);
        if (is_good(handles->DestroyHandle(*handle), "DestroyHandle")) handles->CreateHandle(object, 1, handle);
    }
    HRESULT GarbageCollectionStarted(int32_t, const BOOL *, uint32_t reason) override {
        is_induced = reason & INDUCED;
        count += is_induced;
        return S_OK;
    }
    HRESULT GarbageCollectionFinished() override {
        if (!is_induced) return S_OK;
        if (count == 1) {
            object_of(weak, false);
            object_of(strong, true);
            wants(object_of(pinned, true) == pinned_object, "a pinned object does not move");
        } else if (count == 2) {
            weaken(&strong);
            weaken(&pinned);
        } else if (count == 3) {
            object_of(strong, false);
            object_of(pinned, false);
        } else {
            fails("three collections");
        }
        return S_OK;
    }
    void end() override { wants(count != 0, "a collection"); }
};

/// `enumthreads`: threads are listed in RuntimeSuspendFinished.
struct EnumThreadsTest : Collections {
    int lists = 0;

    HRESULT begin() override { return ask(GC | SUSPENDS); }
    HRESULT RuntimeSuspendFinished() override {
        ICorProfilerThreadEnum *list = nullptr;
        HRESULT result = info->EnumThreads(reinterpret_cast<void **>(&list));
        if (is_good(result, "EnumThreads")) list->Release();
        lists++;
        return result;
    }
    void end() override {
        Collections::end();
        wants(lists != 0, "threads are listed");
    }
};

/// `gcheapenumeration`: the program asks for a list of all objects, also while the profiler has suspended the runtime, and
/// while another thread collects (the original waits seconds for that; here the callback waits until the list is asked for).
struct HeapEnumeration : Test {
    std::atomic<int> objects{0}, own{0};
    std::atomic<bool> is_asked{false};

    HRESULT GarbageCollectionStarted(int32_t, const BOOL *, uint32_t) override {
        // At most a second, for a program in which nothing else goes on.
        for (int wait = 0; wait < 100 && !is_asked; wait++) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return S_OK;
    }
    HRESULT begin() override {
        const char *word = std::getenv("GUEST_TEST");
        bool competes = word && std::string(word) == "gcheapenumeration-competing";
        return ask(competes ? GC : 0);
    }
    static BOOL on_object(uint64_t object, void *state) {
        auto *self = static_cast<HeapEnumeration *>(state);
        uint64_t type = 0;
        self->objects++;
        if (self->info->GetClassFromObject(object, &type) != S_OK) return 1;
        self->own += is_named(class_of(self->info, type), "CustomGCHeapObject");
        return 1;
    }
    void enumerate() {
        if (!heap) return fails("ICorProfilerInfo15");
        is_asked = true;
        is_good(heap->EnumerateGCHeapObjects(reinterpret_cast<const void *>(on_object), this), "EnumerateGCHeapObjects");
    }
    void end() override {
        wants(objects >= 500, "500 objects");
        wants(own == 1, "one object of the class");
    }
};

} // namespace guest

#endif
