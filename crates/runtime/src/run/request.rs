//! What is to be run, and how that ended.

use std::fmt;

use sinew_control::Spec;
use sinew_core::board::THREADS_MAX;
use sinew_core::pace::Pace;
use sinew_spec::plan::Plan;

use crate::inject::Injection;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The spec.
    pub spec: Spec,
    /// The plan that was made of it.
    pub plan: Plan,
    /// Whether a refused privilege is a fault.
    pub strict: bool,
    /// How fast the run goes.
    pub pace: Pace,
    /// Faults that are to happen, for drills.
    pub injections: Vec<Injection>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A node said that the job is done.
    Finished,
    /// Somebody asked to stop.
    Stopped,
    /// Something went wrong.
    Faulted,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Finished => "finished",
            Outcome::Stopped => "stopped",
            Outcome::Faulted => "faulted",
        })
    }
}

impl RunRequest {
    /// A run as it is planned: without a fault on purpose, and a privilege may be refused.
    pub fn new(spec: Spec, plan: Plan) -> RunRequest {
        let (strict, pace, injections) = (false, Pace::AsPlanned, Vec::new());
        let plan = Plan { observe: spec.observe, ..plan };
        RunRequest { spec, plan, strict, pace, injections }
    }

    /// Whether this runtime can run it.
    pub(super) fn check(&self) -> Result<(), String> {
        for domain in &self.plan.domains {
            let threads = domain.threads().len();
            if threads > THREADS_MAX {
                let name = &domain.name;
                return Err(format!(
                    "domain '{name}' has {threads} threads, at most {THREADS_MAX} run"
                ));
            }
        }
        if let Pace::Free { cycles } = self.pace
            && !(1..=Pace::FREE_CYCLES_MAX).contains(&cycles)
        {
            let most = Pace::FREE_CYCLES_MAX;
            return Err(format!("a free run of {cycles} cycles: expected 1 to {most}"));
        }
        Ok(())
    }
}
