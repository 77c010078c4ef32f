//! The messages in the records of the core: the newest message of each port, its fields as numbers,
//! and whether it is new, was replaced by a safe value, or was never written.

use sinew_control::traces::{FieldLayout, RunLayout};
use sinew_core::catalogue::{Direction, MessageType, Scalar};
use sinew_core::pace::Pace;
use sinew_core::trace::{Record, Tap, ThreadId, taps};
use sinew_spec::plan::{End, Plan};

use super::protocol::{
    FIELD_NUMBERS_MAX, FieldInfo, NUMBERS_MAX, PORTS_MAX, PortInfo, VALUE_CLOSED, VALUE_FRESH,
    VALUE_SAFE,
};

/// All ports that are shown, in the order of hello.
pub(super) struct Ports {
    rows: Vec<Row>,
}

/// A port.
struct Row {
    /// Index of its thread.
    thread: usize,
    /// Its index among the taps of the thread.
    tap: usize,
    message: &'static MessageType,
    /// The beginning of its newest message, up to the last number that is shown.
    bytes: Vec<u8>,
    /// Cycles without a command until a safe value is used; `None`: no actuator reads it.
    after: Option<u32>,
    /// How often the core had been started again: a new life has written nothing yet.
    life: u32,
    messages: u32,
    written_ns: Option<u64>,
    /// Cycles since the last message.
    missed: u64,
    flags: u32,
}

/// The ports of all threads, up to [`PORTS_MAX`] and [`NUMBERS_MAX`], and how many more there are.
pub(super) fn infos(plan: &Plan) -> (Vec<PortInfo>, usize) {
    let layout = RunLayout::of(plan, Pace::AsPlanned);
    let (mut shown, mut left_out, mut numbers) = (Vec::new(), 0, 0);
    for (thread, row) in layout.threads.iter().enumerate() {
        let nodes = row.id().nodes(plan);
        for (tap, it) in taps(plan, nodes).iter().enumerate() {
            let node = nodes.iter().position(|node| *node == it.end.node);
            let node = &row.nodes[node.expect("a bug: a tap of a node of another thread")];
            // The tap of a tuning port has no port of the node's kind.
            let Some(port) = node.ports.get(it.end.port) else { continue };
            let fields = fields(&port.fields, numbers);
            let end = fields.last().map_or(numbers, |field| field.offset + field.shown);
            if shown.len() == PORTS_MAX || end > NUMBERS_MAX {
                left_out += 1;
                continue;
            }
            numbers = end;
            shown.push(PortInfo {
                thread,
                tap,
                port: plan.end_name(it.end),
                direction: match it.direction {
                    Direction::In => "in",
                    Direction::Out => "out",
                },
                message: plan.port(it.end).message.name.to_owned(),
                others: others(plan, it),
                fields,
            });
        }
    }
    (shown, left_out)
}

/// The fields of a message; their numbers begin at place `offset`.
fn fields(rows: &[FieldLayout], mut offset: usize) -> Vec<FieldInfo> {
    let field = |row: &FieldLayout| {
        let count = row.count as usize;
        let shown = count.min(FIELD_NUMBERS_MAX);
        offset += shown;
        FieldInfo {
            name: row.name.clone(),
            scalar: format!("{:?}", Scalar::ALL[row.scalar]).to_lowercase(),
            unit: row.unit.clone(),
            count,
            shown,
            offset: offset - shown,
            labels: row.labels.clone(),
        }
    };
    rows.iter().map(field).collect()
}

/// The other ends of a port's links.
fn others(plan: &Plan, tap: &Tap) -> Vec<String> {
    let other = plan.links.iter().filter_map(|link| match tap.direction {
        Direction::In => (link.to == tap.end).then_some(link.from),
        Direction::Out => (link.from == tap.end).then_some(link.to),
    });
    other.map(|end| plan.end_name(end)).collect()
}

