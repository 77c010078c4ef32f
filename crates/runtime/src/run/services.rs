//! The services of a run: each is supervised on its own, and they start and stop one after the
//! other.

mod hearts;
mod life;
mod restarts;
mod supervised;

use std::io;

use sinew_spec::plan::Plan;

pub(super) use self::supervised::Supervised;
use crate::confine::Confinement;

/// The service domains of the plan, its last ones, not started yet; each with its bounds, which are
/// the last ones of all bounds.
pub(super) fn of(
    bounds: &mut dyn Iterator<Item = Confinement>,
    plan: &Plan,
) -> io::Result<Vec<Supervised>> {
    let domains = plan.domains.iter().enumerate();
    let planned = domains.filter_map(|(at, domain)| Some((at, domain.service()?)));
    let services = planned.zip(bounds);
    services.map(|((at, policy), bounds)| Supervised::new(at, policy, bounds, plan)).collect()
}
