//! A row of the scenario, and the spec that is run for it.

use sinew_spec::plan::{Sync, Transport, Wait};

use crate::graph::arm_nodes;
use crate::report::Row;
use crate::words::words;

words! {
    /// What the nodes do.
    pub(super) enum Work {
        /// They pass on 256 bytes.
        None = "none",
        /// The nodes of the arm.
        Real = "real",
    }
}

words! {
    /// Where the four stages run.
    pub(super) enum Layout {
        Fused = "fused",
        TwoThreads = "2_threads",
        FourThreads = "4_threads",
        TwoProcesses = "2_processes",
        FourProcesses = "4_processes",
    }
}

words! {
    /// When the next cycle begins.
    pub(super) enum Period {
        /// As soon as the previous one is done.
        Free = "free",
        Ms1 = "1ms",
        Ms2 = "2ms",
        Ms4 = "4ms",
        Ms10 = "10ms",
    }
}

impl Period {
    /// The nominal period, ms; for a free run, the period that its nodes are told.
    pub(super) const fn ms(self) -> u64 {
        match self {
            Period::Free | Period::Ms1 => 1,
            Period::Ms2 => 2,
            Period::Ms4 => 4,
            Period::Ms10 => 10,
        }
    }
}

impl Layout {
    /// The nodes of each thread.
    fn groups(self) -> &'static [&'static [&'static str]] {
        match self {
            Layout::Fused => &[&["planner", "ik", "ethercat", "drives"]],
            Layout::TwoThreads | Layout::TwoProcesses => {
                &[&["planner", "ik", "ethercat"], &["drives"]]
            }
            Layout::FourThreads | Layout::FourProcesses => {
                &[&["planner"], &["ik"], &["ethercat"], &["drives"]]
            }
        }
    }

    /// How many threads there are in all processes.
    pub(super) fn threads(self) -> usize {
        self.groups().len()
    }

    /// Whether each thread is a process.
    pub(super) fn is_processes(self) -> bool {
        matches!(self, Layout::TwoProcesses | Layout::FourProcesses)
    }
}

/// The options of the links that cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crossing {
    pub(super) transport: Transport,
    /// `None` for a transport that the kernel synchronises.
    pub(super) sync: Option<Sync>,
    pub(super) wait: Wait,
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    pub(super) work: Work,
    pub(super) placement: Layout,
    /// `None` if no link crosses.
    pub(super) crossing: Option<Crossing>,
    pub(super) period: Period,
}

/// The value on an axis that does not apply to the row.
pub(super) const NO_VALUE: &str = "-";

impl Setup {
    /// All rows, in the order of the axes.
    pub(super) fn all() -> Vec<Setup> {
        let mut all = Vec::new();
        for &work in Work::ALL {
            for &placement in Layout::ALL {
                for crossing in crossings(placement) {
                    let setup = |&period| Setup { work, placement, crossing, period };
                    all.extend(Period::ALL.iter().map(setup));
                }
            }
        }
        all
    }

    /// Its row in the report.
    pub(super) fn row(&self) -> Row {
        let crossing = self.crossing.as_ref();
        let sync = crossing.and_then(|crossing| crossing.sync);
        Row::of(&[
            ("work", self.work.word()),
            ("placement", self.placement.word()),
            ("transport", crossing.map_or(NO_VALUE, |crossing| crossing.transport.word())),
            ("sync", sync.map_or(NO_VALUE, Sync::word)),
            ("wait", crossing.map_or(NO_VALUE, |crossing| crossing.wait.word())),
            ("period", self.period.word()),
        ])
    }

    /// Why it would show nothing on a machine with this many CPUs.
    pub(super) fn obstacle(&self, cpus: usize) -> Option<String> {
        let threads = self.placement.threads();
        let spins = self.crossing.is_some_and(|crossing| crossing.wait == Wait::Spin);
        if spins && threads > cpus {
            let cpus = if cpus == 1 { "1 CPU".into() } else { format!("{cpus} CPUs") };
            return Some(format!(
                "{threads} threads would spin on {cpus}, so the plan would choose spin_then_park, \
                 which is another row"
            ));
        }
        let remark = self.remark().filter(|_| self.period == Period::Free)?;
        Some(format!("{remark}, and a free run closes only that loop"))
    }

