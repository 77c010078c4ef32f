//! `print`: writes a line to the run's log for each packet.

use std::io::{Write, stderr, stdout};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{
    At, Error, FLOW, Flow, FlowEntry, FlowNode, Make, NodeContext, Step, Value, input, one_line,
    output,
};
use sinew_spec::HIDDEN;

use crate::json;
use crate::lens::{SHY_HEADERS, veiled};
use crate::script::template::Template;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "print",
    doc: "Writes a line to the run's log and passes the packet on. It never makes a flow wait: \
          lines that cannot be written as fast as they come are left out, and the log says how \
          many. Values from outside of the graph, and headers with passwords or tokens, are \
          hidden.",
    ports: &[input("in", "The packet."), output("out", "The same packet.")],
    parameters: &[Parameter::new("format", ParameterType::Yaml)
        .or("'{{ packet }}'")
        .doc("The line, as a template; what is not text is written as JSON.")],
    ..FLOW
};

const OUT: usize = 1;

/// Most lines that may wait to be written; further lines are only counted.
const WAITING_MAX: usize = 1024;
/// How long a graph that stops waits for its last lines.
const FLUSH_MAX: Duration = Duration::from_millis(200);

struct Print {
    format: Template,
    /// `None` before it is attached.
    printer: Option<Arc<Printer>>,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let format = Template::compile(parameters.yaml("format"))?.veiled(veil);
    Ok(Box::new(Print { format, printer: None }))
}

/// A value as it may be printed: without headers that contain credentials.
fn veil(flow: &Flow, expression: &str, value: Value) -> Result<Value, Error> {
    if matches!(value, Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Number(_)) {
        return Ok(value);
    }
    let asked = expression.to_ascii_lowercase();
    if SHY_HEADERS.iter().any(|name| asked.contains(name)) {
        return Ok(Value::text(HIDDEN));
    }
    veiled(flow, value)
}

impl FlowNode for Print {
    fn attach(&mut self, site: &NodeContext) {
        self.printer = Some(Printer::of_this_process(site.supervisor.is_some()));
    }

    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        Step::compute(async move {
            let rendered = self.format.render(at.flow(), &packet).await;
            let text = match rendered {
                Ok(value) => json::line(at.flow(), &value).await,
                Err(error) => Err(error),
            };
            let text = text.unwrap_or_else(|error| format!("cannot print: {}", error.text()));
            if let Some(printer) = &self.printer {
                printer.say(one_line(&text));
            }
            Step::Pass(OUT, packet)
        })
    }
}

impl Drop for Print {
    fn drop(&mut self) {
        if let Some(printer) = &self.printer {
            printer.flush();
        }
    }
}

/// Writes the lines of all flows of this process, on a thread that may wait for its reader.
struct Printer {
    orders: SyncSender<Order>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    lost: AtomicU64,
    /// Whether nobody reads the output. Then `flush` does not wait, until somebody reads again:
    /// many nodes may end at once, and the flows of their worker must go on after an edit.
    is_stuck: AtomicBool,
}

enum Order {
    Write(String),
    /// Says when everything before it is written.
    Flush(SyncSender<()>),
}

impl Printer {
    /// The only printer of this process. In a domain, standard output is the run's log. Elsewhere
    /// it may be the program's answer, so lines go to standard error.
    fn of_this_process(is_run: bool) -> Arc<Printer> {
        static PRINTER: OnceLock<Arc<Printer>> = OnceLock::new();
        let open = || Printer::open(if is_run { Box::new(stdout()) } else { Box::new(stderr()) });
        Arc::clone(PRINTER.get_or_init(open))
    }

    fn open(into: Box<dyn Write + Send>) -> Arc<Printer> {
        let (orders, receiver) = sync_channel(WAITING_MAX);
        let printer = Arc::new(Printer { orders, state: Arc::default() });
        let state = Arc::clone(&printer.state);
        // If the thread cannot be started, every line counts as lost.
        let thread = thread::Builder::new().name("print".into());
        let _ = thread.spawn(move || write(&receiver, &state, into));
        printer
    }

