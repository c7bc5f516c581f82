// The collectible library of `programs.cs`: UnloadLibrary.dll.
using System; using System.Collections.Generic; using System.Runtime.CompilerServices;
namespace UnloadLibrary {
  public class TestClass {
    static string text = "static"; static int count; static List<TestClass> all = new List<TestClass>(); string[] own = new string[9];
    public TestClass() { for (int i = 0; i < own.Length; i++) own[i] = text + ++count; all.Add(this); } }
  public class Optimized {
    public static int Run() { return Inlinee(); }
    [MethodImpl(MethodImplOptions.AggressiveInlining)] public static int Inlinee() { return 100; } } }
