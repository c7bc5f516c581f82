// The tests of EventPipe.
#ifndef EVENTS_HPP
#define EVENTS_HPP

#include "suite.hpp"

#include <map>
#include <mutex>

namespace guest {

/// `COR_PRF_EVENTPIPE_PARAM_TYPE`.
enum Kind : uint32_t {
    OBJECT = 1, BOOLEAN = 3, CHAR, SBYTE, BYTE, INT16, UINT16, INT32, UINT32, INT64, UINT64, SINGLE, DOUBLE, DATE_TIME = 16, ID, STRING, ARRAY
};

/// Bytes that are read from the first to the last.
struct Reader {
    const uint8_t *bytes;
    size_t size, at = 0;
    bool is_short = false;

    template <typename Value> Value get() {
        Value value = {};
        if (at + sizeof value > size) return is_short = true, value;
        std::memcpy(&value, bytes + at, sizeof value);
        at += sizeof value;
        return value;
    }
    std::string text() {
        std::string text;
        while (WCHAR unit = get<WCHAR>()) text += unit < 0x80 ? static_cast<char>(unit) : '?';
        return text;
    }
};

/// What an event's metadata say: its name, and the names and types of its parameters (`name:type`, `name:array of type`).
struct Described {
    std::string name;
    std::vector<std::string> parameters;

    static std::string type(Reader &from) {
        uint32_t kind = from.get<uint32_t>();
        if (kind == ARRAY) return "array of " + type(from);
        if (kind == OBJECT && !from.is_short)
            for (uint32_t count = from.get<uint32_t>(); count > 0 && !from.is_short; count--) field(from, true);
        return std::to_string(kind);
    }
    static std::string field(Reader &from, bool is_new) {
        if (is_new) {
            from.get<uint32_t>();
            std::string name = from.text();
            return name + ":" + type(from);
        }
        std::string kind = type(from);
        return from.text() + ":" + kind;
    }
    static Described read(const uint8_t *metadata, uint32_t size) {
        Reader from{metadata, size};
        from.get<uint32_t>();
        Described found{from.text(), {}};
        from.get<uint64_t>(), from.get<uint32_t>(), from.get<uint32_t>();
        for (uint32_t count = from.get<uint32_t>(); count > 0 && !from.is_short; count--) found.parameters.push_back(field(from, false));
        while (from.at < size && !from.is_short) {
            uint32_t length = from.get<uint32_t>();
            // The tag of parameters with arrays.
            if (from.get<uint8_t>() != 2) {
                from.at += length;
                continue;
            }
            for (uint32_t count = from.get<uint32_t>(); count > 0 && !from.is_short; count--) found.parameters.push_back(field(from, true));
        }
        return found;
    }
};

/// A test that events are delivered to.
struct Delivered : Test {
    using List = std::vector<std::string>;

    std::string name_of_provider(uint64_t provider) {
        WCHAR name[256] = {};
        uint32_t length = 0;
        return is_good(events->EventPipeGetProviderInfo(provider, 256, &length, name), "EventPipeGetProviderInfo") ? narrow(name) : "?";
    }
    virtual void take(const std::string &provider, uint32_t id, const Described &event, Reader data) = 0;
    HRESULT EventPipeEventDelivered(uint64_t provider, uint32_t id, uint32_t, uint32_t metadata_size, const uint8_t *metadata, uint32_t size,
                                    const uint8_t *data, const GUID *, const GUID *, uint64_t, uint32_t, const uint64_t *) override {
        take(name_of_provider(provider), id, Described::read(metadata, metadata_size), Reader{data, size});
        return S_OK;
    }
};

/// `eventpipe-reading`: a session delivers the events that the program writes.
struct EventReading : Delivered {
    uint64_t session = 0;
    std::atomic<int> seen{0};

