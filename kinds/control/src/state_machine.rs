//! Kind `state_machine`: states, the outputs of each state, and the transitions between them.

mod read;

use std::fmt;

use sinew_core::catalogue::{Form, Kind, Parameter, ParameterType, Port, RunsIn, Signal};
use sinew_core::{
    Cycle, Fault, Flag, Io, Level, Message, Node, NodeEntry, Parameters, Real, fault,
};

use crate::formula::{Bank, Formula};

const STATE: usize = 0;

/// Most inputs, and most outputs.
const PORTS_MAX: usize = 32;

/// What the compiler knows of the kind.
const INFO: Kind = Kind {
    name: "state_machine",
    runs_in: RunsIn::Realtime,
    doc: "A state machine, which is in one of its states. 'states' is a mapping such as {idle: \
          {outputs: {torque: 0}, transitions: [{to: run, if: 'enable and abs(x) < 0.1', after: \
          100ms}]}, run: {...}}. 'outputs' of a state gives each output and flag of the machine a \
          formula of the inputs, as the kind 'expression' has them, evaluated in every cycle; what \
          a state does not name is that of 'defaults'. A transition leads to a state when 'if' is \
          not 0 and the state has lasted for 'after', or whichever of the two it has. In formulas \
          't' is the time in the state, s: 0 in the first cycle of it. In each cycle first the \
          transitions of the state are asked, in their order, and the first that holds is taken; \
          then the outputs of the state that it leads to are written. So there is one transition a \
          cycle, and the first cycle begins in 'initial' and may leave it. A transition to its own \
          state sets 't' to 0. Instead of transitions a state has 'end: true' (it stays), 'finish: \
          true' (the graph stops in order; the outputs stand until then) or 'fault: text' (the \
          core stops with that text, and the safe values of its actuators). The signal and the \
          port 'state' are the number of the state, by the order in which the states stand in the \
          spec, from 0. Another state that is entered is logged. An input that was never written \
          is 0. A guard or an output that is not finite is a fault. At most 256 states, and 32 \
          transitions of each. The flat subset of D. Harel, Statecharts: a visual formalism for \
          complex systems (1987); the order of evaluation is that of IEC 61131-3, sequential \
          function chart.",
    ports: &[
        Port::input("input", "A number of the formulas; a Flag is 1 or 0.", Real::TYPE)
            .form(Form::Each("inputs")),
        Port::output("state", "The number of the state.", Real::TYPE).optional(),
        Port::output("output", "A number that the state gives.", Real::TYPE)
            .form(Form::Each("outputs")),
        Port::output("flag", "Whether a formula of the state is not 0.", Flag::TYPE)
            .form(Form::Each("flags")),
    ],
    parameters: &[
        Parameter::new("inputs", ParameterType::Texts { max: PORTS_MAX })
            .or("[]")
            .doc("Names of the inputs: letters, digits and '_'; not 't'."),
        Parameter::new("outputs", ParameterType::Texts { max: PORTS_MAX })
            .or("[]")
            .doc("Names of the outputs that are numbers."),
        Parameter::new("flags", ParameterType::Texts { max: PORTS_MAX })
            .or("[]")
            .doc("Names of the outputs that are true or false: true where the formula is not 0."),
        Parameter::new("initial", ParameterType::Text)
            .such_as("idle")
            .doc("The state that it begins in."),
        Parameter::new("states", ParameterType::Yaml)
            .such_as("{idle: {transitions: [{to: run, after: 1s}]}, run: {end: true}}")
            .doc("The states by name, each with outputs, and with transitions or how it ends."),
        Parameter::new("defaults", ParameterType::Yaml)
            .or("{}")
            .doc("Formulas of outputs, for the states that do not name them: {torque: 0}."),
    ],
    signals: &[Signal::new("state", "The number of the state, by its order in the spec.", "", 1)],
};

/// The kind's row in the table.
pub(crate) const NODE: NodeEntry = NodeEntry { kind: &INFO, make, safe: None };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Node>, Fault> {
    let read::Machine { bank, states, initial } = read::machine(parameters)?;
    Ok(Box::new(StateMachine {
        inputs: parameters.texts("inputs").len(),
        numbers: parameters.texts("outputs").len(),
        bank,
        states,
        at: initial,
        since_ns: None,
    }))
}

/// A state. Its transitions name their goals by index.
struct MachineState {
    name: Box<str>,
    /// The text that is logged when the state is entered.
    enters: Box<str>,
    /// One formula for each output of the machine; empty if the state is a fault.
    outputs: Box<[Formula]>,
    transitions: Box<[Transition]>,
    exit: Exit,
}

/// What a state does by itself.
enum Exit {
    /// Nothing: it has transitions, or the machine stays in it.
    No,
    /// The job is done.
    Finish,
    /// The core stops with this text.
    Fault(Box<str>),
}

/// A transition from a state to another.
struct Transition {
    to: usize,
    /// `None`: only the time in the state counts.
    guard: Option<Formula>,
    after_ns: u64,
}

struct StateMachine {
    inputs: usize,
    /// Count of outputs that are numbers. The outputs after them are flags.
    numbers: usize,
    /// Holds the inputs, then the time in the state.
    bank: Bank,
    states: Box<[MachineState]>,
    /// The present state.
    at: usize,
    /// Time in the present state; `None` before the first cycle.
    since_ns: Option<u64>,
}

impl Node for StateMachine {
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault> {
        for at in 0..self.inputs {
            self.bank.set(at, io.read::<Real>(at).value);
        }
        self.go_on(cycle)?;
        let state = &self.states[self.at];
        match &state.exit {
            Exit::No => {}
            Exit::Finish => cycle.finish(),
            Exit::Fault(text) => return Err(fault!("state '{:.60}': {text}", state.name)),
        }
        let first_out = self.inputs + STATE + 1;
        for (at, output) in state.outputs.iter().enumerate() {
            let value = output.finite(&mut self.bank, Of { state, what: "output" })?;
            match at < self.numbers {
                true => io.write::<Real>(first_out + at).value = value,
                false => io.write::<Flag>(first_out + at).value = (value != 0.0).into(),
            }
        }
        io.write::<Real>(self.inputs + STATE).value = self.at as f64;
        io.signal(STATE)[0] = self.at as f64;
        Ok(())
    }
}

impl StateMachine {
    /// Takes the first transition that holds, if one does.
    fn go_on(&mut self, cycle: &Cycle) -> Result<(), Fault> {
        let since_ns = self.since_ns.map_or(0, |ns| ns.saturating_add(cycle.passed_ns()));
        self.since_ns = Some(since_ns);
        self.bank.set(self.inputs, since_ns as f64 / 1e9);
        let state = &self.states[self.at];
        for transition in state.transitions.iter().filter(|it| it.after_ns <= since_ns) {
            if let Some(guard) = &transition.guard
                && guard.finite(&mut self.bank, Of { state, what: "if" })? == 0.0
            {
                continue;
            }
            if self.at != transition.to {
                cycle.log(Level::Info, &self.states[transition.to].enters, &[]);
            }
            self.at = transition.to;
            self.since_ns = Some(0);
            self.bank.set(self.inputs, 0.0);
            break;
        }
        Ok(())
    }
}

/// Says in a fault which formula of which state failed.
struct Of<'a> {
    state: &'a MachineState,
    what: &'static str,
}

impl fmt::Display for Of<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state '{:.30}': {} ", self.state.name, self.what)
    }
}

#[cfg(test)]
mod tests;
