//! Any text as a spec. The compiler answers with a plan or with diagnostics, and both can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_spec::chain::Chain;
use sinew_spec::firewall::Firewall;
use sinew_spec::plan::TargetMachine;
use sinew_spec::{SpecSource, compile, picture, render};

fuzz_target!(|text: &str| {
    let nodes = sinew_robot::NODES.iter().map(|entry| entry.kind);
    let catalogue: Vec<_> =
        nodes.chain(sinew_flows::FLOWS.iter().map(|entry| entry.kind)).collect();
    let source = SpecSource::of("fuzz.yaml", text);
    let machine = TargetMachine::of(vec![0, 1]);
    match compile(&source, &catalogue, &machine) {
        Ok(plan) => {
            let firewall = Firewall::of(&plan, &machine);
            assert!(firewall.violations.is_empty(), "{:?}", firewall.violations);
            let _ = (firewall.text(&plan), firewall.json(&plan), Chain::longest(&plan, |_| 1));
            let _ = (picture::svg(&plan), picture::text(&plan, 80), picture::json(&plan));
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "refused without a reason");
            let _ = render(&diagnostics, text, false);
        }
    }
});
