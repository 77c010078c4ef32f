//! Reads the states as the spec writes them. An error points to the place in the spec.

use sinew_core::{Fault, Parameters, fault};
use sinew_plan::{Data, Entry, Item, Span, duration_ns};

use super::{Exit, MachineState, Transition};
use crate::formula::{Bank, Formula, check_names};

/// Most states: far more than a reader of the spec could follow.
const STATES_MAX: usize = 256;
/// Most transitions of a state: all their guards may be evaluated in one cycle.
const TRANSITIONS_MAX: usize = 32;

/// The name of the time in a state, in formulas.
const TIME: &str = "t";

const STATE_KEYS: [&str; 5] = ["outputs", "transitions", "end", "finish", "fault"];
const TRANSITION_KEYS: [&str; 3] = ["to", "if", "after"];

/// What was read from the spec.
pub(super) struct Machine {
    pub(super) bank: Bank,
    pub(super) states: Box<[MachineState]>,
    pub(super) initial: usize,
}

/// Reads the states of a node.
///
/// # Errors
/// The first mistake, with its place.
pub(super) fn machine(parameters: &Parameters<'_>) -> Result<Machine, Fault> {
    let inputs = parameters.texts("inputs");
    let span = parameters.span("inputs");
    check_names("input", inputs, span)?;
    if inputs.iter().any(|name| name == TIME) {
        let fault = fault!("input 't' is the time in a state; write another name, such as 'in_t'");
        return Err(fault.at(span));
    }
    let mut names = inputs.to_vec();
    names.push(TIME.to_owned());
    let item = parameters.yaml("states");
    let states = map(item, "states", "{idle: {outputs: {...}, transitions: [...]}}")?;
    if states.is_empty() || states.len() > STATES_MAX {
        let fault = fault!("{} states; write 1 to {STATES_MAX}", states.len());
        return Err(fault.at(item.span));
    }
    let outputs = &[parameters.texts("outputs"), parameters.texts("flags")].concat();
    let defaults = map(parameters.yaml("defaults"), "defaults", "{output: 0}")?;
    are_outputs(defaults, outputs, "defaults")?;
    let mut reader = Reader { bank: Bank::new(&names), states, outputs, defaults };
    let read: Result<Box<[MachineState]>, Fault> =
        states.iter().map(|entry| reader.state(entry)).collect();
    let (read, bank) = (read?, reader.bank);
    let initial = parameters.text("initial");
    let initial = find(states, initial)
        .ok_or_else(|| no_state(states, initial, "initial", parameters.span("initial")))?;
    check_reach(&read, states, initial)?;
    Ok(Machine { bank, states: read, initial })
}

struct Reader<'a> {
    bank: Bank,
    states: &'a [Entry],
    outputs: &'a [String],
    defaults: &'a [Entry],
}

impl Reader<'_> {
    fn state(&mut self, entry: &Entry) -> Result<MachineState, Fault> {
        let name = &entry.key;
        let title = format!("state '{name:.40}'");
        let keys = map(&entry.value, &title, "{outputs: {...}, transitions: [...]}")?;
        are_known(keys, &title, &STATE_KEYS)?;
        let exit = exit(entry, &title)?;
        let is_fault = matches!(exit, Exit::Fault(_));
        let outputs = if is_fault { Vec::new() } else { self.outputs_of(entry, &title)? };
        let transitions = match entry.value.get("transitions") {
            Some(item) => self.transitions(item, &title)?,
            None => Vec::new(),
        };
        let (outputs, transitions) = (outputs.into(), transitions.into());
        let (name, enters) = (name.as_str().into(), format!("enters state '{name}'").into());
        Ok(MachineState { name, enters, outputs, transitions, exit })
    }

    /// A formula for each output.
    fn outputs_of(&mut self, state: &Entry, title: &str) -> Result<Vec<Formula>, Fault> {
        let own: &[Entry] = match state.value.get("outputs") {
            Some(item) => map(item, &format!("outputs of {title}"), "{output: 0}")?,
            None => &[],
        };
        are_outputs(own, self.outputs, title)?;
        let mut formulas = Vec::new();
        for output in self.outputs {
            let mut all = own.iter().chain(self.defaults);
            let Some(entry) = all.find(|entry| entry.key == *output) else {
                let fault = fault!(
                    "{title} does not say output '{output:.40}'; add it to its outputs, such as \
                     {{{output:.40}: 0}}, or to 'defaults'"
                );
                return Err(fault.at(state.span));
            };
            formulas.push(self.formula(&entry.value, &format!("{title}, output '{output:.40}'"))?);
        }
        Ok(formulas)
    }

    fn formula(&mut self, item: &Item, title: &str) -> Result<Formula, Fault> {
        let text = text(item, title, "a formula or a number")?;
        self.bank.read(text).map_err(|misread| misread.fault(title, item))
    }

    fn transitions(&mut self, item: &Item, title: &str) -> Result<Vec<Transition>, Fault> {
        let Data::List(items) = &item.data else {
            let (sort, form) = (item.sort(), "[{to: other, if: 'a > 1'}]");
            let fault = fault!("transitions of {title} is a list, found {sort}; write {form}");
            return Err(fault.at(item.span));
        };
        if items.len() > TRANSITIONS_MAX {
            let count = items.len();
            let fault = fault!("{title} has {count} transitions; at most {TRANSITIONS_MAX}");
            return Err(fault.at(items[TRANSITIONS_MAX].span));
        }
        let numbered = items.iter().enumerate();
        let read = |(at, item)| self.transition(item, &format!("{title}, transition {}", at + 1));
        numbered.map(read).collect()
    }

    fn transition(&mut self, item: &Item, title: &str) -> Result<Transition, Fault> {
        let keys = map(item, title, "{to: other, if: 'a > 1', after: 100ms}")?;
        are_known(keys, title, &TRANSITION_KEYS)?;
        let Some(to) = item.get("to") else {
            return Err(fault!("{title} leads nowhere; add 'to: ' and a state").at(item.span));
        };
        let name = text(to, &format!("'to' of {title}"), "the name of a state")?;
        let to =
            find(self.states, name).ok_or_else(|| no_state(self.states, name, title, to.span))?;
        let guard = match item.get("if") {
            Some(item) => Some(self.formula(item, &format!("{title}, if"))?),
            None => None,
        };
        let after_ns = match item.get("after") {
            Some(item) => {
                let form = "a time such as 100ms";
                let written = text(item, &format!("'after' of {title}"), form)?;
                let wrong = |help| fault!("{title}: after cannot be '{written:.30}'; {help}");
                Some(duration_ns(written).map_err(|help| wrong(help).at(item.span))?)
            }
            None => None,
        };
        if guard.is_none() && after_ns.is_none() {
            let fault = fault!("{title} has no condition; add 'if', 'after' or both");
            return Err(fault.at(item.span));
        }
        Ok(Transition { to, guard, after_ns: after_ns.unwrap_or(0) })
    }
}

