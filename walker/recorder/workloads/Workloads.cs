// Programs to be sampled: `Workloads NAME SECONDS NOISE` runs the workload NAME for about SECONDS,
// beside NOISE threads that allocate. Each prints one number, so that nothing is optimised away,
// and the number of turns.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Linq;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

public static class Workloads
{
    // In milliseconds, and of the core library: small packs of runtimes lack the assembly of Stopwatch.
    static readonly int Start = Environment.TickCount;
    static double seconds;
    static volatile bool over;

    static bool GoesOn { get { return unchecked(Environment.TickCount - Start) < 1000 * seconds; } }

    static int Main(string[] arguments)
    {
        string name = arguments.Length > 0 ? arguments[0] : "compute";
        seconds = arguments.Length > 1 ? double.Parse(arguments[1]) : 5;
        int noise = arguments.Length > 2 ? int.Parse(arguments[2]) : 0;
        MethodInfo workload = typeof(Workloads).GetMethod("Run_" + name.Replace('-', '_'));
        if (workload == null)
        {
            Console.Error.WriteLine("no workload " + name);
            return 2;
        }
        var threads = new List<Thread>();
        for (int i = 0; i < noise; i++)
        {
            var thread = new Thread(Noise) { IsBackground = true };
            thread.Start();
            threads.Add(thread);
        }
        var run = (Func<long>)Delegate.CreateDelegate(typeof(Func<long>), workload);
        long result = 0, turns = 0;
        for (; GoesOn; turns++) result = unchecked(result + run());
        over = true;
        foreach (var thread in threads) thread.Join();
        Console.WriteLine(name + " " + result + " in " + turns + " turns");
        return 0;
    }

    static object kept;

    static void Noise()
    {
        while (!over)
        {
            var list = new List<byte[]>();
            for (int i = 0; i < 100; i++) list.Add(new byte[i * 7 % 300]);
            kept = list;
        }
    }

    // Numbers, recursion, loops.
    public static long Run_compute()
    {
        long sum = 0;
        for (int i = 0; i < 2000; i++) sum += Fibonacci(12) ^ Collatz(i + 1) ^ (long)Math.Sqrt(i);
        return sum;
    }

