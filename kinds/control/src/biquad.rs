//! Kind `biquad`: one filter of the second order, of any shape.

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn, Unit};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters, Real, fault};

use crate::sections::{BiquadSection, INITIAL, SectionChain, Sections, TURN_MAX, angle_of};

const IN: usize = 0;
const OUT: usize = 1;

/// Count of numbers that define a filter.
const COEFFICIENTS: usize = 5;

const SHAPE: ParameterType = ParameterType::Choice(&[
    "lowpass",
    "highpass",
    "bandpass",
    "allpass",
    "peak",
    "low_shelf",
    "high_shelf",
    "coefficients",
]);

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "biquad",
    runs_in: RunsIn::Realtime,
    doc: "A filter of the second order, by the formulas of R. Bristow-Johnson's Audio EQ Cookbook \
          (W3C Note, 2021), or by its coefficients. 'lowpass' and 'highpass' pass 'q' times as \
          much at 'frequency_hz', 3 dB less with the default. 'bandpass' passes all of it at \
          'frequency_hz', over a width of some frequency_hz / q. 'allpass' turns only the phase. \
          'peak' passes 'gain_db' more there, 'low_shelf' of all that is slower, 'high_shelf' of \
          all that is faster. It takes one step in every cycle, with the newest value, whether or \
          not periods were lost. Before the first value it writes nothing. 'frequency_hz' must be \
          below half of the cycles per second, and no lower than 1e-5 of them. It, 'q' and \
          'gain_db' may be set while it runs: the answer goes on from where it is, but that \
          'low_shelf' passes a constant as the new 'gain_db' says at once.",
    ports: &[
        Port::input("in", "What to filter.", Real::TYPE),
        Port::output("out", "What passes the filter.", Real::TYPE).unit(Unit::As("in")),
    ],
    parameters: &[
        Parameter::new("shape", SHAPE).such_as("lowpass").doc("Shape of its frequency response."),
        Parameter::new("frequency_hz", ParameterType::Number { min: 0.0, max: 1e6 })
            .such_as("20")
            .or("0")
            .unit("Hz")
            .doc("Corner or middle of the shape; needed, except with 'coefficients'.")
            .tunable(),
        Parameter::new("q", ParameterType::Number { min: 0.01, max: 1000.0 })
            .or("0.7071067811865476")
            .doc("The greater, the narrower; above 1/sqrt(2) corners overshoot.")
            .tunable(),
        Parameter::new("gain_db", ParameterType::Number { min: -60.0, max: 60.0 })
            .or("0")
            .unit("dB")
            .doc("How much more a peak or a shelf passes; 20 dB are ten times as much.")
            .tunable(),
        Parameter::new(
            "coefficients",
            ParameterType::Numbers { count_min: 0, count_max: COEFFICIENTS, min: -1e6, max: 1e6 },
        )
        .or("[]")
        .doc(
            "For that shape b0, b1, b2, a1 and a2: out is b0 in + b1 in' + b2 in'' - a1 out' - \
             a2 out'', where ' is one cycle ago and '' two. Refused if it is not stable.",
        ),
        INITIAL,
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let chain = SectionChain::new(parameters, sections(parameters)?);
    Ok(Box::new(Biquad { chain }))
}

fn sections(parameters: &Parameters<'_>) -> Result<Sections, Fault> {
    let shape = parameters.text("shape");
    let coefficients = parameters.numbers("coefficients");
    let gain_db = parameters.number("gain_db");
    if gain_db != 0.0 && !["peak", "low_shelf", "high_shelf"].contains(&shape) {
        return Err(fault!(
            "gain_db is {gain_db}, which only shapes peak, low_shelf and high_shelf have, and \
             shape is {shape}; choose one of them or leave gain_db out"
        ));
    }
    let section = if shape == "coefficients" {
        given(coefficients)?
    } else if coefficients.is_empty() {
        shaped(
            shape,
            angle_of(parameters, "frequency_hz", TURN_MAX)?,
            parameters.number("q"),
            gain_db,
        )
    } else {
        return Err(fault!(
            "coefficients are given and shape is {shape}; write shape: coefficients or leave them \
             out"
        ));
    };
    Ok((section, None))
}

fn given(coefficients: &[f64]) -> Result<BiquadSection, Fault> {
    let &[b0, b1, b2, a1, a2] = coefficients else {
        return Err(fault!(
            "coefficients are {}, expected the {COEFFICIENTS} numbers b0, b1, b2, a1 and a2",
            coefficients.len()
        ));
    };
    let section = BiquadSection::new([b0, b1, b2], [1.0, a1, a2]);
    if section.is_stable() {
        return Ok(section);
    }
    Err(fault!(
        "coefficients a1 {a1} and a2 {a2} make a filter whose answers do not die away; |a2| must \
         be below 1, and |a1| below 1 + a2, {}",
        1.0 + a2
    ))
}

/// By the formulas of the cookbook, where `angle` is called w0.
fn shaped(shape: &str, angle: f64, q: f64, gain_db: f64) -> BiquadSection {
    let (sin, cos) = angle.sin_cos();
    let alpha = sin / (2.0 * q);
    let all = [1.0 + alpha, -2.0 * cos, 1.0 - alpha];
    let a = 10f64.powf(gain_db / 40.0);
    match shape {
        "lowpass" => BiquadSection::lowpass(angle, q),
        "highpass" => {
            let half = (1.0 + cos) / 2.0;
            BiquadSection::new([half, -2.0 * half, half], all)
        }
        "bandpass" => BiquadSection::new([alpha, 0.0, -alpha], all),
        "allpass" => BiquadSection::new([1.0 - alpha, -2.0 * cos, 1.0 + alpha], all),
        "peak" => BiquadSection::new(
            [1.0 + alpha * a, -2.0 * cos, 1.0 - alpha * a],
            [1.0 + alpha / a, -2.0 * cos, 1.0 - alpha / a],
        ),
        // A high shelf is a low shelf with the frequencies mirrored.
        _ => shelf(a, if shape == "low_shelf" { cos } else { -cos }, alpha, shape == "low_shelf"),
    }
}

