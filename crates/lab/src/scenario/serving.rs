//! A graph with a server, run as by `sinew run`, for as long as `work` sends it requests.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use sinew_runtime::run::{Outcome, Run, RunRequest};

/// Longest sleep of the supervisor.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// A server that does not listen within this time never will.
pub(super) const LISTENS_WITHIN: Duration = Duration::from_secs(10);

/// A server that answers.
pub(super) struct Serving {
    pub(super) address: SocketAddr,
    /// Its process.
    pub(super) process: u32,
}

/// Runs a graph, whose first domain listens at this address, while `work` runs on a thread of its
/// own. Meanwhile `look` is called with the run again and again.
pub(super) fn serve_graph<T: Send>(
    graph: RunRequest,
    address: SocketAddr,
    look: &mut dyn FnMut(&Run),
    work: impl FnOnce(&Serving) -> Result<T, String> + Send,
) -> Result<T, String> {
    let mut run = Run::start(graph).map_err(|error| format!("cannot be started: {error}"))?;
    let begun = Instant::now();
    let poll = |run: &mut Run| run.poll(LOOK, &mut |_, _| ());
    while TcpStream::connect(address).is_err() {
        if !poll(&mut run) || begun.elapsed() > LISTENS_WITHIN {
            return Err(format!("does not listen on {address}: {}", last_words(&run)));
        }
    }
    let process = run.status().domains[0].pid.ok_or("it has no process")?;
    let worked = thread::scope(|scope| {
        let work = scope.spawn(|| work(&Serving { address, process }));
        while !work.is_finished() && poll(&mut run) {
            look(&run);
        }
        work.join().unwrap_or_else(|_| Err("the load panicked".into()))
    });
    run.stop();
    while poll(&mut run) {}
    match run.outcome() {
        Outcome::Faulted => Err(format!("the graph faulted: {}", last_words(&run))),
        _ => worked,
    }
}

/// The faults of a run that has ended, or its last event.
pub(super) fn last_words(run: &Run) -> String {
    let faults: Vec<_> = run.faults().iter().map(|(_, at)| at.fault.to_string()).collect();
    if !faults.is_empty() {
        return faults.join("; ");
    }
    run.events().after(0).last().map_or("no reason known".into(), |event| event.text.clone())
}

/// An address of this machine that is free at this moment.
pub(super) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}
