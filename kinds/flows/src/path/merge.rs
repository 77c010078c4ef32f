//! `merge`: puts packets of several branches of a flow together into one list.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use sinew_core::catalogue::Kind;
use sinew_flow::{
    At, Error, FLOW, FlowEntry, FlowNode, Make, NodeContext, Step, Value, error, input, output,
};

use super::ports::linked_inputs;

pub(crate) const NODE: FlowEntry =
    FlowEntry { kind: &INFO, make: Make::Node(|_| Ok(Box::<Merge>::default())) };

static INFO: Kind = Kind {
    name: "merge",
    doc: "Waits until one packet of the flow has come to each linked input, and sends the list \
          of them, in the order of the inputs, to 'out'. Its reply is the reply to the packet at \
          the first input; the others get nothing. If no branch of the flow is left that could \
          bring what is missing, that is an error.",
    ports: &[
        output("out", "The list."),
        error(),
        input("in[]", "The element with this number, from 0."),
    ],
    ..FLOW
};

const OUT: usize = 0;
const IN: usize = 2;

#[derive(Default)]
struct Merge {
    /// The linked inputs.
    inputs: Vec<usize>,
    /// What flows have brought so far, by the flows' numbers. An entry is removed when the packets
    /// that wait in it are gone.
    gatherings: RefCell<HashMap<u64, Rc<Gathering>>>,
}

/// The packets of one flow.
struct Gathering {
    /// One place for each linked input.
    places: RefCell<Vec<Option<Value>>>,
    state: Cell<State>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Gathers,
    Complete,
    /// A branch has found that the rest will never come. The packet at this place, the first one
    /// there, is answered with the error.
    GivenUp {
        at: usize,
    },
}

impl FlowNode for Merge {
    fn attach(&mut self, site: &NodeContext) {
        self.inputs = linked_inputs(site, IN);
    }

    fn handle<'a>(&'a self, at: At<'a>, input: usize, packet: Value) -> Step<'a> {
        let place = self.inputs.binary_search(&input).expect("a packet comes over a link");
        match self.put(at.flow().id(), place, packet) {
            Some(brought) => Step::wait(brought.answer(at)),
            None => Step::Fail(Error::new(format_args!(
                "a second packet came to {} before the first was merged; where 'for' repeats what \
                 leads here, set concurrency: 1",
                name(input)
            ))),
        }
    }
}

impl Merge {
    /// Puts a packet into its place; `None` if the place is taken.
    fn put(&self, flow: u64, place: usize, packet: Value) -> Option<Brought<'_>> {
        let mut gatherings = self.gatherings.borrow_mut();
        let empty = || {
            let places = RefCell::new(vec![None; self.inputs.len()]);
            Rc::new(Gathering { places, state: Cell::new(State::Gathers) })
        };
        let gathering = Rc::clone(gatherings.entry(flow).or_insert_with(empty));
        let mut places = gathering.places.borrow_mut();
        if places[place].is_some() {
            return None;
        }
        places[place] = Some(packet);
        if places.iter().all(Option::is_some) {
            gathering.state.set(State::Complete);
            // The next packet begins a new list.
            gatherings.remove(&flow);
        }
        drop(places);
        Some(Brought { merge: self, flow, gathering, place })
    }

    /// The error that names the inputs that have got no packet.
    fn missing(&self, gathering: &Gathering) -> Error {
        let places = gathering.places.borrow();
        let empty = places.iter().zip(&self.inputs).filter(|(place, _)| place.is_none());
        let names: Vec<String> = empty.map(|(_, &input)| name(input)).collect();
        Error::new(format_args!("nothing came to {}, and nothing can any more", names.join(", ")))
            .following()
    }
}

fn name(input: usize) -> String {
    INFO.port_name(input)
}

/// A packet in its place. If it is dropped before the list is complete, its flow was cancelled.
struct Brought<'a> {
    merge: &'a Merge,
    flow: u64,
    gathering: Rc<Gathering>,
    place: usize,
}

impl<'a> Brought<'a> {
    async fn answer(self, at: At<'a>) -> Step<'a> {
        let Brought { merge, gathering, place, .. } = &self;
        let ended = || gathering.state.get() != State::Gathers;
        // Only the last packet wakes the others.
        if ended() {
            at.wake_branches();
        }
        if !at.wait_for_branches(ended).await {
            self.give_up();
            at.wake_branches();
        }
        match gathering.state.get() {
            State::Complete if *place == 0 => {
                let packets = gathering.places.take().into_iter().flatten();
                Step::Pass(OUT, Value::list(packets))
            }
            State::GivenUp { at } if at == *place => Step::Fail(merge.missing(gathering)),
            _ => Step::Reply(None),
        }
    }

    /// Ends the gathering without the missing packets.
    fn give_up(&self) {
        let first = self.gathering.places.borrow().iter().position(Option::is_some);
        self.gathering.state.set(State::GivenUp { at: first.unwrap_or(self.place) });
        self.merge.gatherings.borrow_mut().remove(&self.flow);
    }
}

impl Drop for Brought<'_> {
    fn drop(&mut self) {
        let Gathering { places, state } = &*self.gathering;
        if state.get() == State::Gathers {
            places.borrow_mut()[self.place] = None;
            if places.borrow().iter().all(Option::is_none) {
                self.give_up();
            }
        }
    }
}

#[cfg(test)]
mod tests;
