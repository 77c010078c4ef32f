//! A guest whose nodes are between a graph on Linux and its drives.
#![no_std]
#![no_main]

extern crate alloc;

mod echo;
mod guard;

sinew_guest::kinds![echo::KIND, guard::KIND];