    /// What its latency does not contain.
    pub(super) fn remark(&self) -> Option<&'static str> {
        (self.work == Work::Real && self.placement.threads() == 4).then_some(
            "the arm's planner gets its feedback from the EtherCAT master: drives on a separate \
             thread are not part of the latency",
        )
    }

    /// The spec.
    pub(super) fn text(&self) -> String {
        let (mut text, period) = (String::from("name: pipeline\ndomains:\n"), self.period.ms());
        let groups = self.placement.groups();
        let timer = format!("realtime: {{period: {period}ms, overrun: {{policy: count}}}}");
        if self.placement.is_processes() {
            let input = "realtime: {trigger: input, overrun: {policy: count}}";
            for (at, _) in groups.iter().enumerate() {
                let release = if at == 0 { &timer } else { input };
                text += &format!("  process_{at}: {{{release}}}\n");
            }
        } else {
            text += &format!("  process_0:\n    {timer}\n    threads:\n");
            let nodes = groups.iter().map(|group| group.join(", "));
            text.extend(nodes.map(|nodes| format!("      - {{nodes: [{nodes}]}}\n")));
        }
        text += "nodes:\n";
        match self.work {
            Work::None => self.stages(&mut text),
            Work::Real => {
                text += &arm_nodes(
                    |node| self.domain(node),
                    // Of the frames to and from the drives, only the newest matters.
                    |from, to| match [from, to].contains(&"drives") {
                        true => self.options(from, to, "latest"),
                        false => self.options(from, to, "queue"),
                    },
                    "",
                )
            }
        }
        text
    }

    /// The thread of a node.
    fn thread(&self, node: &str) -> usize {
        let is_here = |group: &&[&str]| group.contains(&node);
        self.placement.groups().iter().position(is_here).unwrap_or_default()
    }

    /// The domain of a node.
    fn domain(&self, node: &str) -> String {
        let at = if self.placement.is_processes() { self.thread(node) } else { 0 };
        format!("process_{at}")
    }

    /// The options of a link between these nodes; empty if it does not cross. A reader that is held
    /// up for longer than the queue lasts must not end the run: its cycles count as overruns.
    fn options(&self, from: &str, to: &str, delivery: &str) -> String {
        let crossing = self.crossing.filter(|_| self.thread(from) != self.thread(to));
        let Some(Crossing { transport, sync, wait }) = crossing else { return String::new() };
        let full = if delivery == "queue" { ", full: drop" } else { "" };
        let sync = sync.map(|sync| format!(", sync: {}", sync.word())).unwrap_or_default();
        format!(
            ", transport: {}{sync}, wait: {}, delivery: {delivery}{full}",
            transport.word(),
            wait.word()
        )
    }

    fn stages(&self, text: &mut String) {
        let names = ["planner", "ik", "ethercat", "drives"];
        for (at, name) in names.into_iter().enumerate() {
            let domain = self.domain(name);
            let leads = if at == 0 { ", leads: true" } else { "" };
            let (next, delay) = match names.get(at + 1) {
                Some(next) => (*next, ""),
                None => (names[0], ", delay: 1"),
            };
            let link = self.options(name, next, "queue");
            let to = format!("name: {next}, port: in{delay}{link}");
            *text += &format!(
                "  - {{kind: lab_stage, name: {name}, domain: {domain}{leads}, \
                 ports: {{out: [{{{to}}}]}}}}\n"
            );
        }
    }
}

/// The options that links between threads may have in a layout.
fn crossings(placement: Layout) -> Vec<Option<Crossing>> {
    if placement == Layout::Fused {
        return vec![None];
    }
    let mut crossings = Vec::new();
    for &(transport, _) in Transport::ALL {
        let syncs: &[Option<Sync>] = match transport {
            Transport::InProcess if placement.is_processes() => &[],
            // A carve-out leads to a guest, and there is none here.
            Transport::CarveOut => &[],
            Transport::InProcess | Transport::SharedMemory => {
                &[Some(Sync::LockFree), Some(Sync::Mutex)]
            }
            Transport::Pipe | Transport::Unix | Transport::Tcp => &[None],
        };
        for &sync in syncs {
            let crossing = |&(wait, _): &(Wait, _)| Some(Crossing { transport, sync, wait });
            crossings.extend(Wait::ALL.iter().map(crossing));
        }
    }
    crossings
}

#[cfg(test)]
mod tests {
    use sinew_runtime::Kinds;

    use super::*;
    use crate::graph::compiled;
    use crate::scenario::table;
    use sinew_spec::plan::Release;

    #[test]
    fn every_row_compiles_to_what_its_axes_say() {
        let kinds = table(&Kinds::default()).catalogue();
        let all = Setup::all();
        assert_eq!(all.len(), 2 * 5 * (1 + 2 * 28 + 2 * 20));
        for setup in all {
            let text = setup.text();
            let graph = compiled("row", text.clone(), vec![], &kinds, &[0, 1, 2, 3]);
            let plan = graph.unwrap_or_else(|why| panic!("{setup:?}: {why}\n{text}")).plan;
            assert!(plan.notes.is_empty(), "{:?}\n{text}", plan.notes);
            let threads: Vec<_> = plan.domains.iter().flat_map(|domain| domain.threads()).collect();
            assert_eq!(threads.len(), setup.placement.threads());
            let by_timer = threads.iter().filter(|thread| thread.release == Release::Timer);
            assert_eq!(by_timer.count(), 1, "{text}");
            assert_eq!(plan.domains.len() > 1, setup.placement.is_processes());
            let crossing: Vec<_> = plan.links.iter().filter(|link| !link.fused).collect();
            assert_eq!(crossing.is_empty(), setup.crossing.is_none());
            for link in crossing {
                let expected = setup.crossing.expect("a link crosses");
                assert_eq!((link.transport, link.wait), (expected.transport, expected.wait));
                assert_eq!(link.sync, expected.sync.unwrap_or(Sync::LockFree));
            }
        }
    }

    #[test]
    fn more_spinning_threads_than_cpus_are_no_row() {
        let setup = |placement, wait| {
            let crossing =
                Crossing { transport: Transport::SharedMemory, sync: Some(Sync::LockFree), wait };
            Setup { work: Work::None, placement, crossing: Some(crossing), period: Period::Ms1 }
        };
        let four = setup(Layout::FourThreads, Wait::Spin);
        let why = four.obstacle(2).expect("two are too few");
        assert!(why.starts_with("4 threads would spin on 2 CPUs"), "{why}");
        assert_eq!(four.obstacle(4), None);
        assert_eq!(setup(Layout::FourThreads, Wait::Yield).obstacle(1), None);
        let why = setup(Layout::TwoThreads, Wait::Spin).obstacle(1).expect("one is too few");
        assert!(why.starts_with("2 threads would spin on 1 CPU,"), "{why}");
    }
}
