// The program of which `.ci/live --traces` compares the stories in a CLR and in the simulated one: two threads throw and catch.
using System;
using System.Runtime.CompilerServices;
using System.Threading;

static class App
{
    static void Main()
    {
        Run();
        var thread = new Thread(Work);
        thread.Start();
        thread.Join();
        GC.Collect();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Run()
    {
        try { Throw(); } catch (InvalidOperationException) { }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw() { throw new InvalidOperationException(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Work() { Run(); }
}
