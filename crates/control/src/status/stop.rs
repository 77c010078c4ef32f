//! How long a stop of the core took.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A stop of the core. Times are relative to `asked_ns`; earlier ones are negative.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopStatus {
    /// Who or what stopped it, in words.
    pub reason: String,
    /// When the supervisor was asked, or learned of the fault; monotonic ns.
    pub asked_ns: u64,
    /// When the outputs of all domains with actuators were safe.
    pub safe_output_us: Option<i64>,
    /// When everything that moves was at rest.
    pub at_rest_us: Option<i64>,
    /// Each realtime domain that holds actuators. Empty if there was nothing to make safe.
    #[serde(default)]
    pub domains: Vec<DomainStop>,
}

/// A domain that holds actuators, in a stop. Times as in [`StopStatus`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainStop {
    /// Its name.
    pub domain: String,
    /// When its outputs were safe. From then on the node that commands them sent nothing but a
    /// stop, or they had their safe values for lack of a command. `None` if nobody saw that.
    pub safe_output_us: Option<i64>,
    /// When all its nodes were at rest, with safe values. `None` if nobody saw that.
    pub at_rest_us: Option<i64>,
}

impl fmt::Display for StopStatus {
    /// `halt, by process 7; safe outputs after 1.234 ms, at rest after 43.210 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reason, self.times())
    }
}

impl StopStatus {
    /// `safe outputs after 1.234 ms, at rest after 43.210 ms`.
    pub fn times(&self) -> String {
        let all = times(self.safe_output_us, self.at_rest_us);
        let of =
            |it: &DomainStop| format!("{}: {}", it.domain, times(it.safe_output_us, it.at_rest_us));
        match self.domains.as_slice() {
            [] => "no actuator to make safe".into(),
            [_] => all,
            each => format!("{all} ({})", each.iter().map(of).collect::<Vec<_>>().join("; ")),
        }
    }
}

fn times(safe_output_us: Option<i64>, at_rest_us: Option<i64>) -> String {
    format!("safe outputs {}, at rest {}", when(safe_output_us), when(at_rest_us))
}

fn when(us: Option<i64>) -> String {
    let Some(us) = us else { return "not seen".into() };
    let (ms, rest) = (us.unsigned_abs() / 1000, us.unsigned_abs() % 1000);
    match us {
        0.. => format!("after {ms}.{rest:03} ms"),
        _ => format!("already {ms}.{rest:03} ms before"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(times: &[(Option<i64>, Option<i64>)]) -> StopStatus {
        let domain = |&(safe_output_us, at_rest_us): &(Option<i64>, Option<i64>)| DomainStop {
            domain: "plant".into(),
            safe_output_us,
            at_rest_us,
        };
        let (safe_output_us, at_rest_us) = times.first().copied().unwrap_or_default();
        let domains = times.iter().map(domain).collect();
        StopStatus { reason: "why".into(), asked_ns: 7, safe_output_us, at_rest_us, domains }
    }

    #[test]
    fn a_stop_says_when_outputs_were_safe_or_that_there_are_none() {
        assert_eq!(stop(&[]).to_string(), "why; no actuator to make safe");
        let early = stop(&[(Some(-1_947_300), Some(4))]);
        assert_eq!(
            early.times(),
            "safe outputs already 1947.300 ms before, at rest after 0.004 ms"
        );
        let two = stop(&[(None, None), (Some(0), None)]);
        assert_eq!(
            two.times(),
            "safe outputs not seen, at rest not seen (plant: safe outputs not seen, at rest not \
             seen; plant: safe outputs after 0.000 ms, at rest not seen)"
        );
    }
}
