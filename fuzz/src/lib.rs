//! Mutators that fuzz targets share.

/// Lets libFuzzer mutate and cross inputs that are texts by what they say. Other inputs are mutated
/// as bytes.
#[macro_export]
macro_rules! mutates_texts {
    () => {
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            match clr_tests::fuzz::mutant(&data[..size], max_size, seed) {
                Some(mutant) => {
                    data[..mutant.len()].copy_from_slice(&mutant);
                    mutant.len()
                }
                None => libfuzzer_sys::fuzzer_mutate(data, size, max_size),
            }
        });
        libfuzzer_sys::fuzz_crossover!(|data1: &[u8], data2: &[u8], out: &mut [u8], seed: u32| {
            let crossed = clr_tests::fuzz::crossed(data1, data2, out.len(), seed);
            out[..crossed.len()].copy_from_slice(&crossed);
            crossed.len()
        });
    };
}
