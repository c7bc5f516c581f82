// The program of the trace of calls (`.ci/live --doors`): the same shape as sim/cli/tests/doors/doors.kdl.
// Each method comes first in one place, so that it is compiled there; nothing is inlined, and no call is the
// last thing that a method does, so that none becomes a jump.
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

public static class Doors
{
    static volatile object kept;
    static int count;

    // With an argument nothing is thrown: the exception handling of .NET 8 hangs under wine.
    static int Main(string[] arguments)
    {
        bool throws = arguments.Length == 0;
        A();
        if (throws)
        {
            Catches();
            Nests();
        }
        Collects();
        Calls();
        Starts();
        return count == (throws ? 13 : 7) ? 0 : 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void A() { B(); count++; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void B() { kept = new object(); count++; }

    // An exception that the caller catches.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Catches()
    {
        try { Throws(); }
        catch (InvalidOperationException) { kept = new object(); }
        count++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throws() { count++; throw new InvalidOperationException(); }

    // An exception that passes a finally, and is accepted by a filter.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Nests()
    {
        try { Cleans(); }
        catch (Exception) when (Accepts()) { count++; }
        count++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Accepts() { count++; return true; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Cleans()
    {
        try { Throws(); }
        finally { kept = new object(); }
    }

    // By a delegate: GC.Collect would be inlined.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Collects()
    {
        Action collect = GC.Collect;
        collect();
        count++;
    }

    // Native code, which calls back.
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)] delegate int Callback(int value);
    [DllImport("workloads_native")] static extern int call_back(Callback function, int count);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Calls() { call_back(Called, 1); count++; }

    static int Called(int value) { kept = new object(); return value; }

    // A thread that ends.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Starts()
    {
        var thread = new Thread(Begins);
        thread.Start();
        thread.Join();
        count++;
    }

    static void Begins() { Works(); count++; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Works() { kept = new object(); count++; }
}
