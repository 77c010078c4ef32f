//! Kind `monitor`: counters and histograms of the run for Prometheus, and rules that are checked in
//! every cycle.

mod exposition;
mod figures;
mod holder;
mod look;
mod rules;
mod server;
mod webhook;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::registry::Registry;
use sinew_control::Request;
use sinew_core::catalogue::{Kind, Parameter, ParameterType, RunsIn};
use sinew_core::clock::now_ns;
use sinew_core::{Fault, Parameters, Refusal, fault};
use sinew_runtime::service::tell;
use sinew_runtime::{Service, ServiceEntry, ServiceIo};
use sinew_spec::plan::Plan;

use self::figures::counters;
use self::look::Look;
use self::rules::{Rule, Watched, Wrong};
use self::server::{Net, Page};
use self::webhook::{AllTold, Webhook};

/// Most rules of one monitor, because each is checked in every cycle.
const RULES_MAX: usize = 64;
/// Interval between two polls of the cycles.
const LOOK: Duration = Duration::from_millis(10);
/// The same if a rule may stop the core: the stop should not wait for the next poll.
const LOOK_TO_STOP: Duration = Duration::from_millis(1);
/// Interval between two polls of the status.
const STATUS_NS: u64 = 500_000_000;
/// How long a webhook may still take at the end; less than the deadline of any stop.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "monitor",
    runs_in: RunsIn::Observer,
    doc: "Watches the run, without costing the core anything. Serves counters and native \
          histograms to Prometheus at /metrics, its own health at /healthz. Rules such as \
          'overruns > 0 for 1s: event' are judged in every cycle, or twice a second if only the \
          status has the value. A rule that begins to hold raises an alarm and, if it says so, \
          calls a webhook or stops the core. docs/monitor.md has the grammar and all quantities.",
    ports: &[],
    parameters: &[
        Parameter::new("listen", ParameterType::Text).or("127.0.0.1:9600").doc(
            "Address and port; port 0 for any that is free. Everyone who reaches it can read it.",
        ),
        Parameter::new("rules", ParameterType::Texts { max: RULES_MAX })
            .or("[]")
            .doc("What is watched, and what is done about it: a text for each rule."),
        Parameter::new("webhook", ParameterType::Text)
            .or("")
            .doc("Address that the rules with 'webhook' call: http://host:port/path, by POST."),
        Parameter::new("signals", ParameterType::Bool)
            .or("false")
            .doc("Whether the signals of all nodes are served too, with their last values."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub const NODE: ServiceEntry = ServiceEntry { kind: &INFO, make };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    let listen = parameters.text("listen");
    let expected = "expected an address and a port such as 127.0.0.1:9600";
    let listen = listen.parse().map_err(|_| fault!("listen '{listen}': {expected}"))?;
    let texts = parameters.texts("rules").to_vec();
    let webhook = match parameters.text("webhook") {
        "" => None,
        text => Some(Webhook::parse(text).map_err(|what| fault!("webhook {what}"))?),
    };
    let with_signals = parameters.bool("signals");
    let (rules, listener, posted) = (Vec::new(), None, None);
    Ok(Box::new(Monitor { listen, texts, webhook, with_signals, rules, listener, posted }))
}

struct Monitor {
    listen: SocketAddr,
    /// The rules as text.
    texts: Vec<String>,
    webhook: Option<Webhook>,
    with_signals: bool,
    /// Set from the start on.
    rules: Vec<Rule>,
    /// Set from start to run.
    listener: Option<TcpListener>,
    /// Set from run to stop.
    posted: Option<(Net, Option<AllTold>)>,
}

impl Monitor {
    /// Reads the rule number `at`.
    fn rule(&self, at: usize) -> Result<Rule, Wrong> {
        let rule = Rule::parse(at + 1, &self.texts[at])?;
        if rule.webhook && self.webhook.is_none() {
            let message = "it calls a webhook, but no 'webhook' is given: add its address".into();
            return Err(Wrong { at: 0, message });
        }
        Ok(rule)
    }
}

impl Service for Monitor {
    fn check(&self, plan: &Plan, node: usize) -> Result<(), Vec<Refusal>> {
        let mut refusals = Vec::new();
        for at in 0..self.texts.len() {
            let (offset, message) = match self.rule(at) {
                Err(wrong) => (wrong.at, format!("rule {}: {}", at + 1, wrong.message)),
                Ok(rule) => match Watched::bind(&[rule], plan) {
                    Err(message) => (0, message),
                    Ok(_) => continue,
                },
            };
            let span = plan.nodes[node].span_in("rules", at, offset);
            refusals.push(Refusal::new(span, message, ""));
        }
        if refusals.is_empty() { Ok(()) } else { Err(refusals) }
    }

    fn start(&mut self) -> Result<(), Fault> {
        let wrong = |(at, wrong): (usize, Wrong)| fault!("{}", wrong.of(at + 1, &self.texts[at]));
        let rules = (0..self.texts.len()).map(|at| self.rule(at).map_err(|it| wrong((at, it))));
        self.rules = rules.collect::<Result<_, _>>()?;
        self.listener = Some(listen_at(self.listen)?);
        Ok(())
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let plan = Arc::clone(io.watch().plan());
        let labels = [("graph".into(), plan.name.clone().into())];
        let mut registry = Registry::with_prefix_and_labels("sinew", labels.into_iter());
        let doc = "Calls of webhooks, by their results";
        let outcomes = counters(&mut registry, "webhook_deliveries", doc);
        let mut look = Look::new(&plan, &self.rules, self.with_signals, io.name(), &mut registry)?;
        let webhook = self.webhook.clone().map(|webhook| webhook::outbox(webhook, outcomes));
        let (outbox, post, told) = webhook.map_or((None, None, None), |(outbox, post, told)| {
            (Some(outbox), Some(post), Some(told))
        });
        look.tell_through(outbox);
        let listener = self.listener.take().expect("a service is started before it runs");
        let address = listener.local_addr().map_err(|error| fault!("listen: {error}"))?;
        let page = Arc::new(Page {
            registry: Mutex::new(registry),
            address,
            looked_ns: AtomicU64::new(now_ns()),
        });
        let net = Net::start(listener, Arc::clone(&page), post);
        let net = net.map_err(|error| fault!("cannot serve {address}: {error}"))?;
        self.posted = Some((net, told));
        let announce = Request::Announce { address: format!("http://{address}/metrics") };
        let announced = io.watch().supervisor().order(&announce);
        announced.map_err(|error| fault!("cannot announce {address}: {error}"))?;

        let may_stop = self.rules.iter().any(|rule| rule.stop);
        let pause = if may_stop { LOOK_TO_STOP } else { LOOK };
        let mut status_ns = 0;
        while io.wait(pause) {
            look.at_cycles(io.watch())?;
            if now_ns() >= status_ns {
                look.at_status(io.watch(), &page.registry)?;
                status_ns = now_ns() + STATUS_NS;
            }
            // Only /healthz reads it, and it orders no other memory.
            page.looked_ns.store(now_ns(), Ordering::Relaxed);
        }
        // The last cycles, including those of the stop.
        look.at_cycles(io.watch())
    }

    fn stop(&mut self) {
        if let Some((_net, Some(told))) = self.posted.take()
            && !told.within(LAST_WORDS)
        {
            tell("the run ends before all calls of the webhook were made");
        }
    }
}

/// Listens; if the port is in use, the error says by which process.
fn listen_at(address: SocketAddr) -> Result<TcpListener, Fault> {
    TcpListener::bind(address).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => {
            let holder = holder::of(address.port());
            let holder = holder.map_or(String::new(), |it| format!(" by {it}"));
            fault!("{address} is in use{holder}; end that, or set 'listen' to another port")
        }
        _ => fault!("cannot listen at {address}: {error}; set 'listen' to one of this machine"),
    })
}

/// graphs/robot/robot.yaml.
#[cfg(test)]
fn robot() -> Plan {
    use sinew_spec::{SpecSource, compile, plan::TargetMachine, render};

    let text = include_str!("../../../graphs/robot/robot.yaml");
    let nodes = sinew_robot::NODES.iter().map(|row| row.kind);
    let kinds: Vec<_> = nodes.chain(crate::SERVICES.iter().map(|row| row.kind)).collect();
    let source = SpecSource::of("robot.yaml", text);
    compile(&source, &kinds, &TargetMachine::of(vec![0, 1]))
        .unwrap_or_else(|bad| panic!("{}", render(&bad, text, false)))
}
