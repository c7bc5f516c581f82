//! Tests of drawings, and of their parts.

mod folds;
mod lanes;
mod pages;
mod rows;
mod states;
mod texts;
