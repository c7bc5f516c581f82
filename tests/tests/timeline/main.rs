//! Histories drawn: for the terminal, and as a page, in a browser too.

mod browser;
mod page;
mod rows;
mod searched;
mod seen;
mod story;
