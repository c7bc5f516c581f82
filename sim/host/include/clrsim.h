/* libclrsim: an ICorProfilerInfo of a simulated CLR, for tests of profilers.
 *
 * A session is a text on a runtime. All calls of a session are made on the thread that opened it; calls on
 * other threads are refused with CLRSIM_E_WRONG_THREAD, and are findings. Pointers to the runtime's objects
 * are valid until the session is closed, and may be released after that.
 */
#ifndef CLRSIM_H
#define CLRSIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Never dereferenced: any value may be passed. */
typedef struct clrsim_session clrsim_session;

typedef enum clrsim_status {
    CLRSIM_OK = 0,
    CLRSIM_BAD_ARGUMENT = 1, /* NULL, text that is not UTF-8, or a number that means nothing */
    CLRSIM_NO_SESSION = 2,   /* closed, of another thread, or never a session */
    CLRSIM_NO_RUNTIME = 3,   /* no runtime has this name */
    CLRSIM_BAD_TEXT = 4,     /* the text is not a scenario */
    CLRSIM_NO_FILE = 5,      /* the file cannot be read */
    CLRSIM_NOT_REACHED = 6,  /* the threads cannot be run that far */
    CLRSIM_DIFFERS = 7,      /* a call gives another result than the text expects, or a demand is not met */
    CLRSIM_NOTHING = 8       /* there is no such finding, or nothing to compare with */
} clrsim_status;

typedef enum clrsim_role {
    CLRSIM_NATIVE = 0,  /* a thread of the profiler that the runtime does not know */
    CLRSIM_MANAGED = 1, /* a thread of the profiler that has run managed code */
    CLRSIM_STOPPED = 2  /* the thread that has stopped */
} clrsim_role;

/* HRESULTs that no CLR returns: the process has ended in a call, or waits for ever; the call was made on another
 * thread; the object was released, or its session closed. */
#define CLRSIM_E_ENDED ((int32_t)0xA0C10001)
#define CLRSIM_E_WRONG_THREAD ((int32_t)0xA0C10002)
#define CLRSIM_E_RELEASED ((int32_t)0xA0C10003)

/* The version of the library: "0.1.0". A program that needs a newer function asks for it first. */
const char *clrsim_version(void);

/* Opens a text, or the text in a file, on a runtime: "net8-unix". Writes NULL if it fails. */
clrsim_status clrsim_open(const char *text, const char *runtime, clrsim_session **session);
clrsim_status clrsim_open_file(const char *path, const char *runtime, clrsim_session **session);
void clrsim_close(clrsim_session *session);

/* The message of the last error on this thread, valid until the next one. */
const char *clrsim_last_error(void);

/* The names of the runtimes by number, from 0; NULL after the last. */
const char *clrsim_runtime_name(uint32_t number);

/* Runs the text's threads to a stop, by its number from 0, from the beginning. */
clrsim_status clrsim_run_to_stop(clrsim_session *session, uint32_t stop);

/* Loads a profiler, an ICorProfilerCallback *, and returns the result of its Initialize. The session holds references to
 * it, and releases them when it is closed. */
int32_t clrsim_initialize(clrsim_session *session, void *profiler);

/* Executes the text's program to its end, with the callbacks that the profiler has asked for. */
clrsim_status clrsim_run(clrsim_session *session);

/* Chooses the thread that the next calls are made on. In callbacks it is the callback's. */
clrsim_status clrsim_act_as(clrsim_session *session, int32_t role);

/* The ThreadID of the thread that has stopped, or 0. */
uint64_t clrsim_stopped_thread(clrsim_session *session);

/* The runtime's object: an ICorProfilerInfo * and IUnknown *. No reference is counted. */
void *clrsim_info(clrsim_session *session);

/* The number of findings so far: what the profiler did wrong, and references that are left. */
uint32_t clrsim_findings(clrsim_session *session);

/* One finding, by its number from 0: its kind, "use-after-release", for tests, and its sentence, for people. Either pointer
 * may be NULL. Both texts are valid until the next call of this function for the session, or its end. */
clrsim_status clrsim_finding(clrsim_session *session, uint32_t number, const char **kind, const char **text);

/* Makes the calls that the text itself has, as `clrsim run` does, in a process of their own, and compares the results with
 * the text's expectations for the session's runtime. CLRSIM_NOTHING if it has none. */
clrsim_status clrsim_check(clrsim_session *session);

/* Judges the calls and callbacks of the session so far by the text's node `coverage`; clrsim_last_error says what is missing.
 * A method that was called and is not simulated is a fault, too. CLRSIM_NOTHING if the text demands nothing on the runtime.
 * A test without this function does not know whether its profiler has done anything. */
clrsim_status clrsim_covers(clrsim_session *session);

/* The number of calls of a method: "DoStackSnapshot". */
uint32_t clrsim_calls_of(clrsim_session *session, const char *method);

/* Texts, valid until the next call of the same function for the session, or its end. The report has a line for each
 * finding ("found: ..."), each method that is not simulated, each callback that is not raised, and each method called;
 * the explanation has one for each decision of each walk. */
const char *clrsim_report(clrsim_session *session);
const char *clrsim_explanation(clrsim_session *session);

/* The explanation of one walk, by its number from 0: of the first call of DoStackSnapshot, the second... NULL if there was
 * none. Valid as the texts above. */
const char *clrsim_explain_call(clrsim_session *session, uint32_t number);

#ifdef __cplusplus
}
#endif

#endif
