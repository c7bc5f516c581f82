/* Writes a minidump of a process of Windows, by reading it from outside: wine's own writer leaves out most.
 *
 * minidump PROGRAM FILE [small]: of the process of PROGRAM.exe, all memory that can be read, or (small) of images their headers and what
 * may have been written to.
 */
#include <windows.h>
#include <tlhelp32.h>
#include <psapi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODULES = 512, THREADS = 512, RANGES = 1 << 16 };

typedef struct { uint64_t start, size; } Range;

static Range ranges[RANGES];
static HANDLE threads[THREADS];
static DWORD ids[THREADS];
static HMODULE modules[MODULES];
static FILE *out;

static void fail(const char *what)
{
    fprintf(stderr, "minidump: %s: %lu\n", what, GetLastError());
    exit(1);
}

static void put(const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, out) != size) fail("write");
}

static void put32(uint32_t word) { put(&word, sizeof word); }
static void put64(uint64_t word) { put(&word, sizeof word); }

static DWORD find(const char *program)
{
    HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
    PROCESSENTRY32 entry = {.dwSize = sizeof entry};
    DWORD found = 0;
    for (BOOL more = Process32First(all, &entry); more; more = Process32Next(all, &entry))
        if (!_stricmp(entry.szExeFile, program)) found = entry.th32ProcessID;
    CloseHandle(all);
    return found;
}

static int stop(DWORD process)
{
    HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
    THREADENTRY32 entry = {.dwSize = sizeof entry};
    int count = 0;
    for (BOOL more = Thread32First(all, &entry); more; more = Thread32Next(all, &entry)) {
        if (entry.th32OwnerProcessID != process || count == THREADS) continue;
        HANDLE thread = OpenThread(THREAD_ALL_ACCESS, FALSE, entry.th32ThreadID);
        if (!thread || SuspendThread(thread) == (DWORD)-1) continue;
        ids[count] = entry.th32ThreadID;
        threads[count++] = thread;
    }
    CloseHandle(all);
    return count;
}

/* Whether all of a page can be read. */
static int reads(HANDLE process, uint64_t at)
{
    static char page[4096];
    SIZE_T done = 0;
    return ReadProcessMemory(process, (void *)(uintptr_t)at, page, sizeof page, &done) && done == sizeof page;
}

static int memory(HANDLE process, int small)
{
    MEMORY_BASIC_INFORMATION part;
    int count = 0;
    for (uint64_t at = 0; VirtualQueryEx(process, (void *)(uintptr_t)at, &part, sizeof part) == sizeof part;
         at = (uint64_t)(uintptr_t)part.BaseAddress + part.RegionSize) {
        int is_readable = part.State == MEM_COMMIT && !(part.Protect & (PAGE_NOACCESS | PAGE_GUARD));
        int is_code = part.Type == MEM_IMAGE && !(part.Protect & (PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY));
        if (!is_readable || (small && is_code && part.BaseAddress != part.AllocationBase)) continue;
        uint64_t start = (uint64_t)(uintptr_t)part.BaseAddress, end = start + part.RegionSize;
        if (small && is_code) end = start + 4096;
        for (; start < end; start += 4096) {
            if (!reads(process, start)) continue;
            if (count && ranges[count - 1].start + ranges[count - 1].size == start) {
                ranges[count - 1].size += 4096;
            } else if (count < RANGES) {
                ranges[count++] = (Range){start, 4096};
            }
        }
    }
    return count;
}

typedef struct { uint32_t kind, size, place; } Stream;

static uint32_t here(void) { return (uint32_t)ftell(out); }

static Stream put_system(void)
{
    Stream made = {7, 56, here()};
    char info[56] = {0};
    info[0] = 9; /* PROCESSOR_ARCHITECTURE_AMD64 */
    put(info, sizeof info);
    return made;
}

