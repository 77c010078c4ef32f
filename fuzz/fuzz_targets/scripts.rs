//! Any text as a script in any language, or as a template, with any packet. It is refused with a
//! reason, or it answers, in bounded time and memory.
#![no_main]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use sinew_flow::{FlowFixture, Value};
use sinew_flows::FLOWS;
use sinew_spec::plan::TargetMachine;
use sinew_spec::{SpecSource, compile};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

fuzz_target!(|input: (u8, &str, &str)| {
    let (language, code, packet) = input;
    let language = ["text", "json", "yaml", "cel", "lua"][usize::from(language) % 5];
    // A JSON string is a YAML string, except for pairs of surrogates, which the graph then refuses.
    let code = serde_json::Value::from(code);
    let text = format!(
        "- {{kind: test, name: begin, ports: {{out: [{{name: a, port: in}}]}}}}\n\
         - {{kind: snippet, name: a, language: {language}, time: 10ms, memory: 2MiB, \
         code: {code}}}\n"
    );
    let kinds: Vec<_> = FLOWS.iter().map(|row| row.kind).collect();
    let (file, text) = ("fuzz.yaml", &*text);
    let source = SpecSource::of(file, text);
    let Ok(plan) = compile(&source, &kinds, &TargetMachine::of(vec![0])) else { return };
    let fixture = match FlowFixture::new(&Arc::new(plan), FLOWS, Path::new(".")) {
        Ok(fixture) => fixture,
        Err(refusals) => {
            assert!(!refusals.is_empty(), "refused without a reason");
            return;
        }
    };
    let json: Option<serde_json::Value> = serde_json::from_str(packet).ok();
    let packet = json.map_or_else(|| Value::text(packet), Value::from);
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _ = LocalSet::new().block_on(&runtime, async {
        // Twice, as the first run must not affect the second.
        let _ = fixture.open("begin", 0, packet.clone(), Duration::from_secs(5)).await;
        fixture.open("begin", 0, packet, Duration::from_secs(5)).await
    });
});
