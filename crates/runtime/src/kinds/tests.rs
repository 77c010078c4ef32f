//! Rows whose table and code disagree, and what is said of each.

use std::path::Path;

use sinew_core::cycle::executor::Executor;
use sinew_core::{Cycle, Fault, Io, Message, Node, fault};
use sinew_spec::catalogue::{MessageType, SafeValue, type_hash};
use sinew_spec::plan::TargetMachine;
use sinew_spec::{SpecSource, compile};

use super::*;

sinew_core::message! {
    /// A command.
    pub struct Command {
        /// How fast.
        pub speed_m_per_s: f64,
    }
}

const DRIVE: Port = Port {
    safe: &[SafeValue { name: "stop", doc: "" }, SafeValue { name: "hold", doc: "" }],
    ..Port::input("drive", "", Command::TYPE)
};
static AXIS: Kind = Kind::new("axis", RunsIn::Realtime, &[DRIVE]);
static PLAIN: Kind = Kind { name: "plain", ports: &[], ..AXIS };

const GOOD: NodeEntry =
    NodeEntry { kind: &AXIS, make: |_| Err(fault!("never made")), safe: Some(|_, _, _| {}) };

fn table_errors(nodes: &[NodeEntry]) -> Vec<String> {
    Kinds { nodes: nodes.to_vec(), ..Kinds::default() }.errors()
}

#[track_caller]
fn says(row: NodeEntry, words: &str) {
    let errors = table_errors(&[row]);
    assert!(errors.iter().any(|error| error.contains(words)), "'{words}' not in {errors:?}");
}

#[test]
fn an_actuator_needs_code_that_writes_each_of_its_safe_values() {
    assert_eq!(table_errors(&[GOOD]), Vec::<String>::new());
    says(
        NodeEntry { safe: None, ..GOOD },
        "'drive' moves an actuator, and the row has 'safe: None'",
    );
    says(NodeEntry { kind: &PLAIN, ..GOOD }, "and no port offers any");
    let short = |_: usize, _: usize, message: &mut [u8]| message.copy_from_slice(&[0; 4]);
    says(
        NodeEntry { safe: Some(short), ..GOOD },
        "safe value 'stop' cannot be written: it panicked",
    );
    let one = |_: usize, safe: usize, _: &mut [u8]| assert_eq!(safe, 0, "there is one");
    says(NodeEntry { safe: Some(one), ..GOOD }, "safe value 'hold' cannot be written: it panicked");
    let nan = |_: usize, _: usize, message: &mut [u8]| {
        message.copy_from_slice(&f64::NAN.to_ne_bytes());
    };
    says(NodeEntry { safe: Some(nan), ..GOOD }, "'stop' holds a number that is not finite");
}

#[test]
fn a_kind_runs_where_its_code_can() {
    use RunsIn::{Flow, Observer, Realtime, Service, Test};
    let with = |kind: &'static Kind| -> [(Kinds, &[RunsIn]); 4] {
        let node = NodeEntry { kind, make: GOOD.make, safe: None };
        let service = ServiceEntry { kind, make: |_| Err(fault!("never made")) };
        let never = Make::Node(|_| Err(vec![fault!("never made").into()]));
        let source = Make::Source(|_| Err(vec![fault!("never made").into()]));
        let flow = |make| Kinds { flows: vec![FlowEntry { kind, make }], ..Kinds::default() };
        [
            (Kinds { nodes: vec![node], ..Kinds::default() }, &[Realtime]),
            (Kinds { services: vec![service], ..Kinds::default() }, &[Service, Observer]),
            (flow(never), &[Flow]),
            (flow(source), &[Flow, Test]),
        ]
    };
    for runs_in in [Realtime, Service, Observer, Flow, Test] {
        for (kinds, allowed) in with(Box::leak(Box::new(Kind { runs_in, ..PLAIN }))) {
            let errors = kinds.errors();
            assert_eq!(errors.is_empty(), allowed.contains(&runs_in), "{runs_in:?}: {errors:?}");
        }
    }
}

#[test]
fn what_no_link_can_carry_is_refused() {
    static HUGE: MessageType = MessageType {
        name: "Huge",
        size: MESSAGE_SIZE_MAX + 8,
        align: 8,
        fields: &[],
        hash: type_hash("Huge", MESSAGE_SIZE_MAX + 8, &[]),
    };
    static KIND: Kind = Kind { ports: &[Port { message: &HUGE, ..DRIVE }], ..AXIS };
    says(NodeEntry { kind: &KIND, ..GOOD }, "has 67108872 bytes; at most 67108864");
}

#[test]
fn what_the_catalogue_says_stands_in_the_same_list() {
    let errors = table_errors(&[GOOD, NodeEntry { safe: None, ..GOOD }]);
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].contains("two kinds are named 'axis'"), "{errors:?}");
}

#[test]
fn a_safe_value_that_cannot_be_written_ends_the_start_and_never_a_cycle() {
    let text = "
domains: {core: {realtime: {period: 1ms}}}
nodes: [{kind: axis, domain: core, safe: {drive: {value: stop, after: 1}}}]
";
    static FREE: Kind = Kind { ports: &[Port { optional: true, ..DRIVE }], ..AXIS };
    struct Still;
    impl Node for Still {
        fn update(&mut self, _: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
            Ok(())
        }
    }
    let make: fn(&Parameters<'_>) -> Result<Box<dyn Node>, Fault> = |_| Ok(Box::new(Still));
    let source = SpecSource::of("axis.yaml", text);
    let plan = compile(&source, &[&FREE], &TargetMachine::of(vec![0])).expect("a good graph");
    let assembled = |safe| {
        let table = [NodeEntry { kind: &FREE, make, safe }];
        Executor::fused(&plan, &table, Path::new("."))
    };
    let refused = assembled(None).err().expect("no executor");
    assert!(refused.fault.text().contains("its row 'safe: None'"), "{}", refused.fault);

    let mut executor = assembled(GOOD.safe).expect("an executor");
    for number in 0..4 {
        let cycle = Cycle::new(number, 1_000_000);
        executor.cycle(&cycle, u64::MAX).expect("the guard acts, and nothing fails");
    }
}
