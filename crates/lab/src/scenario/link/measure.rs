//! Measures one link: opens it, starts its far side on the other CPU, and times it from the near
//! side.

use std::os::fd::OwnedFd;

use super::case::Case;
use super::ends::{Carriers, Ends};
use crate::harness::process::{FarSide, Process};
use crate::harness::{Cpus, Gone, Life, Placement, What, answer, on_thread, on_threads, stop};

/// The far side of a link in a process of its own.
pub(crate) const PART: FarSide = FarSide { name: "link", run: far };

/// Opens the links of `case`, and gives the near side to `time`; the far side answers.
pub(in crate::scenario) fn with_link<T: Send>(
    case: &Case,
    what: What,
    cpus: Cpus,
    time: impl FnOnce(&mut Ends) -> Result<T, Gone> + Send,
) -> Result<T, Gone> {
    let shape = case.shape(what);
    let opened = Carriers::open(case, &shape);
    let (near, far) = opened.map_err(|error| Gone(format!("cannot open the link: {error}")))?;
    let near = |life: &Life| {
        let mut ends = Ends::attach(case, &shape, near, life)?;
        let found = time(&mut ends)?;
        stop(&mut ends)?;
        Ok(found)
    };
    match case.placement {
        Placement::Threads => {
            on_threads(cpus, near, |life| answer(&mut Ends::attach(case, &shape, far, life)?))
        }
        Placement::Processes => on_thread(cpus.near, move || {
            let descriptors = far.descriptors();
            let descriptors = descriptors.ok_or_else(|| Gone("it cannot leave here".into()))?;
            let words = format!("{} {}", what.word(), case.row().id());
            let process = Process::start(PART.name, &words, &descriptors, cpus.far)?;
            drop(far);
            let found = near(process.life());
            process.join(found)
        }),
    }
}

fn far(words: &str, descriptors: Vec<OwnedFd>) -> Result<(), Gone> {
    let parsed = words
        .split_once(' ')
        .and_then(|(what, case)| Some((what.parse().ok()?, Case::parse(case)?)));
    let (what, case): (What, Case) =
        parsed.ok_or_else(|| Gone(format!("'{words}' is not a link")))?;
    let carriers = Carriers::adopt(&case, descriptors)?;
    answer(&mut Ends::attach(&case, &case.shape(what), carriers, &Life::Parent)?)
}

#[cfg(test)]
mod tests;
