//! Kind `expression`: a formula of other numbers.

use sinew_core::catalogue::{Form, Kind, Parameter, ParameterType, Port, RunsIn, Unit};
use sinew_core::{Bool, Cycle, Fault, Flag, Io, Message, Node, NodeEntry, Parameters, Real};

use crate::formula::{Bank, Formula, check_names, placed};

/// Most inputs.
const INPUTS_MAX: usize = 32;

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "expression",
    runs_in: RunsIn::Realtime,
    doc: "Evaluates a formula of its inputs in every cycle: numbers, names of inputs, pi, true (1) \
          and false (0); + - * / % and ^ (power, from the right; % has the sign of what stands \
          behind it); < <= > >= == != (one of them, then 'and'); and, or, not (anything but 0 is \
          true); if(c, a, b); abs sqrt sin cos tan asin acos atan atan2 exp ln log10 min max \
          clamp(x, low, high) floor ceil round (half away from zero) sign hypot. Angles in rad. It \
          binds as in Python: power, sign, product, sum, comparison, not, and, or. Units are not \
          converted. All parts are evaluated in every cycle, those that 'if' does not take as \
          well, with 256 operations at most. An input that was never written is 0. A result that \
          is not finite, such as 1/0 or sqrt(-1), is a fault and stops the graph: write if(x != 0, \
          1/x, 0). Within a formula a comparison with such a number is false.",
    ports: &[
        Port::input("input", "A number of the formula; a Flag is 1 or 0.", Real::TYPE)
            .form(Form::Each("inputs")),
        Port::output("out", "The result.", Real::TYPE).optional().unit(Unit::Parameter("unit")),
        Port::output("holds", "Whether the result is not 0.", Flag::TYPE).optional(),
    ],
    parameters: &[
        Parameter::new("inputs", ParameterType::Texts { max: INPUTS_MAX })
            .such_as("[a, b]")
            .or("[]")
            .doc("Names of the inputs: letters, digits and '_'."),
        Parameter::new("expression", ParameterType::Text)
            .such_as("'2 * (a - b)'")
            .doc("The formula, such as 'if(enable, gain * (a - b), 0)'."),
        Parameter::new("unit", ParameterType::Text).or("").doc("Unit of the result."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let inputs = parameters.texts("inputs");
    check_names("input", inputs, parameters.span("inputs"))?;
    let mut bank = Bank::new(inputs);
    let item = placed(parameters.text("expression"), parameters.span("expression"));
    let formula = bank
        .read(parameters.text("expression"))
        .map_err(|misread| misread.fault("expression", &item))?;
    Ok(Box::new(Expression { bank, formula, inputs: inputs.len() }))
}

struct Expression {
    bank: Bank,
    formula: Formula,
    inputs: usize,
}

impl Node for Expression {
    fn update(&mut self, io: &mut Io<'_>, _: &Cycle) -> Result<(), Fault> {
        for at in 0..self.inputs {
            self.bank.set(at, io.read::<Real>(at).value);
        }
        let value = self.formula.finite(&mut self.bank, "")?;
        io.write::<Real>(self.inputs).value = value;
        io.write::<Flag>(self.inputs + 1).value = Bool::from(value != 0.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fixture;

    const OUT: usize = 2;
    const HOLDS: usize = 3;

    #[test]
    fn it_evaluates_its_formula_in_every_cycle_without_allocating() {
        let given = [("inputs", "[a, b]"), ("expression", "'2 * a - b^2 > 1 and a < 3'")];
        let mut node = fixture(&NODE, &given).expect("makes");
        node.update().expect("never written is 0");
        assert_eq!(node.get::<Flag>(HOLDS), Some(Flag { value: false.into() }));
        for (a, b, holds) in [(2.0, 1.0, true), (2.0, 2.0, false), (3.0, 0.0, false)] {
            let counted = allocation_counter::measure(|| {
                node.put(0, &Real { value: a });
                node.put(1, &Real { value: b });
                node.update().expect("goes on");
            });
            assert_eq!(counted.count_total, 0);
            assert_eq!(node.get::<Flag>(HOLDS), Some(Flag { value: holds.into() }));
            assert_eq!(node.get::<Real>(OUT), Some(Real { value: f64::from(u8::from(holds)) }));
        }
        node.update().expect("an old value counts");
        assert_eq!(node.get::<Real>(OUT), Some(Real { value: 0.0 }));
    }

    #[test]
    fn anything_but_zero_holds() {
        let mut node = fixture(&NODE, &[("inputs", "[a, b]"), ("expression", "a")]).expect("makes");
        for (value, holds) in [(-0.25, true), (0.0, false), (-0.0, false), (1e-300, true)] {
            node.put(0, &Real { value });
            node.update().expect("goes on");
            assert_eq!(node.get::<Flag>(HOLDS), Some(Flag { value: holds.into() }), "{value}");
        }
    }

    #[test]
    fn a_result_that_is_not_finite_is_a_fault_that_names_the_inputs() {
        let given = [("inputs", "[b, a]"), ("expression", "a / b")];
        let mut node = fixture(&NODE, &given).expect("makes");
        node.put(1, &Real { value: -2.5 });
        let fault = node.update().expect_err("divides by zero");
        let text = "'a / b' is -inf with a = -2.5, b = 0.0; keep it finite with if() or clamp()";
        assert_eq!(fault.text(), text);
        node.put(0, &Real { value: 2.0 });
        node.update().expect("the formula has no state");
    }

    #[test]
    fn a_fault_fits_whatever_the_formula_is() {
        let names: Vec<String> = (0..32).map(|at| format!("{}{at}", "n".repeat(60))).collect();
        let text = format!("sqrt(-1 - ({}))", names.join(" + "));
        let inputs = format!("[{}]", names.join(", "));
        let given = [("inputs", &*inputs), ("expression", &*text)];
        let mut node = fixture(&NODE, &given).expect("makes");
        let fault = node.update().expect_err("a root of -1");
        assert!(fault.text().contains("..."), "{}", fault.text());
        assert!(fault.text().ends_with("clamp()"), "{}", fault.text());
    }

    #[test]
    fn what_it_refuses_says_what_to_change() {
        let refused = |inputs: &str, expression: &str| {
            let given = [("inputs", inputs), ("expression", expression)];
            fixture(&NODE, &given).err().expect("refuses").text().to_owned()
        };
        for (inputs, expression, text) in [
            (
                "[sqrt]",
                "1",
                "input 'sqrt' is a word of formulas; give it another name, such as 'in_sqrt'",
            ),
            (
                "[pi]",
                "1",
                "input 'pi' is a word of formulas; give it another name, such as 'in_pi'",
            ),
            ("[a-b]", "1", "input 'a-b' holds more than letters, digits and '_'; write 'a_b'"),
            (
                "['1a']",
                "1",
                "input '1a' begins with a digit, and no name in a formula does; write 'in_1a'",
            ),
            ("[a, b]", "a + c", "expression, column 5: no name 'c'; there are a, b"),
            (
                "[a]",
                "'a +'",
                "expression, column 4: expected a number, a name or '(', found the end",
            ),
            ("[]", "a", "expression, column 1: no name 'a'; there is none"),
            ("[]", "1 / 0", "expression, column 3: is inf here, whatever the inputs are"),
        ] {
            assert_eq!(refused(inputs, expression), text);
        }
    }
}
