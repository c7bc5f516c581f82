// The methods of `programs.cs` for hooks, events and ReJIT.
using System; using System.Collections.Generic; using System.Diagnostics.Tracing; using System.Runtime.CompilerServices; using System.Runtime.InteropServices; using System.Text;
struct Mixed { public int x; public double d; } struct Large { public Mixed a, b, c, d; } struct Integers { public int x, y; }
struct F2 { public float x, y; } struct F3 { public float x, y, z; } struct F4 { public float x, y, z, w; }
struct D2 { public double x, y; } struct D3 { public double x, y, z; } struct D4 { public double x, y, z, w; }
static class Values {
  const MethodImplOptions NI = MethodImplOptions.NoInlining;
  [MethodImpl(NI)] static string SimpleArgs(int x, float y, string s) { return "Hello from SimpleArgs!"; }
  [MethodImpl(NI)] static Mixed MixedStruct(Mixed m) { m.x = 4; return m; }
  [MethodImpl(NI)] static int LargeStruct(Large l) { return 3; }
  [MethodImpl(NI)] static Integers IntegerStruct(Integers i) { i.x = 21; return i; }
  [MethodImpl(NI)] static F2 Floats2() { return new F2 { x = 13, y = 256.75f }; }
  [MethodImpl(NI)] static F3 Floats3() { return new F3 { x = 13, y = 145.5f, z = 256.75f }; }
  [MethodImpl(NI)] static F4 Floats4() { return new F4 { x = 13, y = 145.5f, z = 321.25f, w = 256.75f }; }
  [MethodImpl(NI)] static D2 Doubles2() { return new D2 { x = 13, y = 256.75 }; }
  [MethodImpl(NI)] static D3 Doubles3() { return new D3 { x = 13, y = 145.5, z = 256.75 }; }
  [MethodImpl(NI)] static D4 Doubles4() { return new D4 { x = 13, y = 145.5, z = 321.25, w = 256.75 }; }
  [MethodImpl(NI)] static double DoubleResult() { return 13.0; }
  public static void Run() {
    SimpleArgs(-123, -4.5f, "Hello, test!"); MixedStruct(new Mixed { x = 1, d = 1 });
    LargeStruct(new Large { b = new Mixed { x = 1, d = 1 }, c = new Mixed { x = 2, d = 2 }, d = new Mixed { x = 3, d = 3 } });
    IntegerStruct(new Integers { x = 14, y = 256 }); Floats2(); Floats3(); Floats4(); Doubles2(); Doubles3(); Doubles4(); DoubleResult(); } }
[EventSource(Name = "EventPipeTestEventSource")] class TestSource : EventSource {
  public TestSource() : base(EventSourceSettings.EtwSelfDescribingEventFormat) { }
  [Event(1)] public void MyEvent(int i) { WriteEvent(1, i); }
  [Event(2)] public void MyArrayEvent(char ch, int[] intArray, string str) { WriteEvent(2, ch, intArray, str); }
  [Event(3)] public void KeyValueEvent(string SourceName, string EventName, IEnumerable<KeyValuePair<string, string>> Arguments) { WriteEvent(3, SourceName, EventName, Arguments); } }
static class Rejitted {
  const MethodImplOptions NI = MethodImplOptions.NoInlining, AI = MethodImplOptions.AggressiveInlining;
  static readonly StringBuilder said = new StringBuilder();
  [MethodImpl(NI)] static void Say(string s) { said.Append(s); }
  [MethodImpl(AI)] static void InlineeTarget() { Say("original "); }
  [MethodImpl(AI)] static void InlineeChain() { Say("chain "); InlineeTarget(); }
  [MethodImpl(NI)] static void TriggerInliningChain() { Say("chained "); InlineeChain(); }
  [MethodImpl(NI)] static void TriggerDirectInlining() { Say("direct "); InlineeTarget(); }
  [MethodImpl(NI)] static void CallWithoutInlining() { Action a = InlineeTarget; a(); }
  [MethodImpl(NI)] static void TriggerReJIT() { }
  [MethodImpl(NI)] static void TriggerRevert() { }
  static int Count(string what) { int n = 0, at = 0; var s = said.ToString(); while ((at = s.IndexOf(what, at)) >= 0) { n++; at++; } return n; }
  static void All() { said.Clear(); TriggerDirectInlining(); CallWithoutInlining(); TriggerInliningChain(); }
  public static bool Run() {
    All(); if (Count("original") != 3) return false;
    TriggerReJIT(); All(); if (Count("original") != 0 || Count("Hello from the profiler!") < 3) return false;
    TriggerRevert(); All(); return Count("original") == 3; } }
