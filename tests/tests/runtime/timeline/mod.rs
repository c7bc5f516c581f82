//! Tests of drawn histories: in the terminal, as a page, and as a page in a browser; and of the
//! book's site in a browser.

mod browser;
mod external;
mod rows;
mod searched;
mod seen;
mod site;
mod story;
