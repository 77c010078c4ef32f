//! Serves the requests of Linux: to the registry, about nodes, and for jobs.

use sinew_carve_out::{AgentLetter, Ask, NODES_MAX, Name, SharedRefusal};
use sinew_link::Memory;

use crate::{agent, board, guest, jobs, shared};

/// Most requests that are answered in one look. The others wait for the next look.
const REQUESTS_MAX: usize = 8;

/// Answers the requests of Linux, and hands it the tokens for which it waits.
pub(crate) fn look() {
    let mut is_told = false;
    for _ in 0..REQUESTS_MAX {
        let Some(letter) = shared::with(|desk| desk.asked()) else { break };
        let answer = shared::with(|desk| desk.registry.answer(&letter));
        // The answer of a job comes later.
        if let Some(answer) = answer.or_else(|| own(&letter)) {
            shared::with(|desk| desk.answer(&answer));
        }
        is_told = true;
    }
    let given = shared::with(|desk| {
        desk.sort();
        desk.registry.serve_semaphores()
    });
    if is_told || given > 0 {
        board::ring(0);
    }
}

/// The answer to a request that is not for the registry.
fn own(letter: &AgentLetter) -> Option<AgentLetter> {
    let at = letter.numbers[0] as usize;
    Some(match Ask::of(letter.what) {
        Some(Ask::Where) => {
            let physical = board::carve_out_at();
            let size = guest::get().map_or(0, |guest| guest.carve_out.memory().len());
            letter.done().numbered([
                board::CARVE_OUT as u32,
                physical as u32,
                (physical >> 32) as u32,
                size as u32,
                agent::bells_heard(),
            ])
        }
        Some(Ask::Nodes) => match node(at) {
            Some((name, cycles)) => {
                let numbers = [agent::node_state(at), cycles, 0, 0, 0];
                letter.done().numbered(numbers).named(name)
            }
            None => letter.refused(SharedRefusal::NoNode),
        },
        Some(Ask::StopNode) => {
            let is_it = |at: &usize| node(*at).is_some_and(|(name, _)| name == letter.name);
            match (0..NODES_MAX).find(is_it) {
                Some(at) => {
                    agent::stop_node(at);
                    letter.done()
                }
                None => letter.refused(SharedRefusal::NoNode),
            }
        }
        Some(Ask::Jobs) => match jobs::at(at) {
            Some((name, doc)) => {
                let name = Name::new(name).unwrap_or(letter.name);
                letter.done().named(name).with(doc.as_bytes())
            }
            None => letter.refused(SharedRefusal::NoJob),
        },
        Some(Ask::Call) => match jobs::call(letter) {
            Ok(()) => return None,
            Err(why) => letter.refused(why),
        },
        _ => letter.refused(SharedRefusal::BadRequest),
    })
}

/// The name and the cycles of the node at this index that runs.
fn node(at: usize) -> Option<(Name, u32)> {
    let guest = guest::get().filter(|_| at < agent::node_count())?;
    Some((guest.carve_out.node(at)?.name, guest.carve_out.tally(at).cycles))
}
