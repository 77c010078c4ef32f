//! Kind `lowpass`: passes what is slow and holds back what is fast.

use std::f64::consts::PI;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Unit};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters, Real};

use crate::sections::{
    BiquadSection, INITIAL, SectionChain, Sections, TURN_MAX, TURN_MAX_OF_FIRST_ORDER, angle_of,
};

const IN: usize = 0;
const OUT: usize = 1;

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "lowpass",
    runs_in: RunsIn::Realtime,
    doc: "A Butterworth low-pass (S. Butterworth, On the Theory of Filter Amplifiers, 1930), made \
          discrete by the bilinear transform so that at 'cutoff_hz' it passes 1/sqrt(2), 3 dB \
          less, exactly; as scipy.signal.butter makes it. A constant passes as it is. It takes one \
          step in every cycle, with the newest value, whether or not periods were lost. Before the \
          first value it writes nothing. 'cutoff_hz' must be below half of the cycles per second, \
          and no lower than 1e-5 of them, with 'order: 1' 1e-9. It may be set while it runs: the \
          answer goes on from where it is.",
    ports: &[
        Port::input("in", "What to smooth.", Real::TYPE),
        Port::output("out", "The smoothed value.", Real::TYPE).unit(Unit::As("in")),
    ],
    parameters: &[
        Parameter::new("cutoff_hz", ParameterType::Number { min: 1e-6, max: 1e6 })
            .such_as("20")
            .unit("Hz")
            .doc("Of all that is faster, less than 1/sqrt(2) passes.")
            .tunable(),
        Parameter::new("order", ParameterType::Integer { min: 1, max: 4 }).or("2").doc(
            "At ten times the cutoff 20 dB less passes for each order; a higher order delays more.",
        ),
        INITIAL,
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let chain = SectionChain::new(parameters, sections(parameters)?);
    Ok(Box::new(Lowpass { chain }))
}

fn sections(parameters: &Parameters<'_>) -> Result<Sections, Fault> {
    let order = parameters.integer("order");
    let turn_max = if order == 1 { TURN_MAX_OF_FIRST_ORDER } else { TURN_MAX };
    let angle = angle_of(parameters, "cutoff_hz", turn_max)?;
    // Pairs of poles on a circle, at this angle to the real axis: q is 1 / (2 cos).
    let pair = |apart: f64| BiquadSection::lowpass(angle, 0.5 / apart.cos());
    let one = || BiquadSection::lowpass_of_first_order(angle);
    Ok(match order {
        1 => (one(), None),
        2 => (pair(PI / 4.0), None),
        3 => (one(), Some(pair(PI / 3.0))),
        _ => (pair(PI / 8.0), Some(pair(3.0 * PI / 8.0))),
    })
}

struct Lowpass {
    chain: SectionChain,
}

impl Node for Lowpass {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        if let Some((_, answer)) = self.chain.answer(io, IN) {
            io.write::<Real>(OUT).value = answer;
        }
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        self.chain.tune(sections(parameters)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use serde_json::json;

    use super::*;
    use crate::filter_testing::{allocations, answers, hold_all, walk};
    use crate::testing::fixture;

    fn refusal(cutoff_hz: &str) -> String {
        let made = fixture(&NODE, &[("cutoff_hz", cutoff_hz)]);
        made.err().expect("refused").text().to_owned()
    }

    #[test]
    fn it_answers_as_scipy_does() {
        let values = walk(2000);
        let mut cases = vec![];
        for (order, cutoff_hz) in
            [(1, 0.01), (1, 40.0), (2, 3.0), (2, 499.0), (3, 120.0), (4, 55.0)]
        {
            for initial in ["first", "zero"] {
                let given = [
                    ("order", &*order.to_string()),
                    ("cutoff_hz", &*cutoff_hz.to_string()),
                    ("initial", initial),
                ];
                let ours = answers(&mut fixture(&NODE, &given).expect("makes"), &values);
                let with = json!({"order": order, "cutoff_hz": cutoff_hz, "initial": initial,
                                  "values": values});
                cases.push((with, ours));
            }
        }
        hold_all("butterworth", &cases);
    }

    #[test]
    fn a_sine_passes_as_the_frequency_response_says() {
        let mut cases = vec![];
        for (order, cutoff_hz, frequency_hz) in [(1, 50.0, 50.0), (2, 20.0, 50.0), (4, 80.0, 100.0)]
        {
            let angle = |at: usize| TAU * frequency_hz * at as f64 / 1000.0;
            let sine: Vec<_> = (0..5000).map(|at| angle(at).sin()).collect();
            let given = [("order", &*order.to_string()), ("cutoff_hz", &*cutoff_hz.to_string())];
            let out = answers(&mut fixture(&NODE, &given).expect("makes"), &sine);
            // The last thousand cycles are whole periods of the sine, long after the beginning.
            let part = |turn: fn(f64) -> f64| -> f64 {
                (4000..5000).map(|at| out[at] * turn(angle(at)) / 500.0).sum()
            };
            let ours = [part(f64::sin), part(f64::cos)];
            let with = json!({"order": order, "cutoff_hz": cutoff_hz,
                              "frequency_hz": frequency_hz});
            cases.push((with, ours.to_vec()));
        }
        hold_all("butterworth_response", &cases);
    }

    #[test]
    fn a_constant_passes_as_it_is_from_the_first_cycle_on() {
        for (cutoff_hz, order, most) in [
            ("0.01", "4", 1e-6),
            ("0.5", "4", 1e-9),
            ("499.99", "4", 1e-9),
            ("0.000001", "1", 1e-6),
        ] {
            let given = [("cutoff_hz", cutoff_hz), ("order", order)];
            let mut node = fixture(&NODE, &given).expect("makes");
            for answer in answers(&mut node, &[7.3; 5000]) {
                assert!((answer - 7.3).abs() < most, "{cutoff_hz} Hz: {answer}");
            }
        }
    }

    #[test]
    fn before_the_first_value_it_says_nothing() {
        let mut node = fixture(&NODE, &[("cutoff_hz", "10")]).expect("makes");
        node.update().expect("goes on");
        assert_eq!(node.get::<Real>(OUT), None);
        assert!((answers(&mut node, &[2.0])[0] - 2.0).abs() < 1e-15);
        node.update().expect("goes on with the old value");
        assert!(node.get::<Real>(OUT).is_some());
    }

    #[test]
    fn what_dies_away_ends_at_zero() {
        let mut node = fixture(&NODE, &[("cutoff_hz", "100"), ("order", "4")]).expect("makes");
        let mut values = vec![0.0; 20_000];
        values[0] = 1.0;
        assert_eq!(answers(&mut node, &values)[19_999], 0.0);
    }

    #[test]
    fn a_corner_that_this_rate_cannot_have_is_refused() {
        assert_eq!(
            refusal("500"),
            "cutoff_hz is 500 and must be below half of the 1000 cycles per second; lower it to \
             499.99 or shorten the period"
        );
        assert_eq!(
            refusal("0.001"),
            "cutoff_hz is 0.001, too low for 1000 cycles per second to be exact; raise it to \
             0.01 or lengthen the period"
        );
    }

    #[test]
    fn no_cycle_allocates() {
        let mut node = fixture(&NODE, &[("cutoff_hz", "10")]).expect("makes");
        assert_eq!(allocations(&mut node), 0);
    }
}
