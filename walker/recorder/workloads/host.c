/* Runs a managed program in a runtime that has no `dotnet`: `host RUNTIME_FOLDER PROGRAM.dll ARGUMENTS…`,
   by coreclr_initialize and coreclr_execute_assembly. */
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*initialize_function)(const char *path, const char *name, int count, const char **keys,
                                   const char **values, void **host, unsigned *domain);
typedef int (*execute_function)(void *host, unsigned domain, int count, const char **arguments,
                                const char *assembly, unsigned *status);
typedef int (*shutdown_function)(void *host, unsigned domain);

/* Appends the paths of all assemblies in the folder, each after a colon. */
static char *assemblies(const char *folder) {
  size_t room = 1 << 20, used = 0;
  char *list = calloc(1, room);
  DIR *entries = opendir(folder);
  struct dirent *entry;
  while (entries && (entry = readdir(entries))) {
    size_t len = strlen(entry->d_name);
    if (len < 4 || strcmp(entry->d_name + len - 4, ".dll")) continue;
    used += snprintf(list + used, room - used, "%s/%s:", folder, entry->d_name);
    if (used >= room) exit(3);
  }
  return list;
}

int main(int count, char **arguments) {
  if (count < 3) {
    fprintf(stderr, "usage: host RUNTIME_FOLDER PROGRAM.dll ARGUMENTS...\n");
    return 2;
  }
  char folder[PATH_MAX], program[PATH_MAX], library[PATH_MAX + 32];
  if (!realpath(arguments[1], folder) || !realpath(arguments[2], program)) {
    perror("host");
    return 2;
  }
  snprintf(library, sizeof library, "%s/libcoreclr.so", folder);
  void *runtime = dlopen(library, RTLD_NOW);
  if (!runtime) {
    fprintf(stderr, "host: %s\n", dlerror());
    return 2;
  }
  initialize_function initialize = (initialize_function)dlsym(runtime, "coreclr_initialize");
  execute_function execute = (execute_function)dlsym(runtime, "coreclr_execute_assembly");
  shutdown_function shutdown = (shutdown_function)dlsym(runtime, "coreclr_shutdown");
  char own[PATH_MAX];
  strcpy(own, program);
  *strrchr(own, '/') = 0;
  char *trusted = assemblies(folder), *all = malloc(strlen(trusted) + strlen(program) + 1);
  strcat(strcpy(all, trusted), program);
  const char *keys[] = {"TRUSTED_PLATFORM_ASSEMBLIES", "APP_PATHS", "NATIVE_DLL_SEARCH_DIRECTORIES",
                        "System.Globalization.Invariant"};
  char native[2 * PATH_MAX];
  snprintf(native, sizeof native, "%s:%s", own, folder);
  const char *values[] = {all, own, native, "true"};
  void *host;
  unsigned domain, status = 1;
  int result = initialize(program, "host", 4, keys, values, &host, &domain);
  if (result < 0) {
    fprintf(stderr, "host: coreclr_initialize: %#x\n", result);
    return 2;
  }
  result = execute(host, domain, count - 3, (const char **)arguments + 3, program, &status);
  if (result < 0) fprintf(stderr, "host: coreclr_execute_assembly: %#x\n", result);
  shutdown(host, domain);
  return result < 0 ? 2 : (int)status;
}
