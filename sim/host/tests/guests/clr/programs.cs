// The programs that the texts stand for, in a CLR: GUEST_TEST chooses. `libsuite.so` (suite.cpp) and UnloadLibrary.dll
// (library.cs) are beside the program. With GUEST_BROKEN=program it does nothing.
using System; using System.Collections.Generic; using System.IO; using System.Reflection; using System.Reflection.Emit;
using System.Runtime.CompilerServices; using System.Runtime.InteropServices; using System.Runtime.Loader; using System.Threading;
class Weak { public static int id; } class Strong { public static int id; } class Pinned { public static int id; }
class CustomGCHeapObject { public int a; }
static unsafe class App {
  const MethodImplOptions NI = MethodImplOptions.NoInlining, AI = MethodImplOptions.AggressiveInlining;
  [DllImport("suite")] static extern void DoPInvoke(delegate* unmanaged<int, int> callback, int i);
  [DllImport("suite")] static extern void EnumerateObjects(); [DllImport("suite")] static extern void SuspendRuntime();
  [DllImport("suite")] static extern void ResumeRuntime(); [DllImport("suite")] static extern void SwitchOptimizations(int off);
  [DllImport("suite")] static extern void SwitchInlining(int off); [DllImport("suite")] static extern void WantInlines(int count);
  [DllImport("suite")] static extern int AttachToItself(byte* path); [DllImport("suite")] static extern void PassFlag(bool* flag);
  [DllImport("suite")] static extern void PassCallback(delegate* unmanaged<void> callback); [DllImport("suite")] static extern void ProgramFails();
  [DllImport("suite")] static extern void BeginSessions(); [DllImport("suite")] static extern void EndSessions();
  [UnmanagedCallersOnly] static int DoReversePInvoke(int i) { return i; }
  [MethodImpl(AI)] static int Inlinee() { return new Random().Next(); }
  [MethodImpl(NI)] static void Inlining() { Use(Inlinee()); }
  [MethodImpl(NI)] static void BlockInlining() { Use(Inlinee()); }
  [MethodImpl(NI)] static void NoResponse() { Use(Inlinee()); }
  static void Foo() { try { } finally { try { } finally { throw new Exception("f"); } } }
  static bool Filter(Exception e) { return e.Message == "f"; }
  static void Bar() { try { Foo(); } catch (Exception e) when (Filter(e)) { } }
  [MethodImpl(NI)] static void Make() { Use(new Weak()); Use(new Strong()); Use(new Pinned()); }
  [MethodImpl(NI)] static void Use(object o) { }
  static object keep; static bool done; static readonly ManualResetEvent called = new ManualResetEvent(false);
  static string Beside(string name) { return Path.Combine(AppContext.BaseDirectory is { Length: > 0 } d ? d : ".", name); }
  static string Lib { get { return Path.GetFullPath(Beside("UnloadLibrary.dll")); } }
  static Assembly Load() { return new AssemblyLoadContext("collectible", true).LoadFromAssemblyPath(Lib); }
  [MethodImpl(NI)] static WeakReference LoadAndUnload() {
    var c = new AssemblyLoadContext("collectible", true);
    Activator.CreateInstance(c.LoadFromAssemblyPath(Lib).GetType("UnloadLibrary.TestClass")).GetHashCode();
    GC.Collect(); c.Unload(); return new WeakReference(c); }
  static void UntilUnloaded(WeakReference c) { for (int i = 0; i < 20 && c.IsAlive; i++) { GC.Collect(); GC.WaitForPendingFinalizers(); } GC.Collect(); GC.WaitForPendingFinalizers(); GC.Collect(); }
  static void Compile(Assembly a, int inlines) { RuntimeHelpers.PrepareMethod(a.GetType("UnloadLibrary.Optimized").GetMethod("Run").MethodHandle); WantInlines(inlines); }
  static int Attach() { var p = System.Text.Encoding.UTF8.GetBytes(Path.GetFullPath(Beside("libsuite.so")) + "\0"); fixed (byte* b = p) return AttachToItself(b); }
  [UnmanagedCallersOnly] static void Called() { called.Set(); }
  static void Await() { if (!called.WaitOne(120000)) Console.WriteLine("not called"); }
  [MethodImpl(NI)] static void Literals() { Use("one"); Use("two"); Use("three"); Use("four"); Use("five"); Use("six"); }
  [MethodImpl(NI)] static void TriggerMethod() { }
  static int Main(string[] a) {
    var t = Environment.GetEnvironmentVariable("GUEST_TEST");
    if (Environment.GetEnvironmentVariable("GUEST_BROKEN") == "program") return 0;
    switch (t) {
      case "transitions": case "elttransitions": DoPInvoke(&DoReversePInvoke, 13); break;
      case "inlining": Inlining(); BlockInlining(); NoResponse(); break;
      case "dynamicjitoptimization": {
        var before = Load(); SwitchOptimizations(1); var after = Load(); SwitchOptimizations(0); var again = Load();
        SwitchInlining(1); var apart = Load(); SwitchInlining(0); var last = Load();
        Compile(before, 1); Compile(after, 1); Compile(again, 2); Compile(apart, 2); Compile(last, 3); break; }
      case "exception": Bar(); break;
      case "assembly": case "classload": UntilUnloaded(LoadAndUnload()); break;
      case "moduleload": Activator.CreateInstance(AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Made"), AssemblyBuilderAccess.Run).DefineDynamicModule("Made").DefineType("Made", TypeAttributes.Public).CreateType()); break;
      case "handles": Weak.id = Strong.id = Pinned.id = 1; var m = new Thread(() => { Make(); GC.Collect(2); GC.Collect(2); GC.Collect(2); }); m.Start(); m.Join(); break;
      case "gcheapenumeration": case "gcheapenumeration-suspended": {
        var own = new CustomGCHeapObject(); var l = new List<object>(); for (int i = 0; i < 600; i++) l.Add(new object());
        if (t != "gcheapenumeration") SuspendRuntime(); EnumerateObjects(); if (t != "gcheapenumeration") ResumeRuntime(); GC.KeepAlive(l); GC.KeepAlive(own); break; }
      case "gcheapenumeration-competing": {
        keep = new CustomGCHeapObject(); var l = new List<object>(); for (int i = 0; i < 600; i++) l.Add(new object()); var go = new ManualResetEvent(false);
        var one = new Thread(() => { go.WaitOne(); GC.Collect(); }); var two = new Thread(() => { go.WaitOne(); Thread.Sleep(200); EnumerateObjects(); });
        one.Start(); two.Start(); go.Set(); one.Join(); two.Join(); GC.KeepAlive(l); break; }
      case "gcallocate": var x = new byte[100000]; keep = GC.AllocateArray<byte>(100, true); GC.KeepAlive(x); break;
      case "gc": { var r = new object[2]; r[0] = GC.AllocateArray<int>(100, true); keep = r; var p = GC.AllocateArray<int>(100, true); GC.Collect(); GC.KeepAlive(p); GC.KeepAlive(r); break; }
      case "nongcheap": Literals(); GC.Collect(); break;
      case "releaseonshutdown": case "releaseondetach": {
        int r = Attach(); if (r != 0) Console.WriteLine("wrong: the attachment {0:x8}", r);
        fixed (bool* f = &done) { PassFlag(f); PassCallback(&Called); if (t == "releaseondetach") Await(); else for (int i = 0; i < 100 && !Volatile.Read(ref done); i++) Thread.Sleep(100); }
        Thread.Sleep(200); break; }
      case "multiple": PassCallback(&Called); for (int i = 0; i < 4; i++) { int r = Attach(); Console.WriteLine("attached {0:x8}", r); } try { throw new Exception("f"); } catch { } Await(); break;
      case "metadatagetdispenser": case "null": break;
      case "elt-enter": case "elt-leave": Values.Run(); break;
      case "getappdomainstaticaddress": Load().CreateInstance("UnloadLibrary.TestClass").GetHashCode(); Thread.Sleep(1000); LoadAndUnload(); Thread.Sleep(1000); break;
      case "eventpipe-writing": BeginSessions(); TriggerMethod(); EndSessions(); break;
      case "eventpipe-reading": {
        var e = new TestSource(); e.MyEvent(12); var n = new int[120]; for (int i = 0; i < n.Length; i++) n[i] = i;
        e.MyArrayEvent('d', n, "Hello from EventPipeTestEventSource!"); e.KeyValueEvent("Source", "Event", new List<KeyValuePair<string, string>> { KeyValuePair.Create("samplekey", "samplevalue") }); break; }
      case "rejit": if (!Rejitted.Run()) ProgramFails(); break;
      default: for (int i = 0; i < 3; i++) { keep = new object[100]; GC.Collect(); } break;
    }
    return 0; } }