/// The number of cycles without a command after which an actuator gets its safe value. The port is
/// the actuator's own, or an output that the actuator reads in the same thread.
fn after(plan: &Plan, tap: &Tap) -> Option<u32> {
    let of = |end: End| {
        let actuators = &plan.nodes[end.node].actuators;
        actuators.iter().find(|it| it.port == end.port).map(|it| it.after)
    };
    match tap.direction {
        Direction::In => of(tap.end),
        Direction::Out => {
            let fused = plan.links.iter().filter(|it| it.from == tap.end && it.fused);
            fused.filter_map(|link| of(link.to)).max()
        }
    }
}

impl Ports {
    /// No port has been written yet.
    pub(super) fn new(plan: &Plan, life: u32, infos: &[PortInfo]) -> Ports {
        let taps: Vec<_> = ThreadId::all(plan).map(|id| taps(plan, id.nodes(plan))).collect();
        let row = |info: &PortInfo| Row::new(plan, info, &taps[info.thread][info.tap], life);
        Ports { rows: infos.iter().map(row).collect() }
    }

    /// Takes a cycle of a thread.
    pub(super) fn add(&mut self, thread: usize, record: &Record) {
        for row in self.rows.iter_mut().filter(|row| row.thread == thread) {
            row.add(record);
        }
    }

    /// The state of each port; flags of new messages are cleared.
    pub(super) fn take(&mut self) -> Vec<PortValues> {
        self.rows.iter_mut().map(Row::take).collect()
    }
}

/// A port in a frame.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PortValues {
    /// When its newest message was written, monotonic ms; -1: never in this life of the core.
    pub(super) written_ms: f64,
    pub(super) messages: u32,
    pub(super) flags: u32,
    /// The numbers that are shown.
    pub(super) numbers: Vec<f64>,
}

impl Row {
    fn new(plan: &Plan, info: &PortInfo, tap: &Tap, life: u32) -> Row {
        let message = plan.port(tap.end).message;
        let ends = message.fields.iter().map(|field| {
            field.offset + field.scalar.bytes() * field.count.min(FIELD_NUMBERS_MAX as u32)
        });
        Row {
            thread: info.thread,
            tap: info.tap,
            message,
            bytes: vec![0; ends.max().unwrap_or(0) as usize],
            after: after(plan, tap),
            life,
            messages: 0,
            written_ns: None,
            missed: 0,
            flags: 0,
        }
    }

    fn add(&mut self, record: &Record) {
        if record.life() != self.life {
            self.life = record.life();
            (self.messages, self.written_ns, self.missed, self.flags) = (0, None, 0, 0);
        }
        self.missed = self.missed.saturating_add(1).saturating_add(record.skipped());
        if let Some(message) = record.message(self.tap) {
            let len = self.bytes.len();
            self.bytes.copy_from_slice(&message[..len]);
            self.messages = self.messages.saturating_add(1);
            self.written_ns = Some(record.start_ns());
            self.missed = 0;
            self.flags |= VALUE_FRESH;
        }
        let is_late = self.after.is_some_and(|after| self.missed > u64::from(after));
        self.set(VALUE_SAFE, self.after.is_some() && (is_late || record.is_told_to_stop()));
        self.set(VALUE_CLOSED, record.is_closed(self.tap));
    }

    fn set(&mut self, flag: u32, is_so: bool) {
        self.flags = if is_so { self.flags | flag } else { self.flags & !flag };
    }

    fn take(&mut self) -> PortValues {
        let numbers = self.message.fields.iter().flat_map(|field| {
            let count = field.count.min(FIELD_NUMBERS_MAX as u32);
            let place = move |at: u32| (field.offset + at * field.scalar.bytes()) as usize;
            (0..count).map(move |at| (field.scalar, place(at)))
        });
        let number = |(scalar, place): (Scalar, usize)| {
            scalar.number(&self.bytes[place..]).unwrap_or(f64::NAN)
        };
        let numbers = numbers.map(number).collect();
        let values = PortValues {
            written_ms: self.written_ns.map_or(-1.0, |ns| ns as f64 / 1e6),
            messages: self.messages,
            flags: self.flags,
            numbers,
        };
        self.flags &= !VALUE_FRESH;
        values
    }
}

