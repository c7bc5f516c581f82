// A library that is no profiler.
int nothing() { return 0; }
