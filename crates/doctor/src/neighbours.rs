//! Other runs of this user that have realtime threads on the same CPUs. They are looked for once,
//! when the graph starts, by a separate thread, because a run that hangs answers late.

use std::process;
use std::thread::{self, JoinHandle};

use sinew_control::client::{Connection, FoundRun, runs};
use sinew_control::status::Status;
use sinew_control::{Answer, Request};
use sinew_spec::plan::Plan;

/// A realtime thread with a CPU of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Placed {
    domain: String,
    cpu: u32,
    priority: u8,
}

/// The search for other runs, until its result has been read.
#[derive(Debug)]
pub struct Neighbours(Option<JoinHandle<Vec<String>>>);

impl Neighbours {
    /// Begins to look for runs that share CPUs with this graph.
    pub fn seek(plan: &Plan) -> Neighbours {
        let ours = placed(plan);
        let search = move || {
            let others = runs().into_iter().filter(|run| run.pid != process::id());
            others.filter_map(|run| shared(&ours, &look(&run)?)).collect()
        };
        // A machine that has no thread left reports that elsewhere, and sooner.
        Neighbours(thread::Builder::new().name("neighbours".into()).spawn(search).ok())
    }

    /// A warning for each such run, once all runs have answered.
    pub fn warnings(&mut self) -> Vec<String> {
        let search = self.0.take_if(|search| search.is_finished());
        // The thread cannot panic; if it did, it would have found nothing.
        search.and_then(|search| search.join().ok()).unwrap_or_default()
    }
}

/// What a run looks like now; `None` if it does not answer.
fn look(run: &FoundRun) -> Option<Status> {
    match Connection::open(&run.socket).ok()?.ask(&Request::Status {}).ok()? {
        Answer::Status(status) => Some(*status),
        _ => None,
    }
}

fn placed(plan: &Plan) -> Vec<Placed> {
    let threads = plan.domains.iter().flat_map(|domain| {
        let priority = domain.realtime().map_or(0, |realtime| realtime.priority);
        let thread = move |cpu| Placed { domain: domain.name.clone(), cpu, priority };
        domain.threads().iter().filter_map(|thread| thread.cpu).map(thread)
    });
    threads.collect()
}

/// The threads of those domains of a run that have a process now.
fn placed_of(status: &Status) -> Vec<Placed> {
    let alive = status.domains.iter().filter(|domain| domain.pid.is_some());
    let threads = alive.flat_map(|domain| {
        domain.threads.iter().filter_map(|thread| {
            let (domain, priority) = (domain.name.clone(), thread.priority);
            Some(Placed { domain, cpu: thread.cpu?, priority })
        })
    });
    threads.collect()
}

/// The warning about another run; `None` if it uses other CPUs.
fn shared(ours: &[Placed], status: &Status) -> Option<String> {
    let theirs = placed_of(status);
    let pair = |our: &Placed| {
        let their = theirs.iter().find(|their| their.cpu == our.cpu)?;
        Some(format!(
            "CPU {}: '{}' of this graph at SCHED_FIFO {}, '{}' of that run at {}",
            our.cpu, our.domain, our.priority, their.domain, their.priority
        ))
    };
    let pairs: Vec<_> = ours.iter().filter_map(pair).collect();
    let (graph, pid) = (&status.graph, status.pid);
    (!pairs.is_empty()).then(|| {
        format!(
            "run '{graph}' (process {pid}) has realtime threads on the same CPUs, and the \
             two delay each other ({}); give this graph other CPUs ('threads: [{{cpu: ...}}]'), or \
             'sinew stop {pid}'",
            pairs.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use sinew_control::status::{DomainRole, DomainStatus, ThreadStatus};
    use sinew_report::fixture;
    use sinew_report::fixture::status::{domain, status, thread};

    use super::*;

    fn run(pid: Option<u32>, cpu: u32) -> Status {
        let threads = vec![ThreadStatus { priority: 70, ..thread(cpu) }];
        let axes = DomainStatus { pid, threads, ..domain("axes", DomainRole::Realtime) };
        Status { graph: "mill".into(), ..status(vec![axes]) }
    }

    #[test]
    fn a_run_on_the_same_cpu_is_named_with_the_cpu_and_what_to_change() {
        let ours = placed(&fixture::plan());
        let text = shared(&ours, &run(Some(7), 1)).expect("a warning");
        let pair = "CPU 1: 'control' of this graph at SCHED_FIFO 80, 'axes' of that run at 70";
        for word in ["'mill' (process 4711)", pair] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert_eq!(shared(&ours, &run(Some(7), 3)), None, "it stands elsewhere");
        assert_eq!(shared(&ours, &run(None, 1)), None, "its core is held");
    }
}