static Stream put_threads(int count)
{
    static CONTEXT context __attribute__((aligned(16)));
    uint32_t *places = calloc(count + 1, sizeof *places);
    uint64_t *stacks = calloc(count + 1, sizeof *stacks);
    for (int i = 0; i < count; i++) {
        context.ContextFlags = CONTEXT_ALL;
        if (!GetThreadContext(threads[i], &context)) fail("GetThreadContext");
        places[i] = here();
        stacks[i] = context.Rsp;
        put(&context, sizeof context);
    }
    Stream made = {3, 4 + 48 * count, here()};
    put32(count);
    for (int i = 0; i < count; i++) {
        put32(ids[i]);
        put32(1);
        put64(0);
        put64(0); /* the TEB is not looked for */
        put64(stacks[i]);
        put32(0); /* the stack is among the memory */
        put32(0);
        put32(sizeof context);
        put32(places[i]);
    }
    return made;
}

static Stream put_modules(HANDLE process)
{
    DWORD needed;
    if (!EnumProcessModules(process, modules, sizeof modules, &needed)) fail("EnumProcessModules");
    int count = needed / sizeof *modules;
    uint32_t *names = calloc(count + 1, sizeof *names);
    static WCHAR path[1024];
    for (int i = 0; i < count; i++) {
        uint32_t size = 2 * GetModuleFileNameExW(process, modules[i], path, 1024);
        names[i] = here();
        put32(size);
        put(path, size + 2);
        if (here() % 4) put("\0", 2);
    }
    Stream made = {4, 4 + 108 * count, here()};
    put32(count);
    for (int i = 0; i < count; i++) {
        MODULEINFO info;
        GetModuleInformation(process, modules[i], &info, sizeof info);
        static char headers[4096];
        if (!ReadProcessMemory(process, modules[i], headers, sizeof headers, NULL)) memset(headers, 0, sizeof headers);
        IMAGE_NT_HEADERS64 *nt = (void *)(headers + ((IMAGE_DOS_HEADER *)headers)->e_lfanew % 2048);
        char rest[108 - 24] = {0};
        put64((uint64_t)(uintptr_t)modules[i]);
        put32(info.SizeOfImage);
        put32(nt->OptionalHeader.CheckSum);
        put32(nt->FileHeader.TimeDateStamp);
        put32(names[i]);
        /* the version's resource */
        GetModuleFileNameExW(process, modules[i], path, 1024);
        DWORD unused, size = GetFileVersionInfoSizeW(path, &unused);
        void *version = size ? malloc(size) : NULL, *fixed;
        UINT length;
        if (version && GetFileVersionInfoW(path, 0, size, version) && VerQueryValueW(version, L"\\", &fixed, &length) && length == 52)
            memcpy(rest, fixed, 52);
        put(rest, sizeof rest);
    }
    return made;
}

static Stream put_memory(HANDLE process, int count)
{
    Stream made = {9, 16 + 16 * count, here()};
    put64(count);
    put64(made.place + made.size);
    for (int i = 0; i < count; i++) {
        put64(ranges[i].start);
        put64(ranges[i].size);
    }
    static char page[4096];
    for (int i = 0; i < count; i++) {
        for (uint64_t at = 0; at < ranges[i].size; at += sizeof page) {
            memset(page, 0, sizeof page);
            if (!ReadProcessMemory(process, (void *)(uintptr_t)(ranges[i].start + at), page, sizeof page, NULL)) fail("ReadProcessMemory");
            put(page, sizeof page);
        }
    }
    return made;
}

int main(int count, char **arguments)
{
    if (count < 3) return 2;
    DWORD id = find(arguments[1]);
    HANDLE process = OpenProcess(PROCESS_ALL_ACCESS, FALSE, id);
    if (!process) fail("OpenProcess");
    int number = stop(id), parts = memory(process, count > 3);
    out = fopen(arguments[2], "wb");
    if (!out) fail("open");
    char header[32 + 4 * 12] = {0};
    put(header, sizeof header);
    Stream streams[] = {put_system(), put_threads(number), put_modules(process), put_memory(process, parts)};
    fseek(out, 0, SEEK_SET);
    put("MDMP\x93\xA7\0\0", 8);
    put32(4);
    put32(32);
    put32(0);
    put32(0);
    put64(2); /* MiniDumpWithFullMemory */
    put(streams, sizeof streams);
    if (fclose(out)) fail("close");
    for (int i = 0; i < number; i++) ResumeThread(threads[i]);
    printf("%d threads, %d ranges\n", number, parts);
    return 0;
}
