//! What a flow shows of itself to the taps that were open when it began.

use std::cell::RefCell;
use std::rc::Rc;

use bytestring::ByteString;
use sinew_control::tap::{TapLine, TapPacket, TapStep};
use sinew_core::clock::now_ns;

use crate::path::program::Entry;
use crate::{At, Flow, Step, Value};

use super::hold::HeldPacket;
use super::{Here, Tap, TapView};

/// Most events of a flow's way that are kept until it is known whether the way is wanted; the rest
/// is left out.
const KEPT_MAX: usize = 256;

/// What taps see of a flow; what its children do is shown as part of it.
pub(crate) struct FlowTaps {
    flow: u64,
    view: Rc<TapView>,
    here: Rc<[Here]>,
    /// For each tap of `here`, whether the flow is shown as a whole.
    ways: RefCell<Vec<Way>>,
}

/// Whether a flow is shown as a whole.
enum Way {
    /// It is not shown.
    No,
    /// It is shown if it comes to the node that is asked for. Until then its events are kept.
    Perhaps(Vec<Event>),
    /// It is shown.
    Yes,
}

/// What happens in a flow, in the form that is kept: to make a text of it costs more.
#[derive(Clone)]
struct Event {
    node: ByteString,
    at_us: u64,
    what: Happened,
    packet: Value,
}

#[derive(Clone)]
enum Happened {
    /// The packet comes to this input.
    Comes(String),
    /// It was passed on to this output, answered, or failed; and how long that took in
    /// microseconds.
    Leaves(String, u64),
}

/// The taps that want to see what becomes of a packet: a bit for each.
type Wanted = u8;

impl TapView {
    /// What taps see of a flow that the node `by` begins, perhaps with this packet; `None` if
    /// nobody looks.
    pub(crate) fn begin(
        self: &Rc<TapView>,
        flow: &Flow,
        by: &ByteString,
        packet: Option<&Value>,
    ) -> Option<Rc<FlowTaps>> {
        let here = self.here();
        if here.is_empty() {
            return None;
        }
        let way = |here: &Here| {
            let is_wanted = || match packet {
                Some(packet) => here.wants(flow, packet),
                None => here.filter.is_none(),
            };
            match here.tap.asked.way && here.tap.admits() && is_wanted() {
                true => Way::Perhaps(Vec::new()),
                false => Way::No,
            }
        };
        let ways = RefCell::new(here.iter().map(way).collect());
        let taps = FlowTaps { flow: flow.id(), view: Rc::clone(self), here, ways };
        if let Some(packet) = packet {
            taps.see(flow, by, String::new(), packet);
        }
        Some(Rc::new(taps))
    }
}

