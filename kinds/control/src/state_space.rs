//! Kind `state_space`: a linear system, given by its matrices.

use sinew_core::catalogue::{Form, Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::{Cycle, Fault, Io, Message, Node, NodeEntry, Parameters, Real, fault};
use sinew_plan::{Data, Item};

use super::linear::{DenseMatrix, HeldSystem};
use super::plant::passed_periods;

/// Most states: a step of as many states with all inputs takes some 400 products, far below a
/// microsecond.
const STATES_MAX: usize = 16;
/// Most inputs, and most outputs.
const PORTS_MAX: usize = 8;
/// Greatest number in a matrix.
const NUMBER_MAX: f64 = 1e12;

const INPUTS: &str = "inputs";
const OUTPUTS: &str = "outputs";

const fn matrix(name: &'static str, doc: &'static str) -> Parameter {
    Parameter::new(name, ParameterType::Yaml).doc(doc)
}

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "state_space",
    runs_in: RunsIn::Realtime,
    doc: "A linear system of 1 to 16 states x, 8 inputs u and 8 outputs y at most: a plant to try \
          a controller against, an observer, a filter. In each cycle it says y = c x + d u, with \
          the inputs of this cycle; then the state goes on. So without 'd' an input is seen in the \
          outputs one cycle later, and the first cycle shows 'initial'. With 'time: continuous' \
          dx/dt = a x + b u, times in s; it goes on by a period in which the inputs are held, \
          exactly (Franklin, Powell, Workman, Digital Control of Dynamic Systems, 3rd ed., 4.3), \
          and by lost periods too, 999 of them at most, with the inputs of the cycle before. With \
          'time: discrete' the next state is a x + b u: one step in a cycle, whatever was lost. An \
          input that was never written is 0. The system may be unstable; a state that grows past \
          all numbers is a fault. It is not an actuator and has no safe value: to command the \
          drive of a real machine, use a kind with an actuator port.",
    ports: &[
        Port::input("in", "An input, named in 'inputs'.", Real::TYPE).form(Form::Each(INPUTS)),
        Port::output("out", "An output, named in 'outputs'.", Real::TYPE)
            .form(Form::Each(OUTPUTS))
            .optional(),
    ],
    parameters: &[
        Parameter::new(INPUTS, ParameterType::Texts { max: PORTS_MAX })
            .such_as("[u]")
            .doc("Names of the inputs, each a port: the columns of b and d. May be an empty list."),
        Parameter::new(OUTPUTS, ParameterType::Texts { max: PORTS_MAX })
            .such_as("[y]")
            .doc("Names of the outputs, each a port: the rows of c and d."),
        Parameter::new("time", ParameterType::Choice(&["continuous", "discrete"]))
            .or("continuous")
            .doc("What a and b mean: change in a second, or the next state."),
        matrix("a", "A row for each state with a number for each state: [[0, 1], [-4, -0.4]].")
            .such_as("[[0.9]]"),
        matrix("b", "A row for each state with a number for each input: [[0], [1]].")
            .such_as("[[0.1]]")
            .or("[]"),
        matrix("c", "A row for each output with a number for each state: [[1, 0]].")
            .such_as("[[1]]"),
        matrix("d", "A row for each output with a number for each input; without it zeros.")
            .or("[]"),
        matrix("initial", "The state in the first cycle, a number each; without it zeros.")
            .or("[]"),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let [inputs, outputs] = [INPUTS, OUTPUTS].map(|name| parameters.texts(name).len());
    if outputs == 0 {
        return Err(fault!("outputs is empty, expected 1 to {PORTS_MAX} names; name what c gives"));
    }
    let states = rows("a", parameters.yaml("a"))?.len();
    if !(1..=STATES_MAX).contains(&states) {
        return Err(fault!(
            "a has {states} rows, one for each state; expected 1 to {STATES_MAX} states"
        ));
    }
    let read = |name, rows, columns| Given { name, rows, columns }.read(parameters.yaml(name));
    let a = read("a", (states, "states"), (states, "states"))?;
    let b = match inputs {
        0 if parameters.yaml("b").is_empty_list() => DenseMatrix::zeros(states, 0),
        _ => read("b", (states, "states"), (inputs, "inputs"))?,
    };
    let c = read("c", (outputs, "outputs"), (states, "states"))?;
    let d = match parameters.yaml("d").is_empty_list() {
        true => DenseMatrix::zeros(outputs, inputs),
        false => read("d", (outputs, "outputs"), (inputs, "inputs"))?,
    };
    let state = match parameters.yaml("initial") {
        none if none.is_empty_list() => vec![0.0; states],
        given => numbers("initial", given, (states, "states"))?,
    };
    let is_continuous = parameters.text("time") == "continuous";
    let step = match is_continuous {
        true => HeldSystem::new(&a, &b, parameters.period_ns as f64 * 1e-9)?,
        false => HeldSystem { state: a, input: b },
    };
    Ok(Box::new(StateSpace {
        is_continuous,
        step,
        output: c,
        through: d,
        next: vec![0.0; states].into(),
        state: state.into(),
        inputs: vec![0.0; inputs].into(),
        outputs: vec![0.0; outputs].into(),
        has_begun: false,
    }))
}

/// The expected count, and of what.
type Expected = (usize, &'static str);

/// The shape that a given matrix must have.
struct Given {
    name: &'static str,
    rows: Expected,
    columns: Expected,
}

impl Given {
    fn read(&self, item: &Item) -> Result<DenseMatrix, Fault> {
        let (name, (count, what)) = (self.name, self.rows);
        let rows = rows(name, item)?;
        if rows.len() != count {
            let found = rows.len();
            return Err(fault!(
                "{name} has {found} rows, but there are {count} {what}; write a row for each"
            ));
        }
        let mut matrix = DenseMatrix::zeros(count, self.columns.0);
        for (row, item) in rows.iter().enumerate() {
            let given = numbers(format_args!("row {} of {name}", row + 1), item, self.columns)?;
            for (column, number) in given.into_iter().enumerate() {
                *matrix.at(row, column) = number;
            }
        }
        Ok(matrix)
    }
}

fn rows<'i>(name: &str, item: &'i Item) -> Result<&'i [Item], Fault> {
    match &item.data {
        Data::List(rows) => Ok(rows),
        _ => Err(fault!(
            "{name} is {}, expected a list of rows, each a list of numbers: [[1, 2], [3, 4]]",
            item.sort()
        )),
    }
}

