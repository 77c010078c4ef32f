//! Requests that compute for a long time, sent to a running domain with one worker: nothing is
//! killed, each request is answered, and so are others meanwhile.

use std::fmt::Write as _;
use std::thread;

use crate::api::Api;
use crate::control::Place;
use crate::program::graph_in;

/// Longer than a graph's heartbeat allows, if nothing else had a turn. Then the script reaches its
/// time limit.
const SCRIPT_TIME: &str = "4s";

fn node(text: &mut String, name: &str, rest: &str) {
    writeln!(text, "  - {{name: {name}, domain: web, {rest}}}").expect("memory");
}

/// A router to nodes that compute.
fn graph() -> String {
    let nested = "packet.body.all(a, packet.body.all(b, a + b >= 0))";
    let when: Vec<_> = (0..256).map(|_| format!("{{when: '!{nested}', port: 'out[0]'}}")).collect();
    let template = format!("'{{{{ {nested} }}}}'");
    let templates = |count| vec![template.as_str(); count].join(", ");
    let (many, six) = (templates(200), templates(6));
    let yaml = |list: &str| format!("kind: snippet, language: yaml, code: [{list}]");
    let nodes = [
        ("ping", "kind: snippet, language: text, code: pong".to_owned()),
        (
            "script",
            format!(
                "kind: snippet, language: lua, time: {SCRIPT_TIME}, \
                 instructions_max: 10000000000, code: 'while true do end'"
            ),
        ),
        ("when", format!("kind: switch, matches: [{}], otherwise: 'out[1]'", when.join(", "))),
        ("templates", yaml(&many)),
        ("six", yaml(&six)),
        ("one", format!("kind: snippet, language: cel, code: '{nested}'")),
    ];
    let mut text = "name: computes\ndomains: {web: {flows: {workers: 1}}}\nnodes:\n".to_owned();
    let (mut routes, mut ports) = (Vec::new(), Vec::new());
    for (at, (name, _)) in nodes.iter().enumerate() {
        routes.push(format!("{{method: POST, path: /{name}, port: 'out[{at}]'}}"));
        ports.push(format!("'out[{at}]': [{{name: {name}, port: in}}]"));
    }
    let limits = "port: 0, deadline: 100s, work_max: 1000000000000";
    node(
        &mut text,
        "api",
        &format!("kind: listener, {limits}, ports: {{out: [{{name: router, port: in}}]}}"),
    );
    let (routes, ports) = (routes.join(", "), ports.join(", "));
    node(&mut text, "router", &format!("kind: router, routes: [{routes}], ports: {{{ports}}}"));
    for (name, rest) in nodes {
        node(&mut text, name, &rest);
    }
    text
}

#[test]
fn whatever_a_request_computes_the_domain_lives_and_answers_others() {
    let place = Place::new("computes");
    let (running, pid) = place.run(&[&graph_in("computes", &graph())]);
    let api = Api::of(&place, &pid, "web");

    let mut pings = 0;
    let list = |len: usize| format!("{:?}", (0..len).collect::<Vec<_>>());
    for (path, numbers, expected) in [
        ("/when", 10, 200),
        ("/templates", 10, 200),
        ("/six", 400, 500),
        ("/one", 50, 200),
        // The script reaches its time limit.
        ("/script", 1, 500),
    ] {
        thread::scope(|scope| {
            let asks = scope.spawn(|| api.post(path, &list(numbers)));
            while !asks.is_finished() {
                assert_eq!(api.post("/ping", ""), (200, "pong".into()), "beside {path}");
                pings += 1;
            }
            let (status, answer) = asks.join().expect("an answer");
            assert_eq!(status, expected, "{path}: {answer}");
        });
        let domain = place.domain(&pid, "web");
        assert_eq!(domain["restarts"], 0, "after {path}: {domain}");
    }
    // A request that came just before the stop is counted too.
    api.post("/ping", "");
    place.sinew(&["stop", &pid]).ended_with(0);
    let report = running.answer().json();
    let nodes = report["domains"][0]["nodes"].as_array().expect("its nodes");
    let ping = nodes.iter().find(|node| node["name"] == "ping").expect("a node of the graph");
    assert_eq!(ping["flow"]["packets"], pings + 1, "{report}");
}