impl FlowTaps {
    /// Hands a packet to a node, and shows what comes of it.
    pub(crate) fn hand<'a>(
        &'a self,
        at: At<'a>,
        entry: &'a Entry,
        input: usize,
        packet: Value,
    ) -> Step<'a> {
        let begun_ns = now_ns();
        let wanted = self.see(at.flow, entry.name(), entry.kind().port_name(input), &packet);
        let held = self.hold(at.flow, entry, input, &packet);
        if held.is_empty() {
            let step = entry.node().handle(at, input, packet);
            if wanted == 0 {
                return step;
            }
            return match step {
                Step::Wait(_) => Step::wait(self.follow(at.flow, entry, wanted, begun_ns, step)),
                step => self.leaves(at.flow, entry, wanted, begun_ns, step),
            };
        }
        Step::wait(async move {
            let mut wanted = wanted;
            for (bit, held) in held {
                wanted |= bit;
                held.released(at.flow).await;
            }
            let begun_ns = now_ns();
            let step = entry.node().handle(at, input, packet);
            self.follow(at.flow, entry, wanted, begun_ns, step).await
        })
    }

    /// Waits for the node's final step, and shows it.
    async fn follow<'a>(
        &'a self,
        flow: &'a Flow,
        entry: &'a Entry,
        wanted: Wanted,
        begun_ns: u64,
        mut step: Step<'a>,
    ) -> Step<'a> {
        while let Step::Wait(waiting) = step {
            step = waiting.await;
        }
        self.leaves(flow, entry, wanted, begun_ns, step)
    }

    /// Shows a packet that comes to a node. Returns which taps want to know what becomes of it.
    fn see(&self, flow: &Flow, node: &ByteString, input: String, packet: &Value) -> Wanted {
        let (at_us, what) = (now_ns() / 1000, Happened::Comes(input));
        let event = Event { node: node.clone(), at_us, what, packet: packet.clone() };
        let mut wanted = 0;
        for (place, here) in self.here.iter().enumerate() {
            let asked = &here.tap.asked;
            let is_shown = match (asked.way, asked.pause) {
                (true, _) => self.show_in_way(flow, place, &event),
                (false, true) => false,
                (false, false) => {
                    let is_wanted =
                        here.is_at(&event.node) && here.wants(flow, packet) && here.tap.takes();
                    if is_wanted {
                        here.tap.say(self.line(flow, &event));
                    }
                    is_wanted
                }
            };
            wanted |= Wanted::from(is_shown) << place;
        }
        wanted
    }

    /// Holds a packet for the taps that ask for that.
    fn hold(
        &self,
        flow: &Flow,
        entry: &Entry,
        input: usize,
        packet: &Value,
    ) -> Vec<(Wanted, HeldPacket)> {
        let holding = self.here.iter().enumerate().filter(|(_, here)| here.tap.asked.pause);
        let held = holding.filter_map(|(place, here)| {
            let is_wanted = here.is_at(entry.name()) && here.wants(flow, packet);
            let shown = || TapPacket {
                flow: self.flow,
                node: entry.name().to_string(),
                at_us: now_ns() / 1000,
                input: entry.kind().port_name(input),
                packet: self.view.show(flow, packet),
            };
            Some((1 << place, here.tap.hold(self.flow, is_wanted, shown)?))
        });
        held.collect()
    }

    /// Shows what a node has made of a packet.
    fn leaves<'a>(
        &self,
        flow: &Flow,
        entry: &Entry,
        wanted: Wanted,
        begun_ns: u64,
        step: Step<'a>,
    ) -> Step<'a> {
        let (outcome, packet) = match &step {
            Step::Reply(reply) => ("reply".into(), reply.clone().unwrap_or(Value::Null)),
            Step::Pass(port, packet) => (entry.kind().port_name(*port), packet.clone()),
            Step::Fail(error) => ("error".into(), Value::text(&*error.to_string())),
            Step::Wait(_) => return step,
        };
        let now_ns = now_ns();
        let took_us = now_ns.saturating_sub(begun_ns) / 1000;
        let what = Happened::Leaves(outcome, took_us);
        let event = Event { node: entry.name().clone(), at_us: now_ns / 1000, what, packet };
        for (place, here) in self.here.iter().enumerate().filter(|(at, _)| wanted >> at & 1 == 1) {
            match here.tap.asked.way {
                true => drop(self.show_in_way(flow, place, &event)),
                false => here.tap.say(self.line(flow, &event)),
            }
        }
        step
    }

    /// Shows an event as part of the whole way, or keeps it. Whether it was shown or kept.
    fn show_in_way(&self, flow: &Flow, place: usize, event: &Event) -> bool {
        let (here, mut ways) = (&self.here[place], self.ways.borrow_mut());
        let way = &mut ways[place];
        if let Way::Perhaps(kept) = way {
            if kept.len() < KEPT_MAX {
                kept.push(event.clone());
            }
            let is_asked_for = here.tap.asked.node.is_none() || here.is_at(&event.node);
            if !is_asked_for {
                return true;
            }
            if !here.tap.takes() {
                *way = Way::No;
                return false;
            }
            let Way::Perhaps(kept) = std::mem::replace(way, Way::Yes) else { return false };
            drop(ways);
            kept.iter().for_each(|event| here.tap.say(self.line(flow, event)));
            return true;
        }
        let is_shown = matches!(way, Way::Yes);
        drop(ways);
        if is_shown {
            here.tap.say(self.line(flow, event));
        }
        is_shown
    }

    fn line(&self, flow: &Flow, event: &Event) -> TapLine {
        let (node, at_us) = (event.node.to_string(), event.at_us);
        let packet = self.view.show(flow, &event.packet);
        match event.what.clone() {
            Happened::Comes(input) => {
                TapLine::Packet(TapPacket { flow: self.flow, node, at_us, input, packet })
            }
            Happened::Leaves(outcome, took_us) => {
                TapLine::Step(TapStep { flow: self.flow, node, at_us, took_us, outcome, packet })
            }
        }
    }
}

impl Drop for FlowTaps {
    fn drop(&mut self) {
        for (here, way) in self.here.iter().zip(self.ways.get_mut()) {
            let tap: &Tap = &here.tap;
            if matches!(way, Way::Yes) {
                tap.say(TapLine::Ended(self.flow));
            }
            tap.ended(self.flow);
        }
    }
}
