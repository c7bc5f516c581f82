#!/bin/bash -eu
# Puts every fuzz target into $OUT, with its seeds, its options and, where there is one, its dictionary.
# ClusterFuzzLite and OSS-Fuzz run this in their image for Rust, which sets SRC, OUT and the flags.

cd "$SRC/clr-sim"
cargo fuzz build -O --debug-assertions --features sanitizer

# Asked for, not written down: a new target needs no change here.
targets=$(cargo fuzz list)
[ -n "$targets" ]

built=${CARGO_TARGET_DIR:-fuzz/target}/x86_64-unknown-linux-gnu/release
for target in $targets; do
  cp "$built/$target" "$OUT/"
  zip -q -r -j "$OUT/${target}_seed_corpus.zip" "fuzz/seeds/$target"
  # libFuzzer begins with inputs of a few bytes, and takes hours to reach those that a program needs. Its weights by rare
  # features take half of the time of targets with many features, and more (sim/src/book/speed.md). AddressSanitizer
  # never frees the stacks that it makes for ended coroutines to find uses after a return.
  printf '[libfuzzer]\nlen_control = 0\nentropic = 0\n[asan]\ndetect_stack_use_after_return = 0\n' >"$OUT/$target.options"
  dictionary=fuzz/dictionaries/$target.dict
  if [ -f "$dictionary" ]; then cp "$dictionary" "$OUT/"; fi
done