fn shelf(a: f64, cos: f64, alpha: f64, is_low: bool) -> BiquadSection {
    let sign = if is_low { 1.0 } else { -1.0 };
    let (more, less, root) = (a + 1.0, a - 1.0, 2.0 * a.sqrt() * alpha);
    BiquadSection::new(
        [
            a * (more - less * cos + root),
            2.0 * a * (less - more * cos) * sign,
            a * (more - less * cos - root),
        ],
        [more + less * cos + root, -2.0 * (less + more * cos) * sign, more + less * cos - root],
    )
}

struct Biquad {
    chain: SectionChain,
}

impl Node for Biquad {
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
    use serde_json::json;

    use super::*;
    use crate::filter_testing::{allocations, answers, hold_all, walk};
    use crate::testing::fixture;

    fn refusal(given: &[(&str, &str)]) -> String {
        fixture(&NODE, given).err().expect("refused").text().to_owned()
    }

    #[test]
    fn each_shape_answers_as_its_analog_prototype_made_discrete_by_scipy() {
        let values = walk(1000);
        let mut cases = vec![];
        let shapes = [
            ("lowpass", 20.0, 0.6, 0.0),
            ("lowpass", 450.0, 3.0, 0.0),
            ("highpass", 5.0, 0.7, 0.0),
            ("bandpass", 50.0, 5.0, 0.0),
            ("allpass", 100.0, 0.5, 0.0),
            ("peak", 80.0, 2.0, 12.0),
            ("peak", 300.0, 1.0, -30.0),
            ("low_shelf", 30.0, 0.7, 6.0),
            ("low_shelf", 200.0, 0.5, -20.0),
            ("high_shelf", 30.0, 0.7, 6.0),
            ("high_shelf", 200.0, 1.5, -20.0),
        ];
        for (shape, frequency_hz, q, gain_db) in shapes {
            for initial in ["first", "zero"] {
                let [frequency, quality, gain] =
                    [frequency_hz, q, gain_db].map(|it| it.to_string());
                let given = [
                    ("shape", shape),
                    ("frequency_hz", &*frequency),
                    ("q", &*quality),
                    ("gain_db", &*gain),
                    ("initial", initial),
                ];
                let ours = answers(&mut fixture(&NODE, &given).expect("makes"), &values);
                let with = json!({"shape": shape, "frequency_hz": frequency_hz, "q": q,
                                  "gain_db": gain_db, "initial": initial, "values": values});
                cases.push((with, ours));
            }
        }
        hold_all("biquad", &cases);
    }

    #[test]
    fn coefficients_are_taken_as_they_are() {
        let values = walk(1000);
        let coefficients = [0.3, -0.2, 0.7, -1.1, 0.5];
        let text = format!("{coefficients:?}");
        let given = [("shape", "coefficients"), ("coefficients", &*text)];
        let ours = answers(&mut fixture(&NODE, &given).expect("makes"), &values);
        let with = json!({"coefficients": coefficients, "values": values});
        hold_all("coefficients", &[(with, ours)]);
    }

    #[test]
    fn coefficients_whose_answers_do_not_die_away_are_refused() {
        for (bad, a1, a2, most) in [
            ("[1, 0, 0, 0, 1]", "0", "1", "2"),
            ("[1, 0, 0, -1.5, 0.5]", "-1.5", "0.5", "1.5"),
            ("[1, 0, 0, 0.5, -1.25]", "0.5", "-1.25", "-0.25"),
        ] {
            let given = [("shape", "coefficients"), ("coefficients", bad)];
            assert_eq!(
                refusal(&given),
                format!(
                    "coefficients a1 {a1} and a2 {a2} make a filter whose answers do not die \
                     away; |a2| must be below 1, and |a1| below 1 + a2, {most}"
                )
            );
        }
    }

    #[test]
    fn what_does_not_fit_the_shape_is_refused() {
        let few = [("shape", "coefficients"), ("coefficients", "[1, 2]")];
        assert_eq!(
            refusal(&few),
            "coefficients are 2, expected the 5 numbers b0, b1, b2, a1 and a2"
        );
        let both =
            [("shape", "lowpass"), ("frequency_hz", "5"), ("coefficients", "[1, 0, 0, 0, 0]")];
        assert_eq!(
            refusal(&both),
            "coefficients are given and shape is lowpass; write shape: coefficients or leave them \
             out"
        );
        let gain = [("shape", "lowpass"), ("frequency_hz", "5"), ("gain_db", "6")];
        assert_eq!(
            refusal(&gain),
            "gain_db is 6, which only shapes peak, low_shelf and high_shelf have, and shape is \
             lowpass; choose one of them or leave gain_db out"
        );
        let none = refusal(&[("shape", "lowpass")]);
        assert!(none.starts_with("frequency_hz is 0, too low"), "{none}");
        let high = refusal(&[("shape", "peak"), ("frequency_hz", "600")]);
        assert!(high.starts_with("frequency_hz is 600 and must be below half"), "{high}");
    }

    #[test]
    fn no_cycle_allocates() {
        let given = [("shape", "peak"), ("frequency_hz", "10"), ("gain_db", "3")];
        assert_eq!(allocations(&mut fixture(&NODE, &given).expect("makes")), 0);
    }
}
