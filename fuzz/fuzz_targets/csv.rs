//! Any text as a file of waypoints.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_robot::path::csv;

fuzz_target!(|text: &str| {
    // So that the rows are reached without finding the header first.
    let _ = csv::parse(text);
    let _ = csv::parse(&format!("{}\n{text}", csv::HEADER));
});
