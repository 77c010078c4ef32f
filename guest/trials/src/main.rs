//! A guest for tests: it fails in every way in which a guest can, and probes which memory it may
//! access.
#![no_std]
#![no_main]

extern crate alloc;

mod bench;
mod echo;
mod numbered;
mod probe;
mod ring;
mod sharer;
mod trouble;

// The table also has `echo_c`, from examples/echo.c.
sinew_guest::kinds![
    echo::KIND,
    numbered::MIRROR,
    numbered::PASSER,
    probe::KIND,
    sharer::KIND,
    trouble::KIND,
    bench::READER,
    bench::RING,
    bench::ANSWER_8,
    bench::ANSWER_16,
    bench::ANSWER_32,
    bench::ANSWER_64,
    bench::ANSWER_128,
    bench::ANSWER_256,
    bench::ANSWER_512,
    bench::ANSWER_1024,
    bench::ANSWER_8192,
    bench::ANSWER_16384,
    bench::ANSWER_32768,
    bench::ANSWER_65536,
    bench::ANSWER_131072,
    bench::ANSWER_262144,
    bench::ANSWER_524288,
    bench::ANSWER_1048576,
];
