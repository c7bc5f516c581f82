// Built by clang 18 for x86_64-macos: with -O2, and again with -fomit-frame-pointer and other names.
#ifdef WITHOUT
#define N(x) x##_without
#else
#define N(x) x##_with
#endif
typedef unsigned long u64;
extern u64 N(other)(u64);
extern void N(stop)(const char *) __attribute__((noreturn));
u64 N(leaf)(u64 a) { return a * 3 + 1; }
u64 N(loop)(u64 a) { u64 s = 0; for (u64 i = 0; i < a; i++) s += N(other)(i); return s; }
u64 N(many)(u64 a, u64 b, u64 c, u64 d, u64 e) { return N(other)(a) + N(other)(b) * N(other)(c) + N(other)(d) + e * N(other)(e); }
u64 N(large)(u64 a) { volatile char b[3000]; for (int i = 0; i < 3000; i++) b[i] = (char)N(other)(a + i); return b[a % 3000]; }
u64 N(huge)(u64 a) { volatile char b[300]; b[a & 63] = N(other)(a); return b[a & 31] + N(other)(1); }
u64 N(early)(u64 *a) { if (!a) return 7; if (*a == 3) { N(stop)("three"); } return N(other)(*a) + N(other)(a[1]); }
u64 N(tail)(u64 a) { u64 s = N(other)(a); return N(other)(s + 1); }
u64 N(pointer)(u64 (*f)(u64), u64 a) { u64 s = N(other)(a); return f(s); }
u64 N(choose)(u64 a, u64 b) { switch (a) { case 0: return N(other)(b); case 1: return b * 7; case 2: return N(other)(b + 1) * 3; case 3: return N(other)(b) ^ 5; case 4: return b + N(other)(9); case 5: return b / 3; case 6: return N(other)(b * b); default: return 1; } }
u64 N(dynamic)(u64 a) { volatile char b[a + 16]; b[a] = 3; return N(other)((u64)b[a]); }
u64 N(aligned)(u64 a) { volatile char b[64] __attribute__((aligned(64))); b[a & 63] = 1; return N(other)(b[3]); }
u64 N(deep)(u64 a, u64 b, u64 c) { u64 x[6]; for (int i = 0; i < 6; i++) x[i] = N(other)(a ^ b * i); for (u64 i = 0; i < c; i++) { if (x[i % 6] > a) { x[i % 6] -= N(leaf)(b); } else if (!b) return x[0]; } return x[1] + x[2] * x[3]; }
u64 N(pure)(const u64 *a, u64 n, u64 *out) { u64 s = 0, t = 1, u = 2, v = 3, w = 4; for (u64 i = 0; i < n; i++) { s += a[i] * t; t ^= s + u; u = u * 5 + a[i] / (v | 1); v += w ^ t; w = w * 3 + s; out[i] = s ^ t ^ u ^ v ^ w; } return s + t + u + v + w; }
