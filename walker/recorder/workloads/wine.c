/* What wine 8 lacks and CoreCLR needs, put in by changing the runtime's imports. Nothing on Windows. */
#include <string.h>
#include <windows.h>

/* Flags of CONTEXT that headers of mingw do not have. */
#define EXCEPTION_REQUESTED 0x40000000
#define EXCEPTION_REPORTED 0x80000000
#define SERVICE 0x10000000

static BOOL(WINAPI *get_thread_context)(HANDLE, CONTEXT *);
static HMODULE ntdll, win32u;

/* wine never reports whether a thread is in a system call or dispatches an exception, and CoreCLR takes no
   context of a cooperative thread without that report. A thread of wine in a system call stands behind the
   instruction that enters it in ntdll or win32u: `syscall` or `call [0x7ffe1000]`. The thread is suspended and may
   hold the heap's lock, so nothing here may take it: GetModuleHandleA would. */
static BOOL WINAPI report(HANDLE thread, CONTEXT *context) {
  DWORD asked = context->ContextFlags;
  if (!get_thread_context(thread, context)) return FALSE;
  if (asked & EXCEPTION_REQUESTED) {
    MEMORY_BASIC_INFORMATION memory;
    const unsigned char *rip = (const unsigned char *)context->Rip;
    static const unsigned char call[] = {0xff, 0x14, 0x25, 0x00, 0x10, 0xfe, 0x7f};
    context->ContextFlags |= EXCEPTION_REPORTED;
    if (VirtualQuery(rip, &memory, sizeof memory) &&
        memory.AllocationBase && (memory.AllocationBase == ntdll || memory.AllocationBase == win32u) &&
        ((rip[-2] == 0x0f && rip[-1] == 0x05) || !memcmp(rip - sizeof call, call, sizeof call)))
      context->ContextFlags |= SERVICE;
  }
  return TRUE;
}

/* Replaces an imported function of a module. */
static void replace(HMODULE module, void *old, void *new) {
  char *base = (char *)module;
  IMAGE_NT_HEADERS *headers = (IMAGE_NT_HEADERS *)(base + ((IMAGE_DOS_HEADER *)base)->e_lfanew);
  IMAGE_DATA_DIRECTORY *directory = &headers->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT];
  IMAGE_IMPORT_DESCRIPTOR *import = (IMAGE_IMPORT_DESCRIPTOR *)(base + directory->VirtualAddress);
  for (; import->Name; import++) {
    void **slot = (void **)(base + import->FirstThunk);
    for (; *slot; slot++) {
      if (*slot != old) continue;
      DWORD protection;
      VirtualProtect(slot, sizeof *slot, PAGE_READWRITE, &protection);
      *slot = new;
      VirtualProtect(slot, sizeof *slot, protection, &protection);
    }
  }
}

void repair_wine(HMODULE runtime) {
  ntdll = GetModuleHandleA("ntdll");
  /* Loaded by now: all versions of coreclr.dll need user32, which needs it. */
  win32u = GetModuleHandleA("win32u");
  if (!GetProcAddress(ntdll, "wine_get_version")) return;
  get_thread_context = (void *)GetProcAddress(GetModuleHandleA("kernel32"), "GetThreadContext");
  replace(runtime, (void *)get_thread_context, (void *)report);
}
