// libclrsim for C++17: sessions that close themselves, and errors as exceptions. With -fsanitize=undefined add
// -fno-sanitize=vptr: the runtime's objects are not of C++, and have no RTTI. C++ exceptions must not leave callbacks.
#ifndef CLRSIM_HPP
#define CLRSIM_HPP

#include "clrsim.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace clrsim {

/// An error, with its status.
class Error : public std::runtime_error {
public:
    explicit Error(clrsim_status status) : std::runtime_error(clrsim_last_error()), status_(status) {}

    clrsim_status status() const noexcept { return status_; }

private:
    clrsim_status status_;
};

inline void check(clrsim_status status) {
    if (status != CLRSIM_OK) throw Error(status);
}

/// Returns the names of all runtimes.
inline std::vector<std::string> runtimes() {
    std::vector<std::string> names;
    while (const char *name = clrsim_runtime_name(static_cast<uint32_t>(names.size()))) names.emplace_back(name);
    return names;
}

/// A text on a runtime.
class Session {
public:
    Session(const std::string &text, const std::string &runtime) {
        check(clrsim_open(text.c_str(), runtime.c_str(), &session_));
    }
    Session(Session &&other) noexcept : session_(std::exchange(other.session_, nullptr)) {}
    Session(const Session &) = delete;
    Session &operator=(Session &&) = delete;
    ~Session() { clrsim_close(session_); }

    static Session from_file(const std::string &path, const std::string &runtime) {
        Session session;
        check(clrsim_open_file(path.c_str(), runtime.c_str(), &session.session_));
        return session;
    }

    clrsim_session *get() const noexcept { return session_; }

    /// Returns the runtime's object as any of its interfaces, without counting a reference: those of each version
    /// begin with those of the one before. QueryInterface says which ones the runtime has.
    template <typename Interface> Interface *info() const { return static_cast<Interface *>(clrsim_info(session_)); }

    void run_to_stop(uint32_t stop) { check(clrsim_run_to_stop(session_, stop)); }
    int32_t initialize(void *profiler) { return clrsim_initialize(session_, profiler); }
    void run() { check(clrsim_run(session_)); }
    void act_as(clrsim_role role) { check(clrsim_act_as(session_, role)); }
    uint64_t stopped_thread() const { return clrsim_stopped_thread(session_); }
    uint32_t findings() const { return clrsim_findings(session_); }
    uint32_t calls_of(const char *method) const { return clrsim_calls_of(session_, method); }
    /// Returns the kind of a finding, and its sentence. Throws if there is no such finding.
    std::pair<std::string, std::string> finding(uint32_t number) const {
        const char *kind = nullptr, *sentence = nullptr;
        clrsim::check(clrsim_finding(session_, number, &kind, &sentence));
        return {kind, sentence};
    }
    /// Throws if a call of the text gives another result than the text expects, or if it expects nothing.
    void check_text() const { clrsim::check(clrsim_check(session_)); }
    /// Throws if the session has not made the calls and callbacks that the text demands, called what is not simulated, or if it
    /// demands nothing.
    void check_coverage() const { clrsim::check(clrsim_covers(session_)); }
    std::string report() const { return text(clrsim_report(session_)); }
    std::string explanation() const { return text(clrsim_explanation(session_)); }
    std::string explain_call(uint32_t number) const { return text(clrsim_explain_call(session_, number)); }

private:
    Session() = default;

    static std::string text(const char *text) { return text ? text : ""; }

    clrsim_session *session_ = nullptr;
};

} // namespace clrsim

#endif
