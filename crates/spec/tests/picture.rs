//! Pictures of plans.

use std::fmt::Write;

use crate::kinds::{ARM, compile_on};
use sinew_spec::picture;

/// Domains with several threads, long chains and links in every direction.
fn large() -> String {
    let mut text =
        "name: large\ndomains:\n  a:\n    realtime: {period: 2ms}\n    threads:\n".to_owned();
    text += "      - {cpu: 1, nodes: [n0, n1, n2, n3, n4, n5, n6, n7]}\n";
    text += "      - {nodes: [n8, n9, n10, n11]}\n";
    text += "  b: {realtime: {trigger: input, priority: 70, overrun: {policy: count}}}\n";
    text += "  c: {realtime: {period: 10ms}}\nnodes:\n";
    for i in 0..24 {
        let domain = if i < 12 {
            "a"
        } else if i < 20 {
            "b"
        } else {
            "c"
        };
        let mut links = Vec::new();
        if i < 23 && i != 19 {
            links.push(format!("{{name: n{}, port: in}}", i + 1));
        }
        if i % 5 == 4 {
            links.push(format!("{{name: n{}, port: extra, delay: 1, delivery: latest}}", i - 4));
        }
        let links = links.join(", ");
        writeln!(
            text,
            "  - {{kind: filter, name: n{i}, domain: {domain}, ports: {{out: [{links}]}}}}"
        )
        .unwrap();
    }
    text
}

/// One node alone.
const ONE: &str = "
domains: {d: {realtime: {period: 1ms}}}
nodes: [{kind: filter}]
";

/// One node that writes to many nodes, in its own and in other domains.
fn star() -> String {
    let mut text = "name: star\ndomains:\n  a: {realtime: {period: 1ms}}\n".to_owned();
    text += "  b: {realtime: {trigger: input}}\n  c: {realtime: {trigger: input}}\n";
    text += "nodes:\n  - kind: filter\n    name: hub\n    domain: a\n    ports:\n      out:\n";
    for i in 0..36 {
        let broadcast = if i % 3 > 0 { ", delivery: broadcast, capacity: 64" } else { "" };
        writeln!(text, "        - {{name: n{i}, port: in{broadcast}}}").unwrap();
    }
    for i in 0..36 {
        let domain = ["a", "b", "c"][i % 3];
        writeln!(text, "  - {{kind: filter, name: n{i}, domain: {domain}}}").unwrap();
    }
    text
}

/// The arm with services on both sides of its links, and links among the services.
fn beside() -> String {
    let services = "domains:
  screen:
    restart: {policy: always}
    limits: {memory: 64MiB, cpu: 20%}
    cpus: [0]
    user: nobody
  log: {}
  pad: {restart: {policy: never}}
";
    let links = "{name: ethercat, port: in}, {name: screen, port: in}, \
                 {name: log, port: in, delivery: broadcast, capacity: 64}";
    ARM.replace("domains:\n", services).replace("{name: ethercat, port: in}", links)
        + "  - {kind: filter, name: wish, domain: control}
  - {kind: gauge, name: screen, domain: screen, ports: {out: [{name: lamp, port: in}]}}
  - {kind: gauge, name: lamp, domain: screen, ports: {out: [{name: log, port: extra}]}}
  - {kind: gauge, name: log, domain: log}
  - {kind: gauge, name: pad, domain: pad, ports: {out: [{name: wish, port: in}]}}
"
}

/// Two services and no core.
const SERVICES: &str = "
- {kind: gauge, name: a, ports: {out: [{name: b, port: in}]}}
- {kind: gauge, name: b}
";

/// Twelve flow nodes: a block, a fan, paths that join again, an error that goes back, and a node
/// that reads messages of the core.
const FLOWS: &str = "name: api
domains:
  control: {realtime: {period: 1ms}}
  web: {flows: {workers: 2}}