    HRESULT begin() override {
        if (!events) return E_FAIL;
        HRESULT result = ask(0, HIGH_EVENTS);
        if (result < 0 || is_broken("session")) return result;
        EventProviderConfig wanted = {u"EventPipeTestEventSource", UINT64_MAX, 5, nullptr};
        return events->EventPipeStartSession(1, &wanted, 0, &session);
    }
    void take(const std::string &provider, uint32_t, const Described &event, Reader data) override {
        if (provider != "EventPipeTestEventSource") return;
        if (event.name == "MyEvent") {
            seen++;
            wants(event.parameters == List{"i:9"}, "the parameters of MyEvent");
            wants(data.get<int32_t>() == 12, "an integer");
        } else if (event.name == "MyArrayEvent") {
            seen++;
            wants(event.parameters == List{"ch:4", "intArray:array of 9", "str:18"}, "the parameters of MyArrayEvent");
            wants(data.get<WCHAR>() == u'd', "a character");
            wants(data.get<uint16_t>() == 120, "the length of an array");
            for (int32_t index = 0; index < 120; index++) wants(data.get<int32_t>() == index, "an element of an array");
            wants(data.text() == "Hello from EventPipeTestEventSource!", "a string");
        } else if (event.name == "KeyValueEvent") {
            seen++;
            wants(event.parameters == List{"SourceName:18", "EventName:18", "Arguments:array of 1"}, "the parameters of KeyValueEvent");
            wants(data.text() == "Source" && data.text() == "Event", "two strings");
            wants(data.get<uint16_t>() == 1, "the length of a list");
            wants(data.text() == "samplekey" && data.text() == "samplevalue", "a pair");
        }
    }
    void end() override { wants(seen == 3, "three events"); }
};

/// `eventpipe-writing`: a provider of the profiler's is told of sessions, and its events are delivered. The original's program
/// opens two sessions from outside and reads one; here the profiler opens them when the program says so, and reads both.
struct EventWriting : Delivered {
    static constexpr uint64_t KEYWORDS = 0xf00000000000;
    static constexpr uint32_t VERBOSE = 5, INFORMATIONAL = 4, ALWAYS = 0;
    static constexpr int MANY = 10000;
    static inline EventWriting *current = nullptr;
    uint64_t provider = 0, sessions[2] = {}, all_types = 0, array = 0, empty = 0, simple = 0;
    bool is_enabled = false, is_disabled = false;
    int seen_all = 0, seen_arrays = 0, seen_empty = 0, seen_simple = 0;

