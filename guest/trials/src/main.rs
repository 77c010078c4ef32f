//! A guest for tests: it fails in every way that a guest can, and probes what it may touch.
#![no_std]
#![no_main]

extern crate alloc;

mod echo;
mod probe;
mod sharer;
mod trouble;

// And `echo_c`, of examples/echo.c.
sinew_guest::kinds![echo::KIND, probe::KIND, sharer::KIND, trouble::KIND];