nodes:
  - {kind: filter, name: joints, domain: control, ports: {out: [{name: state, port: message}]}}
  - {kind: begin, name: listener, domain: web, ports: {out: [
      {name: router, port: in}, {name: log, port: in}]}}
  - {kind: fan, name: router, domain: web, ports: {
      \"out[0]\": [{name: state, port: in}], \"out[1]\": [{name: ping, port: in}],
      \"out[4]\": [{name: auth, port: in}, {name: log, port: in}]}}
  - kind: block
    name: auth
    domain: web
    nodes:
      - {kind: step, name: check, ports: {out: [{name: user, port: in}]}}
      - {kind: step, name: user}
    inputs: {in: [{name: check, port: in}]}
    outputs: {out: [{name: user, port: out}], denied: [{name: check, port: error}]}
    ports: {out: [{name: plan, port: in}], denied: [{name: denied, port: in}]}
  - {kind: look, name: state, domain: web}
  - {kind: step, name: ping, domain: web}
  - {kind: step, name: plan, domain: web, ports: {
      out: [{name: send, port: in}], error: [{name: denied, port: in}]}}
  - {kind: step, name: send, domain: web, ports: {error: [{name: denied, port: in}]}}
  - {kind: step, name: log, domain: web, ports: {out: [
      {name: tell, port: in}, {name: tell, port: in}]}}
  - {kind: step, name: denied, domain: web}
  - {kind: step, name: tell, domain: web}
";

#[test]
fn the_text_names_everything_and_keeps_its_width() {
    let specs = [
        (ARM.to_owned(), 80),
        (ARM.to_owned(), 60),
        (large(), 100),
        (beside(), 80),
        (beside(), 40),
        (SERVICES.to_owned(), 70),
        (FLOWS.to_owned(), 100),
    ];
    for (spec, width) in specs {
        let plan = compile_on(2, &spec).unwrap();
        let text = picture::text(&plan, width);
        let frames = ['│', '╭', '╰', '╎', '┌', '└', '▓'];
        for line in text.lines().filter(|line| line.starts_with(frames)) {
            assert_eq!(line.chars().count(), width, "{text}");
        }
        for node in &plan.nodes {
            assert!(text.contains(&node.name), "{text}");
        }
        assert_eq!(text.matches('▶').count(), plan.links.len() + 3, "{text}");
        let of_flows = plan.flow_links.len();
        assert_eq!(text.matches('▷').count(), of_flows + usize::from(of_flows > 0), "{text}");
    }
}

#[test]
fn the_summary_is_short() {
    let summary = picture::summary(&compile_on(2, ARM).unwrap());
    assert_eq!(
        summary,
        "arm: 2 domains, 2 threads, 4 nodes, 5 links\n  \
         control: every 1ms, deadline 1ms, priority 80, stops past 50 overruns in a row\n    \
         thread 0, CPU 1, released by the clock: planner -> ik -> ethercat\n  \
         plant: every 1ms, deadline 1ms, priority 80, stops past 3 overruns in a row\n    \
         thread 0, CPU 0, released by ethercat.out: drives\n"
    );
}

#[test]
fn lines_say_the_same_in_letters_alone() {
    for spec in [ARM.to_owned(), large(), beside(), SERVICES.to_owned(), FLOWS.to_owned()] {
        let plan = compile_on(2, &spec).unwrap();
        let text = picture::lines(&plan);
        let strange: Vec<char> = text.chars().filter(|c| !c.is_ascii()).collect();
        assert_eq!(strange, [], "{text}");
        for node in &plan.nodes {
            assert!(text.contains(&node.name), "{text}");
        }
        let count = |words| text.lines().filter(|line| line.starts_with(words)).count();
        let links = (count("  link from "), count("  packets from "));
        assert_eq!(links, (plan.links.len(), plan.flow_links.len()), "{text}");
    }
    let text = picture::lines(&compile_on(2, ARM).unwrap());
    assert!(text.contains("\n  drives.in is safe: "), "{text}");
}

#[test]
fn services_are_drawn_apart_from_the_core() {
    let apart = |spec: &str| {
        let plan = compile_on(2, spec).unwrap();
        let (text, svg) = (picture::text(&plan, 100), picture::svg(&plan));
        let in_text = text.lines().filter(|line| line.starts_with('▓')).count();
        (
            in_text,
            svg.matches("<path class=\"firewall\"").count(),
            svg.matches("domain service").count(),
        )
    };
    assert_eq!(apart(&beside()), (1, 1, 3));
    assert_eq!(apart(ARM), (0, 0, 0));
    assert_eq!(apart(SERVICES), (0, 0, 1));
}

#[test]
fn the_summary_says_how_a_service_comes_back() {
    let summary = picture::summary(&compile_on(2, &beside()).unwrap());
    for expected in [
        "arm: 5 domains (3 services), 2 realtime threads, 9 nodes, 10 links\n",
        "  pad: service, never restarted\n    pad\n",
        "  screen: service, on CPU 0, restarted always, at most 10 times in 60s, uses 64MiB, \
         20% of a CPU at most, user nobody\n    screen, lamp\n",
        "  log: service, restarted on failure, at most 10 times in 60s\n    log\n",
    ] {
        assert!(summary.contains(expected), "no {expected:?} in\n{summary}");
    }
}

#[test]
fn the_summary_says_what_flows_run_on() {
    let summary = |spec: &str| picture::summary(&compile_on(2, spec).unwrap());
    let list = "- {kind: begin, ports: {out: [{name: step, port: in}]}}\n- {kind: step}\n";
    assert_eq!(
        summary(list),
        "graph: 1 service domain, 2 flow nodes, 1 link\n  \
         services: service, 2 flow nodes on a worker for each CPU that the core leaves, \
         restarted on failure, at most 10 times in 60s\n    begin, step\n"
    );
    let own = FLOWS.replace("web: {flows: {workers: 2}}", "web: {cpus: [0, 1]}");
    let words = "  web: service, on CPUs 0, 1, 11 flow nodes on 2 workers, restarted";
    assert!(summary(&own).contains(words), "{}", summary(&own));
    let summary = summary(FLOWS);
    let first = "api: 2 domains (1 service), 1 realtime thread, 12 nodes (11 of flows), 15 links\n";
    assert!(summary.starts_with(first), "{summary}");
    assert!(summary.contains("  web: service, 11 flow nodes on 2 workers, restarted"), "{summary}");
}

#[test]
fn the_json_names_everything() {
    let json = picture::json(&compile_on(2, ARM).unwrap());
    assert_eq!(json["domains"][1]["threads"][0]["release"]["input"], "drives.in");
    assert_eq!(json["nodes"][3]["safe"]["in"]["value"], "quick_stop");
    assert_eq!(json["links"][2]["message"]["bytes"], 80);
    let json = picture::json(&compile_on(2, FLOWS).unwrap());
    let link = serde_json::json!({"from": "router.out[4]", "to": "auth/check.in"});
    assert_eq!(json["flow_links"][4], link);
    assert_eq!(json["domains"][1]["flows"]["workers"], 2);
    assert_eq!(json["domains"][1]["cpus"], serde_json::Value::Null);
    let json = picture::json(&compile_on(2, &beside()).unwrap());
    let screen = json["domains"].as_array().unwrap().iter().find(|it| it["name"] == "screen");
    assert_eq!(screen.unwrap()["cpus"], serde_json::json!([0]));
}

/// Viewers other than browsers, such as librsvg before 2.48, draw colours in black that they cannot
/// read.
#[test]
fn the_svg_says_its_colours_in_words_that_all_viewers_know() {
    let svg = picture::svg(&compile_on(2, SERVICES).unwrap());
    let (_, style) = svg.split_once("<style>").expect("a style");
    let (style, _) = style.split_once("</style>").expect("its end");
    for word in ["var(", "hsl(", "color-mix(", "--"] {
        assert!(!style.contains(word), "'{word}' is in the style");
    }
    assert!(style.contains(".node { fill: #"), "{style}");
}

/// Every label has its own place: rectangles of labels and nodes do not overlap. If `PICTURES` is
/// set to a folder, the pictures are written there for people to see.
#[test]
fn nothing_overlaps_in_the_svg_or_leaves_it() {
    let pictures = [
        ("arm", ARM),
        ("one", ONE),
        ("large", &large()),
        ("star", &star()),
        ("beside", &beside()),
        ("services", SERVICES),
        ("flows", FLOWS),
    ];
    for (name, spec) in pictures {
        let svg = picture::svg(&compile_on(2, spec).unwrap());
        if let Some(folder) = std::env::var_os("PICTURES") {
            let path = std::path::Path::new(&folder).join(name).with_extension("svg");
            std::fs::write(path, &svg).unwrap();
        }
        let number = |line: &str, key: &str| -> f64 {
            let start = line.find(&format!(" {key}=\"")).unwrap() + key.len() + 3;
            line[start..].split('"').next().unwrap().parse().unwrap()
        };
        let (width, height) = (number(&svg, "width"), number(&svg, "height"));
        let mut boxes: Vec<[f64; 4]> = Vec::new();
        for line in svg.lines() {
            if line.starts_with("<rect class=\"node\"") {
                let (x, y) = (number(line, "x"), number(line, "y"));
                boxes.push([x, y, x + number(line, "width"), y + number(line, "height")]);
            } else if line.starts_with("<text class=\"message\"")
                || line.starts_with("<text class=\"option\"")
            {
                let (x, y) = (number(line, "x"), number(line, "y"));
                let text = line.split(['>', '<']).nth(2).unwrap();
                let half = text.chars().count() as f64 * 11.0 * 0.57 / 2.0;
                boxes.push([x - half, y - 9.0, x + half, y + 2.0]);
            }
        }
        assert!(!boxes.is_empty());
        for (i, a) in boxes.iter().enumerate() {
            let inside = a[0] >= 0.0 && a[1] >= 0.0 && a[2] <= width && a[3] <= height;
            assert!(inside, "{name}: {a:?} in {width} x {height}");
            for b in &boxes[..i] {
                let apart = a[0] >= b[2] || b[0] >= a[2] || a[1] >= b[3] || b[1] >= a[3];
                assert!(apart, "{a:?} over {b:?}");
            }
        }
    }
}
