//! Any text as a spec: the compiler answers with a plan or with diagnostics, and both can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_spec::plan::Machine;
use sinew_spec::{Source, compile, picture, render};

fuzz_target!(|text: &str| {
    let catalogue: Vec<_> = sinew_nodes::NODES.iter().map(|entry| entry.kind).collect();
    let source = Source { file: "fuzz.yaml", text, overrides: &[] };
    match compile(&source, &catalogue, &Machine { cpus: vec![0, 1] }) {
        Ok(plan) => {
            let _ = (picture::svg(&plan), picture::text(&plan, 80), picture::json(&plan));
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "refused without a reason");
            let _ = render(&diagnostics, text, false);
        }
    }
});
