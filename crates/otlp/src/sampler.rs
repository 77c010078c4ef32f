//! Which traces are recorded: the samplers that the specification of OpenTelemetry names.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};

use fastrand::Rng;

use crate::SpanContext;

/// One more than the greatest number by which a trace is judged: its last 64 bits without the very
/// last.
const ALL: u64 = 1 << 63;

/// Decides whether the spans of a trace are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// Traces with a number below this are recorded.
    below: u64,
    /// Whether the service that began the trace decides, if it was another one.
    follows: bool,
}

thread_local! {
    /// The source of the numbers of traces and spans. Its seed comes from the system, so no two
    /// processes make the same numbers.
    static CHANCE: RefCell<Rng> = RefCell::new(Rng::with_seed(RandomState::new().hash_one(0)));
}

impl Sampler {
    /// The sampler with this name, and its argument.
    ///
    /// # Errors
    /// There is no sampler of that name, or its argument is not between 0 and 1.
    pub(crate) fn parse(name: &str, argument: Option<&str>) -> Result<Sampler, String> {
        let (follows, root) = match name.strip_prefix("parentbased_") {
            Some(root) => (true, root),
            None => (false, name),
        };
        let below = match root {
            "always_on" => ALL,
            "always_off" => 0,
            "traceidratio" => below(argument)?,
            _ => {
                return Err(format!(
                    "OTEL_TRACES_SAMPLER: there is no sampler '{name}' here; name always_on, \
                     always_off or traceidratio, each also with parentbased_ before it"
                ));
            }
        };
        Ok(Sampler { below, follows })
    }

    /// Begins a trace. Returns its number if its spans are recorded.
    pub fn begin(self) -> Option<u128> {
        CHANCE.with_borrow_mut(|chance| {
            // Most traces are not recorded, and need no further part of the number.
            let low = u128::from(chance.u64(..));
            self.takes(low).then(|| u128::from(chance.u64(1..)) << 64 | low)
        })
    }

    /// Whether to record the spans of a trace that another service has begun.
    pub fn follow(self, parent: &SpanContext) -> bool {
        if self.follows { parent.is_sampled } else { self.takes(parent.trace) }
    }

    /// Begins a trace that is not recorded. Its number is sent to other services.
    pub fn begin_unmade(self) -> u128 {
        CHANCE.with_borrow_mut(|chance| {
            let low = chance.u64(self.below.min(ALL - 1)..ALL) << 1 | chance.u64(..2);
            u128::from(chance.u64(1..)) << 64 | u128::from(low)
        })
    }

    /// As in all implementations, so that services that see the same trace agree.
    fn takes(self, trace: u128) -> bool {
        (trace as u64) >> 1 < self.below
    }
}

/// The number of a new span.
pub fn new_span() -> u64 {
    CHANCE.with_borrow_mut(|chance| chance.u64(1..))
}

fn below(part: Option<&str>) -> Result<u64, String> {
    let Some(text) = part else { return Ok(ALL) };
    match text.trim().parse::<f64>() {
        Ok(1.0) => Ok(ALL),
        Ok(part) if (0.0..1.0).contains(&part) => Ok((part * ALL as f64) as u64),
        _ => Err(format!(
            "OTEL_TRACES_SAMPLER_ARG: '{text}' is not a number from 0 to 1; write one such as 0.01"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(name: &str, argument: Option<&str>) -> Sampler {
        Sampler::parse(name, argument).expect(name)
    }

    fn parent(is_sampled: bool) -> SpanContext {
        SpanContext { trace: u128::MAX, span: 1, is_sampled, state: None }
    }

    #[test]
    fn a_sampler_decides_as_its_name_says() {
        for (name, begins, of_made, of_unmade) in [
            ("always_on", true, true, true),
            ("always_off", false, false, false),
            ("parentbased_always_on", true, true, false),
            ("parentbased_always_off", false, true, false),
        ] {
            let sampler = sampler(name, None);
            assert_eq!(sampler.begin().is_some(), begins, "{name}");
            assert_eq!(sampler.follow(&parent(true)), of_made, "{name}");
            assert_eq!(sampler.follow(&parent(false)), of_unmade, "{name}");
        }
        assert!(!sampler("traceidratio", Some("0.5")).follow(&parent(true)), "by its number");
        assert!(sampler("parentbased_traceidratio", Some("0")).follow(&parent(true)));
    }

    #[test]
    fn a_part_of_all_traces_is_made_and_others_agree_by_the_number() {
        let tenth = sampler("traceidratio", Some("0.1"));
        let made = (0..100_000).filter(|_| tenth.begin().is_some()).count();
        assert!((9_000..11_000).contains(&made), "{made}");
        let context = |trace| SpanContext { trace, ..parent(true) };
        for _ in 0..1000 {
            assert!(!tenth.follow(&context(tenth.begin_unmade())));
        }
        let half = sampler("traceidratio", Some("0.5"));
        // The last eight bytes, without their last bit, as other implementations read it.
        assert!(half.follow(&context(1 << 64 | u128::from(ALL - 1))));
        assert!(!half.follow(&context(1 << 64 | u128::from(ALL))));
    }

    #[test]
    fn what_is_no_sampler_is_told() {
        for (name, argument, part) in [
            ("sometimes", None, "there is no sampler 'sometimes'"),
            ("jaeger_remote", None, "there is no sampler 'jaeger_remote'"),
            ("traceidratio", Some("1.1"), "'1.1' is not a number from 0 to 1"),
            ("traceidratio", Some("-0.1"), "'-0.1' is not a number from 0 to 1"),
            ("traceidratio", Some("NaN"), "'NaN' is not a number from 0 to 1"),
            ("parentbased_traceidratio", Some("much"), "'much' is not a number from 0 to 1"),
        ] {
            let error = Sampler::parse(name, argument).expect_err(name);
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(sampler("traceidratio", Some("1")), sampler("always_on", None));
        assert_eq!(sampler("traceidratio", None), sampler("always_on", None));
    }
}