/// Reads a list that must have as many numbers as expected.
fn numbers(
    name: impl std::fmt::Display,
    item: &Item,
    (count, what): Expected,
) -> Result<Vec<f64>, Fault> {
    let Data::List(items) = &item.data else {
        return Err(fault!("{name} is {}, expected a list of {count} numbers", item.sort()));
    };
    if items.len() != count {
        let found = items.len();
        return Err(fault!(
            "{name} has {found} numbers, but there are {count} {what}; write a number for each"
        ));
    }
    let number = |(at, item): (usize, &Item)| {
        let plain = match &item.data {
            Data::Scalar { text, plain: true } => text.as_str(),
            _ => item.sort(),
        };
        let number = plain.parse::<f64>().ok().filter(|number| number.abs() <= NUMBER_MAX);
        let at = at + 1;
        number.ok_or_else(|| {
            fault!("number {at} of {name} is '{plain:.20}', expected one from -1e12 to 1e12")
        })
    };
    items.iter().enumerate().map(number).collect()
}

struct StateSpace {
    is_continuous: bool,
    /// The step of the state over a period, or in discrete time over a step.
    step: HeldSystem,
    /// c
    output: DenseMatrix,
    /// d
    through: DenseMatrix,
    state: Box<[f64]>,
    /// Buffer for the next state.
    next: Box<[f64]>,
    /// The inputs of the cycle before, until the new ones are read.
    inputs: Box<[f64]>,
    outputs: Box<[f64]>,
    /// Whether there was a cycle before, whose inputs were held since then.
    has_begun: bool,
}

impl Node for StateSpace {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        if std::mem::replace(&mut self.has_begun, true) {
            self.go_on(cycle)?;
        }
        for (port, input) in self.inputs.iter_mut().enumerate() {
            *input = io.read::<Real>(port).value;
        }
        self.outputs.fill(0.0);
        self.output.add_product(&self.state, &mut self.outputs);
        self.through.add_product(&self.inputs, &mut self.outputs);
        for (at, output) in self.outputs.iter().enumerate() {
            io.write::<Real>(self.inputs.len() + at).value = *output;
        }
        Ok(())
    }
}

impl StateSpace {
    /// Advances the state from the cycle before to this one.
    fn go_on(&mut self, cycle: &Cycle) -> Result<(), Fault> {
        for _ in 0..if self.is_continuous { passed_periods(cycle) } else { 1 } {
            self.step.step(&self.state, &self.inputs, &mut self.next);
            std::mem::swap(&mut self.state, &mut self.next);
        }
        match self.state.iter().position(|number| !number.is_finite()) {
            None => Ok(()),
            Some(at) => Err(fault!(
                "state {} has grown past all numbers: the system is unstable by itself, or made so \
                 by what drives it; change a, or the controller",
                at + 1
            )),
        }
    }
}

#[cfg(test)]
mod tests;
