//! A row of the scenario, and the graph that is run for it: the arm of graphs/arm in two realtime
//! domains, and services beside it.

use super::kinds::Deed;
use crate::graph::arm_nodes;
use crate::words::words;

words! {
    /// What runs beside the core.
    pub(super) enum Company {
        /// Nothing.
        Nothing = "nothing",
        /// Three services that read a broadcast and sleep.
        Idle = "idle",
        /// Three services that fail in different ways as soon as they are back.
        CrashLoop = "crash_loop",
        /// The same, with the first pause of the default policy after every end.
        CrashLoop100Ms = "crash_loop_100ms",
        /// Three services that never sleep.
        Burn = "burn",
        /// Three services that write to mailboxes without a pause.
        Flood = "flood",
        /// As `idle`, but the services are killed from outside, one after the other.
        Killed = "killed",
    }
}

/// The pause of the services' restart policy; it is the same after every end.
pub(super) const BACKOFF_MS: u64 = 10;
/// The pause of the default policy before the first restart.
const BACKOFF_MS_DEFAULT: u64 = 100;

impl Company {
    /// What its services do.
    pub(super) fn deeds(self) -> &'static [Deed] {
        match self {
            Company::Nothing => &[],
            Company::Idle | Company::Killed => &[Deed::Idle; 3],
            Company::CrashLoop | Company::CrashLoop100Ms => &[Deed::Panic, Deed::Kill, Deed::Hang],
            Company::Burn => &[Deed::Burn; 3],
            Company::Flood => &[Deed::Flood; 3],
        }
    }

    /// The spec of a core with these services.
    pub(super) fn text(self) -> String {
        let services = self.deeds();
        let mut text = "name: services\ndomains:\n".to_owned() + CORE_DOMAINS;
        let backoff_ms = match self {
            Company::CrashLoop100Ms => BACKOFF_MS_DEFAULT,
            _ => BACKOFF_MS,
        };
        text.extend((0..services.len()).map(|at| domain(at, backoff_ms)));
        text += "nodes:\n";
        let listeners = services.iter().enumerate().filter(|(_, deed)| **deed != Deed::Flood);
        let listeners: String = listeners.map(|(at, _)| listener(at)).collect();
        text += &core(&listeners);
        text += "  - {kind: lab_inbox, name: inbox, domain: control}\n";
        for (at, deed) in services.iter().enumerate() {
            let link = format!("[{{name: inbox, port: in_{at}, delivery: queue, capacity: 64}}]");
            let writes = if *deed == Deed::Flood { link } else { "[]".into() };
            text += &service(at, *deed, &writes);
        }
        text
    }
}

/// The spec of services without a core.
pub(super) fn services_alone() -> String {
    let mut text = "name: services\ndomains:\n".to_owned();
    text.extend((0..3).map(|at| domain(at, BACKOFF_MS)));
    text += "nodes:\n";
    text.extend((0..3).map(|at| service(at, Deed::Idle, "[]")));
    text
}

/// The spec that `sinew run` is started with; it has only kinds that users have.
pub(super) fn logged() -> String {
    let log = ", {name: log, port: in, delivery: broadcast, capacity: 1024}";
    let core = core(log);
    format!(
        "name: services\ndomains:\n{CORE_DOMAINS}  log: {{}}\nnodes:\n{core}  \
         - {{kind: axis_log, name: log, domain: log, file: axes.csv}}\n"
    )
}

/// The nodes of a core; `listeners` are further targets of what its drives report, each after a
/// comma.
pub(in crate::scenario) fn core(listeners: &str) -> String {
    arm_nodes(
        |node| if node == "drives" { "plant".into() } else { "control".into() },
        |from, to| match (from, to) {
            (_, "drives") => ", transport: shared_memory, wait: spin, delivery: latest".into(),
            ("drives", _) => ", transport: shared_memory, delivery: latest".into(),
            _ => String::new(),
        },
        listeners,
    )
}

/// The domains of a core.
pub(in crate::scenario) const CORE_DOMAINS: &str =
    "  control: {realtime: {period: 1ms, overrun: {policy: count}}}
  plant: {realtime: {trigger: input, overrun: {policy: count}}}
";

fn domain(at: usize, backoff_ms: u64) -> String {
    format!(
        "  service_{at}:
    restart:
      policy: always
      backoff: {backoff_ms}ms
      backoff_max: {backoff_ms}ms
      restarts_max: 1000
      window: 3600s
    start_deadline: 100ms
"
    )
}

fn listener(at: usize) -> String {
    format!(", {{name: service_{at}, port: in, delivery: broadcast, capacity: 64}}")
}

fn service(at: usize, deed: Deed, writes: &str) -> String {
    let (deed, name) = (deed.word(), format!("service_{at}"));
    let ports = format!("ports: {{out: {writes}}}");
    format!("  - {{kind: lab_service, name: {name}, domain: {name}, deed: {deed}, {ports}}}\n")
}

#[cfg(test)]
mod tests {
    use sinew_runtime::Kinds;

    use super::*;
    use crate::graph::compiled;
    use crate::scenario::table;

    #[test]
    fn every_row_compiles_with_its_services_and_the_same_core() {
        let services = sinew_services::SERVICES.to_vec();
        let kinds = table(&Kinds { services, ..Kinds::default() }).catalogue();
        let rows = Company::ALL.iter().map(|beside| (beside.text(), 2, beside.deeds().len()));
        for (text, core, services) in rows.chain([(services_alone(), 0, 3), (logged(), 2, 1)]) {
            let graph = compiled("row", text.clone(), vec![], &kinds, &[0, 1, 2, 3]);
            let plan = graph.unwrap_or_else(|why| panic!("{why}\n{text}")).plan;
            let realtime = plan.domains.iter().filter(|domain| domain.realtime().is_some());
            assert_eq!((realtime.count(), plan.domains.len()), (core, core + services), "{text}");
        }
    }
}
