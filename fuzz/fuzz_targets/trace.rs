#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| clr_tests::fuzz::trace(data));
