//! Any text as a file of waypoints.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_robot::path::csv;

fuzz_target!(|text: &str| {
    // With the header, so that the fuzzer reaches the rows without having to find it.
    let _ = csv::parse(text);
    let _ = csv::parse(&format!("{}\n{text}", csv::HEADER));
});
