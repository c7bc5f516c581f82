/* The native side of the workloads: functions that managed code calls, and that call it back. */
#include <stdlib.h>
#include <string.h>

typedef int (*callback)(int);

/* Blittable. */
int add(int a, int b) { return a + b; }

/* Marshalled: a string becomes bytes. */
int length(const char *text) { return (int)strlen(text); }

/* Works for a while, with frames of its own. */
static int deeper(int depth, int value) {
  volatile int here = value;
  if (depth > 0) here += deeper(depth - 1, value ^ depth);
  for (int i = 0; i < 50; i++) here += i ^ value;
  return here;
}

int work(int depth, int value) { return deeper(depth, value); }

/* Calls back into managed code. */
int call_back(callback function, int count) {
  int sum = 0;
  for (int i = 0; i < count; i++) sum += function(i);
  return sum;
}

static callback order;

static int compare(const void *a, const void *b) {
  return order(*(const int *)a) - order(*(const int *)b);
}

/* Managed code below the C library. */
void sort(int *values, int count, callback key) {
  order = key;
  qsort(values, count, sizeof *values, compare);
}