#[cfg(test)]
mod tests {
    use sinew_core::Message;
    use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, REAL, RunsIn, Unit};
    use sinew_core::message;
    use sinew_core::trace::Past;
    use sinew_spec::{SpecSource, compile, plan::TargetMachine, render};

    use super::*;

    message! {
        /// More numbers than are shown.
        pub struct Many {
            /// An array.
            pub force_n: [f32; 100],
            /// One number.
            pub count: u64,
        }
    }

    static SOURCE: Kind = Kind {
        parameters: &[Parameter::new("unit", ParameterType::Text).or("")],
        ..Kind::new(
            "source",
            RunsIn::Realtime,
            &[
                Port::output("out", "", &REAL).optional().unit(Unit::Parameter("unit")),
                Port::output("many", "", Many::TYPE).optional(),
            ],
        )
    };
    static SINK: Kind = Kind::new(
        "sink",
        RunsIn::Realtime,
        &[
            Port::input("many", "", Many::TYPE).optional(),
            Port::output("again", "", &REAL).optional().unit(Unit::As("in[]")),
            Port::input("in[]", "", &REAL).optional(),
        ],
    );

    /// A plan of these nodes beside a dashboard, in one domain of the core.
    fn plan(nodes: &str) -> Plan {
        let text = format!(
            "name: t\ndomains: {{core: {{realtime: {{period: 1ms}}}}, page: {{}}}}\nnodes:\n\
             - {{kind: dashboard, name: page, domain: page}}\n{nodes}"
        );
        let source = SpecSource::of("t.yaml", &text);
        compile(&source, &[&SOURCE, &SINK, &super::super::INFO], &TargetMachine::of(vec![0, 1]))
            .unwrap_or_else(|bad| panic!("{}", render(&bad, &text, false)))
    }

    /// For the only thread: its taps, their description, how many are left out, and their state.
    fn shown(plan: &Plan) -> (Vec<PortInfo>, usize, Ports) {
        let id = ThreadId::all(plan).next().expect("a thread");
        let taps = taps(plan, id.nodes(plan));
        let (infos, left_out) = infos(plan);
        let rows = infos.iter().map(|info| Row::new(plan, info, &taps[info.tap], 0)).collect();
        (infos, left_out, Ports { rows })
    }

    fn source(at: usize, unit: &str, link: &str) -> String {
        format!(
            "- {{kind: source, name: s{at}, domain: core, unit: '{unit}', ports: {{{link}}}}}\n"
        )
    }

    const SINK_LINE: &str = "- {kind: sink, name: sink, domain: core}\n";

    #[test]
    fn fields_have_their_units_and_an_array_is_cut() {
        let link = "out: [{name: sink, port: 'in[0]'}], many: [{name: sink, port: many}]";
        let plan = plan(&format!("{}{SINK_LINE}", source(0, "rad", link)));
        let (infos, left_out, _) = shown(&plan);
        assert_eq!((infos.len(), left_out), (2, 0));
        let [real, many] = &infos[..] else { panic!("two ports") };
        assert_eq!((&*real.port, &*real.fields[0].unit), ("s0.out", "rad"));
        assert_eq!((&real.others[..], real.direction), (&["sink.in[0]".to_owned()][..], "out"));
        let force = &many.fields[0];
        assert_eq!((&*force.name, &*force.unit, &*force.scalar), ("force_n", "N", "f32"));
        assert_eq!((force.count, force.shown, force.offset), (100, FIELD_NUMBERS_MAX, 1));
        assert_eq!(many.fields[1].offset, 1 + FIELD_NUMBERS_MAX);
    }

    #[test]
    fn more_ports_or_numbers_than_allowed_are_left_out_and_counted() {
        let all = PORTS_MAX + 7;
        let of = |at| source(at, "", &format!("out: [{{name: sink, port: 'in[{at}]'}}]"));
        let lines: String = (0..all).map(of).collect();
        let (infos, left_out, ports) = shown(&plan(&format!("{lines}{SINK_LINE}")));
        assert_eq!((infos.len(), left_out, ports.rows.len()), (PORTS_MAX, 7, PORTS_MAX));
        let sink = |at| format!("- {{kind: sink, name: sink{at}, domain: core}}\n");
        let of =
            |at| source(at, "", &format!("many: [{{name: sink{at}, port: many}}]")) + &sink(at);
        let lines: String = (0..70).map(of).collect();
        let (infos, left_out, mut ports) = shown(&plan(&lines));
        // Each message has 17 numbers.
        assert_eq!((infos.len(), left_out), (NUMBERS_MAX / 17, 70 - NUMBERS_MAX / 17));
        let numbers: usize = ports.take().iter().map(|port| port.numbers.len()).sum();
        assert!(numbers <= NUMBERS_MAX, "{numbers}");
    }

    #[test]
    fn a_port_has_its_newest_message_and_is_new_once() {
        let link = "many: [{name: sink, port: many}]";
        let plan = plan(&format!("{}{SINK_LINE}", source(0, "", link)));
        let (_, _, mut ports) = shown(&plan);
        assert_eq!((ports.take()[0].written_ms, ports.take()[0].flags), (-1.0, 0));
        let id = ThreadId::all(&plan).next().expect("a thread");
        let mut record = Record::of(&plan, id.nodes(&plan));
        let past = |number, start_ns| Past {
            number,
            start_ns,
            execution_ticks: vec![0; 2],
            ..Past::default()
        };
        let mut message = Many::default();
        (message.force_n[15], message.force_n[16], message.count) = (2.5, 99.0, 7);
        record.restore(&past(1, 5_000_000));
        record.restore_message(0, Some(zerocopy::IntoBytes::as_bytes(&message)), false);
        ports.add(0, &record);
        record.restore(&past(2, 6_000_000));
        record.restore_message(0, None, true);
        ports.add(0, &record);
        let port = &ports.take()[0];
        assert_eq!((port.written_ms, port.messages), (5.0, 1));
        assert_eq!(port.flags, VALUE_FRESH | VALUE_CLOSED);
        assert_eq!(port.numbers[15..], [2.5, 7.0]);
        assert_eq!(ports.take()[0].flags, VALUE_CLOSED, "new once");
    }

    #[test]
    fn a_command_that_stays_away_is_marked_safe_and_another_life_begins_anew() {
        let link = "many: [{name: sink, port: many}]";
        let plan = plan(&format!("{}{SINK_LINE}", source(0, "", link)));
        let (_, _, mut ports) = shown(&plan);
        let id = ThreadId::all(&plan).next().expect("a thread");
        let mut record = Record::of(&plan, id.nodes(&plan));
        let message = Many::default();
        ports.rows[0].after = Some(2);
        record.restore_message(0, Some(zerocopy::IntoBytes::as_bytes(&message)), false);
        ports.add(0, &record);
        record.restore_message(0, None, false);
        let safe = |ports: &mut Ports| {
            ports.add(0, &record);
            ports.take()[0].flags & VALUE_SAFE != 0
        };
        assert_eq!([(); 3].map(|()| safe(&mut ports)), [false, false, true]);
        // The record is of life 0, and everything before it is of another life.
        ports.rows[0].life = 1;
        assert_eq!(ports.take()[0].messages, 1);
        ports.add(0, &record);
        let port = &ports.take()[0];
        assert_eq!((port.messages, port.written_ms, port.flags), (0, -1.0, 0));
    }
}
