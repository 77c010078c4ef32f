//! A message that a graph declares. A machine in YAML alone is recorded, replayed, and read over
//! HTTP, also by Python and C programs that know nothing about Sinew.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::api::Api;
use crate::control::Place;
use crate::program::{graph_in, sinew, skip, wait_until};

/// An axis whose state is a message of the graph. The recorder and the API support it without
/// further work.
const GRAPH: &str = "
name: axis
messages:
  axis_state:
    arrived: bool
    position_rad: f64
    counts: u16[3]
    load_n_m: f32
    mode: [moving, there]
domains:
  control: {realtime: {period: 5ms, overrun: {policy: count}}}
  plant: {realtime: {trigger: input, overrun: {policy: count}}}
  recorder: {}
  api: {}
nodes:
  - kind: trajectory
    name: path
    domain: control
    unit: rad
    waypoints: [1, -1]
    dwell: 500ms
    repeat: true
    velocity_max: 20
    acceleration_max: 200
    jerk_max: 10000
    ports:
      position: [{name: pid, port: setpoint}]
      arrived: [{name: state, port: arrived}, {name: state, port: mode}]
  - kind: pid
    name: pid
    domain: control
    kp: 2
    out_min: -24
    out_max: 24
    unit: V
    ports: {out: [{name: motor, port: voltage, delivery: latest}]}
  - kind: dc_motor
    name: motor
    domain: plant
    inertia_kg_m2: 5e-5
    safe: {voltage: {value: off, after: 100}}
    ports:
      position:
        - {name: pid, port: measured, delay: 1}
        - {name: state, port: position_rad, delay: 1}
  - kind: constant
    name: seven
    domain: control
    value: 7
    ports:
      out:
        - {name: state, port: 'counts[0]'}
        - {name: state, port: 'counts[1]'}
        - {name: state, port: 'counts[2]'}
        - {name: state, port: load_n_m}
  - kind: mux
    name: state
    domain: control
    message: axis_state
    ports: {out: [{name: look, port: from}]}
  - {kind: recorder, name: recorder, domain: recorder}
  - {kind: listener, name: listener, domain: api, port: 0, ports: {out: [{name: look, port: in}]}}
  - {kind: read, name: look, domain: api}
";

/// Prints the messages of a topic as JSON, one on each line, each with the words of its enum as the
/// parser of ROS 2 itself reads them.
const SCRIPT: &str = "
import json, sys
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from mcap_ros2._vendor.rosidl_adapter.parser import parse_message_string
reader = make_reader(open(sys.argv[1], 'rb'), decoder_factories=[DecoderFactory()])
for schema, place, message, it in reader.iter_decoded_messages(topics=[sys.argv[2]]):
    parsed = parse_message_string('sinew', 'AxisState', schema.data.decode())
    words = {constant.name: constant.value for constant in parsed.constants}
    print(json.dumps([schema.name, it.arrived, it.position_rad, list(it.counts), it.load_n_m,
                      it.mode, words]))
";

fn record(name: &str) -> (Value, String) {
    let graph = graph_in(name, GRAPH);
    let place = Place::new(name);
    let (run, pid) = place.run(&[&graph]);
    let api = Api::of(&place, &pid, "api");
    wait_until("the axis is where it was told", || api.get("/").1["arrived"] == true);
    let state = api.get("/").1;
    place.stop(run);
    let folder = Path::new(&graph).with_file_name("recordings");
    let part = fs::read_dir(folder).expect("the recorder makes it").next().expect("a part");
    (state, part.expect("a part").path().display().to_string())
}

#[test]
fn a_declared_message_is_recorded_replayed_and_read_over_http_and_by_python() {
    let (state, part) = record("declared");
    assert_eq!(state["counts"], serde_json::json!([7, 7, 7]));
    assert!(state["arrived"].is_boolean() && state["load_n_m"] == 7.0, "{state}");
    assert_eq!(state["mode"], "there", "{state}");
    let replayed = sinew(["replay", &part, "--json"]).ended_with(0).json();
    assert_eq!(replayed["identical"], true, "{replayed:#}");
    let python = std::env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let imports = Command::new(&python).args(["-c", "import mcap_ros2"]).output();
    if !imports.is_ok_and(|output| output.status.success()) {
        return skip(&format!("'{python}' cannot import mcap_ros2; see tests/python"));
    }
    let read = Command::new(python).args(["-c", SCRIPT, &part, "/state/out"]).output();
    let read = read.expect("python");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let lines = String::from_utf8(read.stdout).expect("text");
    let lines: Vec<Value> = lines.lines().map(|line| line.parse().expect("JSON")).collect();
    assert!(lines.len() > 10, "{lines:?}");
    let is_whole = |line: &Value| {
        line[0] == "sinew/msg/AxisState"
            && line[3] == serde_json::json!([7, 7, 7])
            && line[4] == 7.0
            && line[5] == u8::from(line[1] == true)
            && line[6] == serde_json::json!({"MODE_MOVING": 0, "MODE_THERE": 1})
    };
    assert!(lines.iter().all(is_whole), "{:?}", lines[0]);
    assert!(lines.iter().any(|line| line[1] == true) && lines.iter().any(|line| line[1] == false));
    assert!(lines.iter().any(|line| line[2].as_f64().is_some_and(|at| at.abs() > 0.5)));
}

/// Prints how C sees the header and the ports in the record of a kind.
const PROGRAM: &str = r#"
#include <stdio.h>
#include "messages.h"
#include "sinew_guest.h"

static const struct sinew_port port = { .name = "state", AXIS_STATE_PORT };

int main(void)
{
    struct axis_state state = { .counts = { 1, 2, 3 }, .mode = AXIS_STATE_MODE_THERE };
    const struct sinew_field *last = &port.fields[port.field_count - 1];
    const uint8_t *bytes = (const uint8_t *)&state;
    printf("%s %u %s %u", port.message, port.size, last->name, bytes[last->offset]);
}
"#;

#[test]
fn a_declared_message_is_a_header_of_c_whose_layout_the_compiler_agrees_to() {
    let graph = graph_in("header", GRAPH);
    let folder = Path::new(&graph).parent().expect("a folder");
    let header = sinew(["graph", "--c", &graph]).ended_with(0).out;
    let compile = |header: &str, more: &[&str]| {
        fs::write(folder.join("messages.h"), header).expect("its folder");
        let guest = concat!(env!("CARGO_MANIFEST_DIR"), "/guest/rtos/include");
        let mut compiler = Command::new("cc");
        compiler.args(["-Wall", "-Wextra", "-Werror", "-I", guest]).args(more);
        compiler.current_dir(folder).output().expect("cc, which links Rust's programs too")
    };
    fs::write(folder.join("program.c"), PROGRAM).expect("its folder");
    let in_c = ["-std=c11", "program.c", "-o", "program"];
    let made = compile(&header, &in_c);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let said = Command::new(folder.join("program")).output().expect("it was made");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "axis_state 32 mode 1");
    let wrong = header.replace("position_rad) == 8", "position_rad) == 16");
    assert!(wrong != header && !compile(&wrong, &in_c).status.success(), "it holds nothing");
}
