//! The parameters by which a source limits the time and the work of its flows.

use sinew_core::Parameters;
use sinew_core::catalogue::{Parameter, ParameterType};
use sinew_flow::FlowLimits;

/// Most work that a spec may allow a flow: about a day of one processor.
const WORK_MAX_MAX: i64 = 1_000_000_000_000;

/// The parameter of every source, beside its `deadline`.
pub(crate) const WORK_MAX: Parameter = Parameter::new(
    "work_max",
    ParameterType::Integer { min: 1000, max: WORK_MAX_MAX },
)
.or("5000000")
.doc(
    "Most work of a flow and of the children that it forks: expressions, templates, scripts, \
     decoding. A unit takes 100 ns at most; past it the flow fails with 503.",
);

/// The limits that `deadline` and `work_max` set.
pub(crate) fn limits(parameters: &Parameters<'_>) -> FlowLimits {
    let work = parameters.integer(WORK_MAX.name).unsigned_abs();
    FlowLimits { deadline: parameters.duration("deadline"), work }
}

#[cfg(test)]
mod tests;
