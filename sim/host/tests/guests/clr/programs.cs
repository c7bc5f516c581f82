// The programs that the texts stand for, in a CLR: CLR_TEST chooses. `libsuite.so` (suite.cpp) is beside the program.
using System; using System.Runtime.CompilerServices; using System.Runtime.InteropServices; using System.Collections.Generic;
class Weak {} class Strong {} class Pinned {} class CustomGCHeapObject { public int a; }
static class App {
  [DllImport("suite")] static extern void DoPInvoke(int i); [DllImport("suite")] static extern void EnumerateObjects();
  delegate void D();
  [MethodImpl(MethodImplOptions.NoInlining)] static void Reverse() {}
  static void Inlinee() { }
  [MethodImpl(MethodImplOptions.NoInlining)] static void Inlining() { Inlinee(); }
  [MethodImpl(MethodImplOptions.NoInlining)] static void BlockInlining() { Inlinee(); }
  [MethodImpl(MethodImplOptions.NoInlining)] static void NoResponse() { Inlinee(); }
  static void Foo() { try { } finally { try { } finally { throw new Exception("f"); } } }
  static bool Filter(Exception e) { return e.Message == "f"; }
  static void Bar() { try { Foo(); } catch (Exception e) when (Filter(e)) { } }
  [MethodImpl(MethodImplOptions.NoInlining)] static void Make() { Use(new Weak()); Use(new Strong()); Use(new Pinned()); }
  [MethodImpl(MethodImplOptions.NoInlining)] static void Use(object o) { }
  static object keep;
  static int Main(string[] a) {
    var t = Environment.GetEnvironmentVariable("CLR_TEST");
    switch (t) {
      case "transitions": DoPInvoke(1); break;
      case "elttransitions": DoPInvoke(1); D d = Reverse; Marshal.GetDelegateForFunctionPointer<D>(Marshal.GetFunctionPointerForDelegate(d))(); GC.KeepAlive(d); break;
      case "inlining": Inlining(); BlockInlining(); NoResponse(); break;
      case "exception": Bar(); break;
      case "handles": Make(); GC.Collect(); GC.Collect(); GC.Collect(); break;
      case "gcheapenumeration": keep = new CustomGCHeapObject(); var l = new List<object>(); for (int i = 0; i < 600; i++) l.Add(new object()); EnumerateObjects(); GC.KeepAlive(l); break;
      case "gcallocate": var x = new byte[100000]; keep = GC.AllocateArray<byte>(100, true); GC.KeepAlive(x); break;
      case "gc": { var r = new object[2]; r[0] = GC.AllocateArray<int>(100, true); keep = r; var p = GC.AllocateArray<int>(100, true); GC.Collect(); GC.KeepAlive(p); GC.KeepAlive(r); break; }
      default: for (int i = 0; i < 3; i++) { keep = new object[100]; GC.Collect(); } break;
    }
    return 0; } }
