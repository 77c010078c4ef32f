//! `graphs/http/ping.yaml` and a client on one thread, over a socket of this machine.

use std::path::Path;

use sinew_core::Parameters;
use sinew_flow::testing::{apart, send_spans, try_plan};
use sinew_flow::{Make, StopSignal, Stopper};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use super::{TIMES, Work};

const GRAPH: &str = include_str!("../../../graphs/http/ping.yaml");

/// Starts the graph, and sends requests again and again.
pub(super) fn ping() -> Work {
    ask(GRAPH)
}

/// The same, but the answer comes from another domain. The work of that domain is counted too.
pub(super) fn ping_apart() -> Work {
    let nodes = GRAPH.replace("name: pong\n  language", "name: pong\n  domain: beside\n  language");
    ask(&format!("domains: {{flows: {{}}, beside: {{}}}}\ndomain: flows\nnodes:\n{nodes}"))
}

fn ask(graph: &str) -> Work {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let set = LocalSet::new();
    let (host, stopper) = serve(graph, &set, &runtime);
    let request = format!("GET /ping HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let (mut client, mut answer) = set.block_on(&runtime, async {
        let mut client = TcpStream::connect(&host).await.expect("a connection");
        client.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        // The first answer shows the length of all answers.
        while !answer.ends_with(b"pong") {
            assert!(client.read_buf(&mut answer).await.expect("an answer") > 0, "closed");
        }
        (client, answer)
    });
    Box::new(move || {
        let _serves = &stopper;
        set.block_on(&runtime, async {
            for _ in 0..TIMES {
                client.write_all(request.as_bytes()).await.expect("sent");
                client.read_exact(&mut answer).await.expect("an answer");
            }
        });
        assert!(answer.ends_with(b"pong"), "another answer");
    })
}

/// The same with traces, of which one in a hundred is recorded.
pub(super) fn ping_traced() -> Work {
    send_spans(&[
        // Nothing listens there, and nothing is sent while this runs.
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"),
        ("OTEL_BSP_SCHEDULE_DELAY", "4000000000"),
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.01"),
    ]);
    ping()
}

/// Runs the graph on any free port. Returns its address, and what ends it.
fn serve(graph: &str, set: &LocalSet, runtime: &Runtime) -> (String, Stopper) {
    let table = sinew::kinds().flows;
    let kinds: Vec<_> = table.iter().map(|row| row.kind).collect();
    let plan = try_plan(&graph.replace("port: 8000", "port: 0"), &kinds).expect("a good graph");
    let node = plan.nodes.iter().find(|node| node.name == "listener").expect("a listener");
    let row = table.iter().find(|row| row.kind.name == "listener").expect("its row");
    let Make::Source(make) = row.make else { panic!("a listener is a source") };
    let source = make(&Parameters::of(&plan, node, Path::new("."))).expect("good parameters");
    let part = source.open(1).expect("a free port").remove(0);
    let address = part.address().expect("an address");
    let host = address.split("//").nth(1).expect("a URI").to_owned();
    let domains = set.block_on(runtime, apart(&plan, &table, Path::new(".")));
    let fixture = &domains.expect("good parameters")[node.domain];
    let (stopper, stop) = StopSignal::new();
    let serves = part.serve(fixture.outlet("listener"), stop);
    set.spawn_local(async move { serves.await.expect("served") });
    (host, stopper)
}
