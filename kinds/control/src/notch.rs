//! Kind `notch`: takes out one frequency, such as that at which a machine swings.

use std::f64::consts::PI;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Unit};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters, Real, fault};

use crate::sections::{BiquadSection, INITIAL, SectionChain, TURN_MAX, angle_of};

const IN: usize = 0;
const OUT: usize = 1;

/// This depth, dB, means that the frequency is taken out completely.
const COMPLETE_DB: f64 = 200.0;

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "notch",
    runs_in: RunsIn::Realtime,
    doc: "Takes out one frequency and leaves what is slower and faster: S. J. Orfanidis, \
          Introduction to Signal Processing, 1996, 8.2 and 11.3; as scipy.signal.iirnotch makes \
          it. Complete, it passes 1/sqrt(2), 3 dB less, at both ends of a band whose width is \
          frequency_hz / q, and nothing in its middle. A constant passes as it is. It takes one \
          step in every cycle, with the newest value, whether or not periods were lost. Before the \
          first value it writes nothing. 'frequency_hz' and the width of the band must be below \
          half of the cycles per second, 'frequency_hz' no lower than 1e-5 of them. All three \
          numbers may be set while it runs; a constant goes on passing as it is.",
    ports: &[
        Port::input("in", "What to filter.", Real::TYPE),
        Port::output("out", "The same without it.", Real::TYPE).unit(Unit::As("in")),
    ],
    parameters: &[
        Parameter::new("frequency_hz", ParameterType::Number { min: 1e-6, max: 1e6 })
            .such_as("50")
            .unit("Hz")
            .doc("The frequency that is taken out.")
            .tunable(),
        Parameter::new("q", ParameterType::Number { min: 0.1, max: 1000.0 })
            .or("2")
            .doc("How much narrower than 'frequency_hz' the band is.")
            .tunable(),
        Parameter::new("depth_db", ParameterType::Number { min: 0.1, max: COMPLETE_DB })
            .or("200")
            .unit("dB")
            .doc(
                "How much less passes in the middle; 200 is all of it. A lesser depth mixes what \
                 the complete notch takes out in again, so the band stays.",
            )
            .tunable(),
        INITIAL,
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let (band, taken) = band_and_taken(parameters)?;
    Ok(Box::new(Notch { band: SectionChain::new(parameters, (band, None)), taken }))
}

fn band_and_taken(parameters: &Parameters<'_>) -> Result<(BiquadSection, f64), Fault> {
    let angle = angle_of(parameters, "frequency_hz", TURN_MAX)?;
    let (frequency_hz, q) = (parameters.number("frequency_hz"), parameters.number("q"));
    let half_hz = 0.5e9 / parameters.period_ns as f64;
    if frequency_hz / q >= half_hz {
        return Err(fault!(
            "frequency_hz {frequency_hz} and q {q} make a band of {} Hz, and it must be below \
             half of the cycles per second, {half_hz}; raise q or shorten the period",
            frequency_hz / q
        ));
    }
    let beta = (angle / q / 2.0).min(PI / 2.0).tan();
    let band = BiquadSection::new([beta, 0.0, -beta], [1.0 + beta, -2.0 * angle.cos(), 1.0 - beta]);
    let depth_db = parameters.number("depth_db");
    let left = if depth_db < COMPLETE_DB { 10f64.powf(-depth_db / 20.0) } else { 0.0 };
    Ok((band, 1.0 - left))
}

struct Notch {
    /// Passes the band that is to be taken out. For a constant input its output is exactly zero,
    /// without rounding.
    band: SectionChain,
    /// How much of the band is taken out.
    taken: f64,
}

impl Node for Notch {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        if let Some((value, band)) = self.band.answer(io, IN) {
            io.write::<Real>(OUT).value = value - self.taken * band;
        }
        Ok(())
    }

    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        let (band, taken) = band_and_taken(parameters)?;
        self.band.tune((band, None));
        self.taken = taken;
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

    fn notch(given: &[(&str, &str)]) -> sinew_core::NodeFixture {
        fixture(&NODE, given).expect("makes")
    }

    #[test]
    fn it_answers_as_scipy_does() {
        let values = walk(2000);
        let mut cases = vec![];
        for (frequency_hz, q, depth_db) in
            [(50.0, 2.0, 200.0), (1.0, 30.0, 200.0), (400.0, 0.9, 200.0), (50.0, 2.0, 12.0)]
        {
            for initial in ["first", "zero"] {
                let [frequency, quality, depth] =
                    [frequency_hz, q, depth_db].map(|it: f64| it.to_string());
                let given = [
                    ("frequency_hz", &*frequency),
                    ("q", &*quality),
                    ("depth_db", &*depth),
                    ("initial", initial),
                ];
                let ours = answers(&mut notch(&given), &values);
                let left = if depth_db < 200.0 { 10f64.powf(-depth_db / 20.0) } else { 0.0 };
                let with = json!({"frequency_hz": frequency_hz, "q": q, "left": left,
                                  "initial": initial, "values": values});
                cases.push((with, ours));
            }
        }
        hold_all("notch", &cases);
    }

    #[test]
    fn of_its_frequency_nothing_is_left_or_as_much_as_the_depth_says() {
        let sine: Vec<_> = (0..4000).map(|at| (TAU * 0.05 * f64::from(at)).sin()).collect();
        for (depth_db, expected) in [("200", 0.0), ("20", 0.1)] {
            let given = [("frequency_hz", "50"), ("depth_db", depth_db)];
            let out = answers(&mut notch(&given), &sine);
            // Number 15 of the 20 in a period of the sine is an extremum.
            assert!((out[3995].abs() - expected).abs() < 1e-9, "{depth_db} dB: {}", out[3995]);
        }
    }

    #[test]
    fn a_constant_passes_as_it_is() {
        let mut node = notch(&[("frequency_hz", "0.01"), ("q", "100")]);
        assert_eq!(answers(&mut node, &[7.3; 1000]), [7.3; 1000]);
    }

    #[test]
    fn a_band_that_this_rate_cannot_have_is_refused() {
        let refusal = |given: &[(&str, &str)]| {
            fixture(&NODE, given).err().expect("refused").text().to_owned()
        };
        assert_eq!(
            refusal(&[("frequency_hz", "400"), ("q", "0.5")]),
            "frequency_hz 400 and q 0.5 make a band of 800 Hz, and it must be below half of the \
             cycles per second, 500; raise q or shorten the period"
        );
        let high = refusal(&[("frequency_hz", "500")]);
        assert!(high.starts_with("frequency_hz is 500 and must be below half"), "{high}");
    }

    #[test]
    fn no_cycle_allocates() {
        assert_eq!(allocations(&mut notch(&[("frequency_hz", "10")])), 0);
    }
}
