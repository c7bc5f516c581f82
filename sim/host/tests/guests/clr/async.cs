// The programs of the tests of runtime-async methods, compiled with `-features:runtime-async=on` for .NET 11.
using System; using System.Threading.Tasks;
static class App {
  struct Payload { public int Value; }
  static readonly TaskCompletionSource<int> Gate = new TaskCompletionSource<int>(TaskCreationOptions.RunContinuationsAsynchronously);
  static async Task<long> Work(int n) { long sum = 0; for (int i = 0; i < n; i++) { await Task.Yield(); sum += i; } return sum; }
  static async Task WorkVoid(int n) { for (int i = 0; i < n; i++) await Task.Yield(); }
  static async Task<double> WorkDouble(int n) { double sum = 0; for (int i = 0; i < n; i++) { await Task.Yield(); sum += i + 0.5; } return sum; }
  static async Task Hooks() { for (int i = 0; i < 5; i++) await Work(4); await WorkVoid(2); await WorkDouble(2); }
  static async Task<int> Throws() { await Task.Yield(); throw new InvalidOperationException("f"); }
  static async Task Apis() { try { await Throws(); } catch (InvalidOperationException) { } }
  static async Task<int> Suspended(Payload[] p) { await Gate.Task; return p[0].Value; }
  static void Types() {
    var all = new Task<int>[32]; for (int i = 0; i < all.Length; i++) { var p = new Payload[16]; p[0].Value = i; all[i] = Suspended(p); }
    for (int i = 0; i < 10; i++) GC.Collect(GC.MaxGeneration, GCCollectionMode.Forced, true); Gate.SetResult(0); Task.WaitAll(all); }
  static int Main() {
    if (Environment.GetEnvironmentVariable("GUEST_BROKEN") == "program") return 0;
    switch (Environment.GetEnvironmentVariable("GUEST_TEST")) {
      case "runtimeasyncelt": Hooks().GetAwaiter().GetResult(); break;
      case "runtimeasyncapis": Apis().GetAwaiter().GetResult(); break;
      default: Types(); break; }
    return 0; } }