    fn say(&self, line: String) {
        if self.orders.try_send(Order::Write(line)).is_err() {
            // Relaxed: it is a number alone; no other data goes with it.
            self.state.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self) {
        let (sender, written) = sync_channel(1);
        // Relaxed: it only saves a wait, and orders nothing.
        if !self.state.is_stuck.load(Ordering::Relaxed)
            && self.orders.try_send(Order::Flush(sender)).is_ok()
        {
            // The graph stops, even if the lines are late or never written.
            let is_stuck = written.recv_timeout(FLUSH_MAX).is_err();
            self.state.is_stuck.store(is_stuck, Ordering::Relaxed);
        }
    }
}

fn write(orders: &Receiver<Order>, state: &State, mut into: Box<dyn Write + Send>) {
    while let Ok(order) = orders.recv() {
        // Errors are ignored: if nobody reads the output any more, nobody would read an error
        // either.
        match order {
            Order::Write(line) => drop(writeln!(into, "{line}")),
            Order::Flush(written) => {
                let _ = into.flush();
                let _ = written.send(());
            }
        }
        // Relaxed, both: `is_stuck` only saves a wait, and `lost` is a number alone.
        state.is_stuck.store(false, Ordering::Relaxed);
        let more = state.lost.swap(0, Ordering::Relaxed);
        if more > 0 {
            let _ = writeln!(into, "{more} lines of 'print' came too fast and are left out");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use super::*;
    use crate::testing::{refusals, reply};

    #[test]
    fn a_packet_passes_whatever_the_line_says() {
        for format in ["", ", format: 'got {{ packet }}'", ", format: '{{ packet.nothing.there }}'"]
        {
            let graph = format!("- {{kind: print, name: print{format}}}");
            assert_eq!(reply(&graph, Value::text("x")), Ok(Some(Value::text("x"))), "{format}");
        }
    }

    #[test]
    fn a_bad_format_is_refused() {
        let refusals = refusals("- {kind: print, name: print, format: '{{ packet.'}");
        assert_eq!(refusals.len(), 1, "{refusals:?}");
    }

    /// A writer that waits for the test before each write.
    struct Gate {
        open: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.open.recv();
            self.written.lock().expect("no panic").extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_waits_in_vain_for_a_reader_waits_once_until_one_reads() {
        let (opener, open) = sync_channel(0);
        let printer = Printer::open(Box::new(Gate { open, written: Arc::default() }));
        printer.say("stays".into());
        printer.flush();
        assert!(printer.state.is_stuck.load(Ordering::Relaxed));
        drop(opener);
        // The second answer comes after all that the thread does after the first.
        for _ in 0..2 {
            let (sender, done) = sync_channel(1);
            printer.orders.send(Order::Flush(sender)).expect("the thread lives");
            done.recv().expect("an answer");
        }
        assert!(!printer.state.is_stuck.load(Ordering::Relaxed));
    }

    #[test]
    fn lines_that_nobody_takes_are_counted_and_the_count_is_written() {
        let (opener, open) = sync_channel(0);
        let written = Arc::new(Mutex::new(Vec::new()));
        let printer = Printer::open(Box::new(Gate { open, written: Arc::clone(&written) }));
        let sent = WAITING_MAX + 100;
        (0..sent).for_each(|at| printer.say(format!("line {at}")));
        drop(opener);
        while printer.orders.try_send(Order::Write("last".into())).is_err() {
            thread::yield_now();
        }
        let (sender, done) = sync_channel(1);
        printer.orders.send(Order::Flush(sender)).expect("the thread lives");
        done.recv().expect("an answer");
        let text = String::from_utf8(written.lock().expect("no panic").clone()).expect("text");
        let lines = text.lines().filter(|line| line.starts_with("line ")).count();
        let lost: usize = text
            .lines()
            .filter_map(|line| {
                line.strip_suffix(" lines of 'print' came too fast and are left out")
            })
            .map(|count| count.parse::<usize>().expect("a number"))
            .sum();
        assert_eq!(lines + lost, sent, "{text}");
        assert!(lost > 0 && text.starts_with("line 0\n"));
    }
}
