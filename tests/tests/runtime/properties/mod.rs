//! Properties of generated inputs: the bodies of the fuzz targets, and programs with a runtime.

mod fuzz_seeds;
mod fuzz_texts;
mod fuzzed;
mod host_calls;
mod jitted_code;
mod world_properties;
mod world_unwinding;
mod world_waits;

use clr_generate::{Choices as _, Seeded, WorldProgram, world_program};
use clr_runtime::generation::Generation;
use clr_tests::cases;
use clr_world::StepEvent;