    static long Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }

    static long Collatz(long n)
    {
        int steps = 0;
        while (n != 1) { n = n % 2 == 0 ? n / 2 : 3 * n + 1; steps++; }
        return steps;
    }

    // P/Invokes: without marshalling, with marshalling, long ones.
    [DllImport("workloads_native")] static extern int add(int a, int b);
    [DllImport("workloads_native", CharSet = CharSet.Ansi)] static extern int length(string text);
    [DllImport("workloads_native")] static extern int work(int depth, int value);

    public static long Run_pinvoke()
    {
        long sum = 0;
        for (int i = 0; i < 3000; i++) sum += add(i, 1) + length("a text") + work(3, i);
        return sum;
    }

    // Calls from native code.
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)] delegate int Callback(int value);
    [DllImport("workloads_native")] static extern int call_back(Callback function, int count);
    [DllImport("workloads_native")] static extern void sort(int[] values, int count, Callback key);

    static readonly Callback Square = x => x * x % 1009 + (int)Fibonacci(6);

    public static long Run_reverse()
    {
        long sum = 0;
        for (int i = 0; i < 50; i++)
        {
            sum += call_back(Square, 20);
            var values = Enumerable.Range(0, 40).ToArray();
            sort(values, values.Length, Square);
            sum += values[i % 40];
        }
        return sum;
    }

    // LINQ, lambdas, delegates of several methods.
    public static long Run_linq()
    {
        Func<int, int> chain = x => x + 1;
        Action<int> many = x => { kept = x; };
        many += x => { kept = null; };
        long sum = 0;
        for (int i = 0; i < 30; i++)
        {
            var numbers = Enumerable.Range(0, 100);
            var groups = numbers.Where(x => x % 3 != 0).Select(x => chain(x)).GroupBy(x => x % 7);
            sum += groups.OrderBy(g => -g.Count()).SelectMany(g => g).Sum(x => (long)x);
            sum += numbers.Aggregate(0, (a, x) => a ^ chain(x));
            many(i);
        }
        return sum;
    }

    // Virtual methods, interfaces with many implementations, casts.
    interface IShape { double Area(); }
    abstract class Shape : IShape { public abstract double Area(); }
    class Square_ : Shape { public double A = 2; public override double Area() { return A * A; } }
    class Circle : Shape { public double R = 2; public override double Area() { return R * R * 3; } }
    struct Unit : IShape { public double Area() { return 1; } }

    public static long Run_dispatch()
    {
        var shapes = new IShape[] { new Square_(), new Circle(), new Unit(), new Square_() };
        double sum = 0;
        for (int i = 0; i < 20000; i++)
        {
            IShape shape = shapes[i & 3];
            sum += shape.Area();
            if (shape is Shape) sum += ((Shape)shape).Area();
        }
        return (long)sum;
    }

    // Generics over references and values: shared code, dictionary look-ups.
    static class Box<T> { public static T Value; public static int Count; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Generic<T>(T value, int depth)
    {
        Box<T>.Value = value;
        Box<T>.Count++;
        return depth == 0 ? Box<T>.Count : Generic<List<T>>(new List<T> { value }, depth - 1);
    }

    public static long Run_generics()
    {
        long sum = 0;
        for (int i = 0; i < 300; i++)
        {
            sum += Generic("text", 3) + Generic(1, 3) + Generic(1.5, 2);
            var table = new Dictionary<string, int>();
            for (int k = 0; k < 10; k++) table["key" + k] = k;
            sum += table.Count + EqualityComparer<long>.Default.GetHashCode(i);
        }
        return sum;
    }

    // The library's sort, which calls back.
    public static long Run_sort()
    {
        var random = new Random(1);
        var values = new int[2000];
        for (int i = 0; i < values.Length; i++) values[i] = random.Next();
        Array.Sort(values, (a, b) => (a % 1000).CompareTo(b % 1000));
        Array.Sort(values, Comparer<int>.Create((a, b) => b.CompareTo(a)));
        return values[7];
    }

    // Exceptions: deep, nested, with filters, rethrown, with finally.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Throw(int depth, int value)
    {
        try
        {
            if (depth == 0) throw new InvalidOperationException("number " + value);
            return Throw(depth - 1, value) + 1;
        }
        finally
        {
            kept = null;
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Nested(int value)
    {
        try
        {
            try { return Throw(8, value); }
            catch (InvalidOperationException e) when (e.Message.Length > 1000) { return 1; }
            catch (InvalidOperationException)
            {
                try { throw new ArgumentException("inner"); }
                catch (ArgumentException) { Fibonacci(8); }
                throw;
            }
        }
        catch (Exception e) when (Matches(e)) { return (int)Fibonacci(7); }
    }

    static bool Matches(Exception e) { return Fibonacci(6) > 0 && e != null; }

    public static long Run_exceptions()
    {
        long sum = 0;
        for (int i = 0; i < 5; i++) sum += Nested(i);
        return sum;
    }

    // Hardware faults: a null reference, a division by zero.
    class Node { public int Value; public Node Next; }

    [MethodImpl(MethodImplOptions.NoInlining)] static int Null(Node node) { return node.Next.Value; }
    [MethodImpl(MethodImplOptions.NoInlining)] static int Divide(int a, int b) { return a / b; }

    public static long Run_faults()
    {
        int sum = 0;
        for (int i = 0; i < 5; i++)
        {
            try { sum += Null(new Node()); } catch (NullReferenceException) { sum += (int)Fibonacci(7); }
            try { sum += Divide(i, 0); } catch (DivideByZeroException) { sum += (int)Fibonacci(7); }
        }
        return sum;
    }

    // Dynamic methods: compiled, called, dropped.
    public static long Run_dynamic()
    {
        long sum = 0;
        for (int i = 0; i < 3; i++)
        {
            var method = new DynamicMethod("dynamic" + i, typeof(long), new[] { typeof(int) });
            ILGenerator il = method.GetILGenerator();
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Call, typeof(Workloads).GetMethod("Called"));
            il.Emit(OpCodes.Ldc_I8, (long)i);
            il.Emit(OpCodes.Add);
            il.Emit(OpCodes.Ret);
            var run = (Func<int, long>)method.CreateDelegate(typeof(Func<int, long>));
            for (int k = 0; k < 300; k++) sum += run(9);
        }
        return sum;
    }

    public static long Called(int n) { return Fibonacci(n); }

    // Explicit tail calls, through a method that C# cannot express.
    static Func<int, long, long> tail;

    public static long Step(int n, long sum) { return n == 0 ? sum : tail(n - 1, sum + n); }

    public static long Run_tail()
    {
        if (tail == null)
        {
            var types = new[] { typeof(int), typeof(long) };
            var method = new DynamicMethod("tail", typeof(long), types);
            ILGenerator il = method.GetILGenerator();
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldarg_1);
            il.Emit(OpCodes.Tailcall);
            il.Emit(OpCodes.Call, typeof(Workloads).GetMethod("Step"));
            il.Emit(OpCodes.Ret);
            tail = (Func<int, long, long>)method.CreateDelegate(typeof(Func<int, long, long>));
        }
        long sum = 0;
        for (int i = 0; i < 500; i++) sum += Step(40, i);
        return sum;
    }

    // Tasks and async methods.
    static async Task<long> Async(int depth)
    {
        if (depth == 0) { await Task.Yield(); return Fibonacci(10); }
        return await Async(depth - 1) + 1;
    }

    public static long Run_async()
    {
        var tasks = Enumerable.Range(0, 20).Select(i => Task.Run(() => Async(5))).ToArray();
        Task.WaitAll(tasks);
        return tasks.Sum(t => t.Result);
    }

    // Contended locks.
    static readonly object Lock = new object();
    static long counter;

    public static long Run_locks()
    {
        Parallel.For(0, 4, i =>
        {
            for (int k = 0; k < 2000; k++) lock (Lock) counter += Fibonacci(4);
        });
        return counter;
    }

    // Threads that start and end.
    public static long Run_threads()
    {
        long sum = 0;
        for (int i = 0; i < 10; i++)
        {
            var thread = new Thread(() => { Interlocked.Add(ref sum, Fibonacci(14)); });
            thread.Start();
            thread.Join();
        }
        return sum;
    }

    // Allocation on several threads.
    public static long Run_alloc()
    {
        long sum = 0;
        Parallel.For(0, 4, i =>
        {
            var list = new List<object>();
            for (int k = 0; k < 5000; k++) list.Add(new Node { Value = k, Next = new Node() });
            Interlocked.Add(ref sum, list.Count);
        });
        return sum;
    }

    // Forced collections.
    public static long Run_gc()
    {
        var tree = Grow(10);
        GC.Collect(0);
        GC.Collect();
        return tree.Value;
    }

    static Node Grow(int depth)
    {
        if (depth == 0) return new Node();
        Grow(depth - 1);
        return new Node { Value = depth, Next = Grow(depth - 1) };
    }

    // Collectible code: made, called, unloaded.
    public static long Run_unload()
    {
        long sum = 0;
        for (int i = 0; i < 2; i++) sum += Collectible(i);
        GC.Collect();
        GC.WaitForPendingFinalizers();
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Collectible(int number)
    {
        var name = new AssemblyName("collectible" + number);
        var assembly = AssemblyBuilder.DefineDynamicAssembly(name, AssemblyBuilderAccess.RunAndCollect);
        var type = assembly.DefineDynamicModule("m").DefineType("T", TypeAttributes.Public);
        var method = type.DefineMethod("M", MethodAttributes.Public | MethodAttributes.Static,
            typeof(long), new[] { typeof(int) });
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, typeof(Workloads).GetMethod("Called"));
        il.Emit(OpCodes.Ret);
        var made = type.CreateTypeInfo().AsType().GetMethod("M");
        var run = (Func<int, long>)made.CreateDelegate(typeof(Func<int, long>));
        long sum = 0;
        for (int i = 0; i < 200; i++) sum += run(8);
        return sum;
    }

    // Methods that get hot: tier changes, on-stack replacement of a long loop.
    public static long Run_tiers()
    {
        long sum = 0;
        for (int i = 0; i < 40; i++) sum += Tiers<int>.Hot(i) + Tiers<long>.Hot(i) + Tiers<string>.Hot(i);
        return sum + Loop(200000);
    }

    static class Tiers<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long Hot(int n) { return Fibonacci(n % 10) + typeof(T).GetHashCode() % 3; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Loop(int count)
    {
        long sum = 0;
        for (int i = 0; i < count; i++) sum += i % 7 * (sum & 3);
        return sum;
    }
}
