//! The methods of the runtime that a script can call, each said once: its word in a text, and its arguments.

/// Calls a macro with all methods, and their calls by means of values with these names.
macro_rules! profiler_methods {
    ($with:ident) => {
        $with! {
            |info, ip, found, function, thread|
            /// `GetFunctionFromIP`, with the ip of the thread's registers.
            GetFunctionFromIP => info.get_function_from_ip(ip()).map(found);
            /// `GetFunctionFromIP2`, with the same ip.
            GetFunctionFromIP2 => info.get_function_from_ip2(ip()).map(|(function, _)| found(function));
            /// `GetFunctionFromIP3`, with the same ip.
            GetFunctionFromIP3 => info.get_function_from_ip3(ip()).map(|(function, _)| found(function));
            /// `GetFunctionInfo2`, with the function that was last found on the thread.
            GetFunctionInfo2 => info.get_function_info2(function(), None, 0);
            /// `GetClassFromTokenAndTypeArgs`, with the first class of that function's module, which `GetFunctionInfo2` gives.
            GetClassFromTokenAndTypeArgs => info.get_function_info2(function(), None, 0).and_then(|it| {
                info.get_class_from_token_and_type_args(it.module, FIRST_CLASS, &[])
            });
            /// `GetCodeInfo2`, with the function that was last found on the thread.
            GetCodeInfo2 => info.get_code_info2(function(), &mut [CodeRange { start: 0, size: 0 }; 8]);
            /// `GetThreadInfo`, with the thread's id.
            GetThreadInfo => info.get_thread_info(thread());
            /// `GetHandleFromThread`, with the thread's id.
            GetHandleFromThread => info.get_handle_from_thread(thread());
            /// `GetCurrentThreadID`.
            GetCurrentThreadID => info.get_current_thread_id();
            /// `DoStackSnapshot` without a seed, for the thread's id; its callback goes on.
            DoStackSnapshot => info.do_stack_snapshot(
                &SnapshotRequest::of(thread(), SnapshotFlags::DEFAULT),
                Some(&mut |_: &mut SnapshotFrame<'_>| HResult::OK)
            );
            /// `EnumThreads`, which waits for a GC in progress (H-06).
            EnumThreads => info.enum_threads();
            /// `ForceGC`, on the calling thread.
            ForceGC => info.force_gc();
            /// `InitializeCurrentThread`.
            InitializeCurrentThread => info.initialize_current_thread();
            /// `GetEventMask`.
            GetEventMask => info.get_event_mask();
        }
    };
}

pub(crate) use profiler_methods;

/// Declares the methods.
macro_rules! names {
    (|$($value:ident),*| $($(#[$doc:meta])* $method:ident => $call:expr;)*) => {
        /// A method of the runtime that a script can call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ProfilerMethod {
            $($(#[$doc])* $method,)*
        }

        impl ProfilerMethod {
            /// The names of all methods.
            pub(crate) const NAMES: &[&str] = &[$(stringify!($method)),*];
        }
    };
}

profiler_methods!(names);