    static void on_change(const uint8_t *, uint32_t enabled, uint8_t level, uint64_t any, uint64_t all, void *, void *) {
        (enabled ? current->is_enabled : current->is_disabled) = true;
        current->wants(any == KEYWORDS && all == 0 && level == VERBOSE, "keywords and level of the sessions");
    }
    void define(const WCHAR *name, uint32_t id, uint32_t level, bool has_stack, const std::vector<EventParameter> &parameters, uint64_t *event) {
        auto len = static_cast<uint32_t>(parameters.size());
        is_good(fourteen->EventPipeDefineEvent(provider, name, id, 0, 1, level, 0, has_stack, len, len ? parameters.data() : nullptr, event), "EventPipeDefineEvent");
    }
    static const std::vector<EventParameter> &every_type() {
        static const std::vector<EventParameter> all = {
            {BOOLEAN, 0, u"Boolean"}, {CHAR, 0, u"Char"},     {SBYTE, 0, u"SByte"},   {BYTE, 0, u"Byte"},     {INT16, 0, u"Int16"},
            {UINT16, 0, u"UInt16"},   {INT32, 0, u"Int32"},   {UINT32, 0, u"UInt32"}, {INT64, 0, u"Int64"},   {UINT64, 0, u"UInt64"},
            {SINGLE, 0, u"Single"},   {DOUBLE, 0, u"Double"}, {ID, 0, u"Guid"},       {STRING, 0, u"String"}, {DATE_TIME, 0, u"DateTime"}};
        return all;
    }
    HRESULT begin() override {
        current = this;
        if (!fourteen) return E_FAIL;
        HRESULT result = ask(JIT | CACHE_SEARCHES);
        if (result < 0) return result;
        result = fourteen->EventPipeCreateProvider2(u"MyEventPipeProvider", reinterpret_cast<const void *>(on_change), &provider);
        if (result < 0) return result;
        define(u"AllTypesEvent", 1, ALWAYS, true, every_type(), &all_types);
        define(u"ArrayTypeEvent", 3, ALWAYS, true, {{ARRAY, INT32, u"IntArray"}}, &array);
        define(u"EmptyEvent", 2032, INFORMATIONAL, false, {}, &empty);
        define(u"SimpleEvent", 2, VERBOSE, true, {{INT32, 0, u"Int32"}}, &simple);
        return S_OK;
    }
    void open() {
        EventProviderConfig wanted = {u"MyEventPipeProvider", KEYWORDS, VERBOSE, nullptr};
        for (uint64_t &session : sessions) is_good(fourteen->EventPipeStartSession(1, &wanted, 0, &session), "EventPipeStartSession");
    }
    void close() {
        for (uint64_t session : sessions) is_good(fourteen->EventPipeStopSession(session), "EventPipeStopSession");
    }
    void write(uint64_t event, const std::vector<EventData> &parts) {
        auto len = static_cast<uint32_t>(parts.size());
        is_good(fourteen->EventPipeWriteEvent(event, len, len ? parts.data() : nullptr, nullptr, nullptr), "EventPipeWriteEvent");
    }
    template <typename Value> static EventData part(const Value &value) { return {reinterpret_cast<uint64_t>(&value), sizeof value, 0}; }
    /// What is written of each type.
    struct Values {
        BOOL truth = 1;
        WCHAR unit = u'A';
        int8_t sbyte = -124;
        uint8_t byte = 125;
        int16_t i16 = -35;
        uint16_t u16 = 98;
        int32_t i32 = -560;
        uint32_t u32 = 561;
        int64_t i64 = 2147483648;
        uint64_t u64 = 2147483649;
        float single = 3.0f;
        double real = 3.023;
        GUID id = {0x176fbed1, 0xa55c, 0x4796, {0x98, 0xca, 0xa9, 0xda, 0x0e, 0xf8, 0x83, 0xe7}};
        WCHAR text[7] = {u'H', u'e', u'l', u'l', u'o', u'!', 0};
        uint64_t time = 132243707160000000;
    };
    void write_all() {
        Values it;
        write(all_types, {part(it.truth), part(it.unit), part(it.sbyte), part(it.byte), part(it.i16), part(it.u16), part(it.i32), part(it.u32),
                          part(it.i64), part(it.u64), part(it.single), part(it.real), part(it.id), part(it.text), part(it.time)});
        std::vector<uint8_t> bytes(2 + 100 * sizeof(int32_t));
        bytes[0] = 100;
        for (int32_t index = 0; index < 100; index++) {
            int32_t value = 100 - index;
            std::memcpy(&bytes[2 + index * sizeof value], &value, sizeof value);
        }
        write(array, {{reinterpret_cast<uint64_t>(bytes.data()), static_cast<uint32_t>(bytes.size()), 0}});
        for (int count = 0; count < 10; count++) write(empty, {});
        for (int32_t count = 0; count < MANY; count++) write(simple, {part(count)});
    }
    HRESULT see(uint64_t function) {
        if (is_named(name_of(info, function), "TriggerMethod")) write_all();
        return S_OK;
    }
    HRESULT JITCompilationStarted(uint64_t function, BOOL) override { return see(function); }
    HRESULT JITCachedFunctionSearchFinished(uint64_t function, uint32_t result) override { return result == 0 ? see(function) : S_OK; }
    template <typename Value> void wants_next(Reader &data, const Value &value) {
        Value found = data.get<Value>();
        wants(std::memcmp(&found, &value, sizeof value) == 0, "a value of a type");
    }
    void take_all(const Described &event, Reader data) {
        List names;
        for (const EventParameter &one : every_type()) names.push_back(narrow(one.name) + ":" + std::to_string(one.kind));
        wants(event.parameters == names, "the parameters of AllTypesEvent");
        Values it;
        wants_next(data, it.truth), wants_next(data, it.unit), wants_next(data, it.sbyte), wants_next(data, it.byte);
        wants_next(data, it.i16), wants_next(data, it.u16), wants_next(data, it.i32), wants_next(data, it.u32);
        wants_next(data, it.i64), wants_next(data, it.u64), wants_next(data, it.single), wants_next(data, it.real);
        wants_next(data, it.id);
        wants(data.text() == "Hello!", "a string");
        wants_next(data, it.time);
    }
    void take(const std::string &from, uint32_t id, const Described &event, Reader data) override {
        if (from != "MyEventPipeProvider") return;
        if (event.name == "AllTypesEvent" && id == 1) {
            seen_all++;
            take_all(event, data);
        } else if (event.name == "ArrayTypeEvent" && id == 3) {
            seen_arrays++;
            wants(event.parameters == List{"IntArray:array of 9"}, "the parameter of ArrayTypeEvent");
            wants(data.get<uint16_t>() == 100, "the length of an array");
            for (int32_t value = 100; value > 0; value--) wants(data.get<int32_t>() == value, "an element of an array");
        } else if (event.name == "EmptyEvent" && id == 2032) {
            seen_empty++;
            wants(event.parameters.empty() && data.size == 0, "an event without parameters");
        } else if (event.name == "SimpleEvent" && id == 2) {
            wants(event.parameters == List{"Int32:9"}, "the parameter of SimpleEvent");
            wants(data.get<int32_t>() == seen_simple++ / 2, "the events in order");
        } else {
            fails("another event");
        }
    }
    void end() override {
        wants(is_enabled && is_disabled, "the provider is told of the sessions");
        wants(seen_all == 2 && seen_arrays == 2 && seen_empty == 20 && seen_simple == 2 * MANY, "each session gets each event");
        std::printf("enabled %d, disabled %d, events %d %d %d %d\n", is_enabled, is_disabled, seen_all, seen_arrays, seen_empty, seen_simple);
    }
};

} // namespace guest

#endif