/// How a state ends, if not by a transition. Two ends at once, or neither an end nor a transition,
/// are refused.
fn exit(state: &Entry, title: &str) -> Result<Exit, Fault> {
    let item = &state.value;
    let transitions = item.get("transitions").filter(|item| !item.is_empty_list());
    let ends = [("end", truth(item, "end", title)?), ("finish", truth(item, "finish", title)?)];
    let ends = ends.into_iter().filter_map(|(key, span)| Some((key, span?)));
    let fault = item.get("fault").map(|item| ("fault", item.span));
    let mut ways: Vec<(&str, Span)> =
        transitions.map(|item| ("transitions", item.span)).into_iter().collect();
    ways.extend(ends.chain(fault));
    match *ways {
        [] => {
            let fault = fault!(
                "{title} has no exit; add transitions, or 'end: true' if it is to stay in it"
            );
            return Err(fault.at(state.span));
        }
        [(one, _), (other, span), ..] => {
            return Err(fault!("{title} has '{one}' and '{other}'; keep one of them").at(span));
        }
        _ => {}
    }
    if let Some(outputs) = item.get("outputs").filter(|_| ways[0].0 == "fault") {
        let fault = fault!("{title} is a fault: the core stops at once; remove its outputs");
        return Err(fault.at(outputs.span));
    }
    Ok(match ways[0].0 {
        "finish" => Exit::Finish,
        "fault" => {
            let item = item.get("fault").expect("it was found above");
            Exit::Fault(
                text(item, &format!("fault of {title}"), "what is wrong, as a text")?.into(),
            )
        }
        _ => Exit::No,
    })
}

/// The place of a key whose value is true.
fn truth(state: &Item, key: &str, title: &str) -> Result<Option<Span>, Fault> {
    let Some(item) = state.get(key) else { return Ok(None) };
    match item.text() {
        Some("true") => Ok(Some(item.span)),
        Some("false") => Ok(None),
        _ => Err(fault!("'{key}' of {title} is true or false").at(item.span)),
    }
}

/// Refuses states that no transition leads to.
fn check_reach(read: &[MachineState], states: &[Entry], initial: usize) -> Result<(), Fault> {
    let mut reached = vec![false; read.len()];
    let mut open = vec![initial];
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut reached[at], true) {
            open.extend(read[at].transitions.iter().map(|transition| transition.to));
        }
    }
    let Some(at) = reached.iter().position(|reached| !reached) else { return Ok(()) };
    let (name, initial) = (&states[at].key, &states[initial].key);
    let fault = fault!(
        "state '{name:.40}' cannot be reached from '{initial:.40}'; add a transition to it, or \
         remove it"
    );
    Err(fault.at(states[at].span))
}

fn find(states: &[Entry], name: &str) -> Option<usize> {
    states.iter().position(|entry| entry.key == name)
}

fn no_state(states: &[Entry], name: &str, title: &str, span: Span) -> Fault {
    let known: Vec<&str> = states.iter().map(|entry| &*entry.key).collect();
    fault!("{title}: no state '{name:.40}'; there are {}", known.join(", ")).at(span)
}

fn are_known(entries: &[Entry], title: &str, known: &[&str]) -> Result<(), Fault> {
    let Some(entry) = entries.iter().find(|entry| !known.contains(&&*entry.key)) else {
        return Ok(());
    };
    let (key, known) = (&entry.key, known.join(", "));
    Err(fault!("unknown key '{key:.40}' in {title}; it has {known}").at(entry.span))
}

fn are_outputs(entries: &[Entry], outputs: &[String], title: &str) -> Result<(), Fault> {
    let Some(entry) = entries.iter().find(|entry| !outputs.contains(&entry.key)) else {
        return Ok(());
    };
    let (key, known) = (&entry.key, outputs.join(", "));
    Err(fault!("{title}: no output '{key:.40}'; 'outputs' of the node has [{known}]")
        .at(entry.span))
}

fn map<'a>(item: &'a Item, title: &str, form: &str) -> Result<&'a [Entry], Fault> {
    match &item.data {
        Data::Map(entries) => Ok(entries),
        _ => {
            let sort = item.sort();
            Err(fault!("{title} is a mapping, found {sort}; write {form}").at(item.span))
        }
    }
}

fn text<'a>(item: &'a Item, title: &str, form: &str) -> Result<&'a str, Fault> {
    match item.text() {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(fault!("{title} is {}; write {form}", item.sort()).at(item.span)),
    }
}
