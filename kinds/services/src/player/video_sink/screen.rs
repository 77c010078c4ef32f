//! The screen: shows each picture when its time has come.

use std::time::Duration;

use axum::body::Bytes;
use sinew_core::Fault;
use sinew_core::clock::now_ns;
use sinew_media::{Order, PictureHead, PlayState};
use sinew_pictures::messages::{Picture, PlayClock, PlayOrder};
use sinew_runtime::ServiceIo;
use sinew_runtime::service::tell;

use super::outputs::Outputs;
use super::shown::{Figures, Moment, State};
use super::window::{Window, candidate};
use crate::player::clock::Clock;
use crate::player::complaint::Complaint;
use crate::player::orders::Wanted;
use crate::player::presenter::{Fate, Presenter};

const IN: usize = 0;
const CLOCK: usize = 1;
const ORDERS: usize = 2;

/// Interval between two polls of the inputs and the clock, ns.
const LOOK_NS: u64 = 5_000_000;
/// Interval between two states for the viewers, ns.
const STATE_NS: u64 = 100_000_000;
/// Interval between two orders to start, while the sound waits for the picture, ns.
const START_NS: u64 = 50_000_000;
/// Without a clock every picture is due.
const ALWAYS_NS: u64 = 1 << 62;

/// The screen.
pub(super) struct Screen {
    outputs: Outputs,
    repeats: bool,
    window: Window,
    presenter: Presenter,
    figures: Figures,
    heard: Option<PlayClock>,
    /// The JPEG of the next picture, and that picture's number.
    ready: Option<(u64, Bytes)>,
    /// Time of the last order to the sound to start.
    started_ns: u64,
    told_ns: u64,
    is_frozen: bool,
    bad: Complaint,
}

impl Screen {
    /// Nothing has been shown yet.
    pub(super) fn new(outputs: Outputs, repeats: bool) -> Screen {
        Screen {
            outputs,
            repeats,
            window: Window::default(),
            presenter: Presenter::default(),
            figures: Figures::default(),
            heard: None,
            ready: None,
            started_ns: 0,
            told_ns: 0,
            is_frozen: false,
            bad: Complaint::default(),
        }
    }

    /// Shows pictures until the service must end; returns the outputs.
    pub(super) fn run(mut self, io: &mut ServiceIo) -> Result<Outputs, Fault> {
        while io.wait(Duration::from_nanos(self.left_ns().min(LOOK_NS))) {
            self.look(io)?;
            self.heed_orders(io)?;
            self.present(io)?;
            self.prepare(io)?;
            self.window.free(io, IN)?;
            self.tell()?;
        }
        let (most_ms, n) = self.figures.difference();
        let (tally, copies) = (self.presenter.tally(), self.figures.copies());
        tell(format_args!(
            "shown {} pictures: {} late, {} dropped, {} repeated, {copies} copied; sound and \
             picture at most {most_ms:.1} ms apart ({n} times measured)",
            tally.shown, tally.late, tally.dropped, tally.repeated
        ));
        Ok(self.outputs)
    }

    fn clock(&self) -> Clock {
        let always = PlayClock { position_ns: ALWAYS_NS, ..PlayClock::default() };
        let serial = self.presenter.serial();
        match &self.heard {
            Some(heard) => Clock::of(heard),
            None => Clock::of(&PlayClock { serial, ..always }),
        }
    }

    fn left_ns(&self) -> u64 {
        let candidates = self.window.candidates();
        self.presenter.left_ns(candidates, &self.clock(), now_ns()).unwrap_or(u64::MAX)
    }

    /// Reads what has come.
    fn look(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        if let Some(clock) = io.receive::<PlayClock>(CLOCK)? {
            // These are orders that an earlier life of this node has given.
            self.presenter.adopt(clock.serial);
            self.heard = Some(clock);
        } else if self.heard.is_none() && io.is_linked(CLOCK) {
            // The sound has not begun: its clock is at the beginning.
            self.heard = Some(PlayClock::default());
        }
        let bad = self.window.bad;
        self.window.look(io, IN)?;
        self.bad.add(self.window.bad - bad, |count| {
            format!("{count} pictures had a head that is not valid; they were left out")
        });
        Ok(())
    }

    /// Passes on the orders of viewers.
    fn heed_orders(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        while let Some(wanted) = self.outputs.watchers().and_then(|it| it.next_order()) {
            self.order(io, wanted)?;
        }
        let state = self.clock().state;
        let has_ended = state == PlayState::Ended && self.clock().serial == self.presenter.serial();
        if self.repeats && has_ended {
            self.order(io, Wanted { order: Order::Seek, serial: 0, value: 0 })?;
        }
        Ok(())
    }

    fn order(&mut self, io: &mut ServiceIo, wanted: Wanted) -> Result<(), Fault> {
        if wanted.order == Order::Seek {
            let serial = self.presenter.serial().wrapping_add(1);
            self.presenter.go_to(serial, wanted.value);
            self.ready = None;
        }
        self.send(io, wanted.order, wanted.value)
    }

    fn send(&mut self, io: &mut ServiceIo, order: Order, value: u64) -> Result<(), Fault> {
        let serial = self.presenter.serial();
        io.send(ORDERS, &PlayOrder { value, serial, what: order as u32 }).map(drop)
    }

    /// Shows the picture that is due, and releases those that will not be shown.
    fn present(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let (clock, now_ns) = (self.clock(), now_ns());
        let waiting: Vec<_> = self.window.waiting().map(|(at, head)| (at, *head)).collect();
        let mut fates = vec![];
        let candidates = waiting.iter().map(|(_, head)| candidate(head));
        self.presenter.judge(candidates, &clock, now_ns, |at, fate| fates.push((at, fate)));
        let mut has_shown = false;
        for (at, fate) in fates {
            let (place, head) = &waiting[at];
            match fate {
                Fate::Waits => continue,
                Fate::Goes => {}
                Fate::Shows => {
                    self.show(io, *place, head, &clock)?;
                    has_shown = true;
                }
            }
            self.window.done(*place);
        }
        if !has_shown {
            self.presenter.stand(&clock, now_ns);
        }
        self.look_whether_it_is_frozen();
        self.start_sound(io)
    }

    fn show(
        &mut self,
        io: &mut ServiceIo,
        place: usize,
        head: &PictureHead,
        clock: &Clock,
    ) -> Result<(), Fault> {
        if self.outputs.wants_pictures() {
            let ready = self.ready.take().filter(|(number, _)| *number == head.number);
            let jpeg = match ready {
                Some((_, jpeg)) => jpeg,
                None => self.encode(io, place, head)?,
            };
            self.outputs.show(&jpeg)?;
        }
        let shown_ns = now_ns();
        let showing = self.presenter.show(candidate(head), clock, shown_ns);
        self.figures.add(head, &showing);
        self.outputs.log(head, &showing, shown_ns, &self.presenter.tally())
    }

    fn encode(&self, io: &mut ServiceIo, place: usize, head: &PictureHead) -> Result<Bytes, Fault> {
        match io.ahead::<Picture>(IN, place as u32)? {
            Some(points) => self.outputs.encode(head, &points),
            None => Ok(Bytes::new()),
        }
    }

    /// Encodes the next picture in advance, so that it is ready when its time has come.
    fn prepare(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let serial = self.presenter.serial();
        let waiting = self.window.waiting().filter(|(_, head)| head.serial == serial);
        let Some((place, &head)) = waiting.min_by_key(|(_, head)| head.position_ns) else {
            return Ok(());
        };
        let is_ready = self.ready.as_ref().is_some_and(|(number, _)| *number == head.number);
        if !is_ready && self.outputs.wants_pictures() {
            self.ready = Some((head.number, self.encode(io, place, &head)?));
        }
        Ok(())
    }

    /// Lets the sound start once the first picture is shown.
    fn start_sound(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let (clock, now_ns) = (self.clock(), now_ns());
        let waits = clock.serial == self.presenter.serial() && clock.state == PlayState::Waiting;
        let is_told = now_ns < self.started_ns + START_NS;
        if !waits || self.presenter.shown().is_none() || is_told {
            return Ok(());
        }
        self.started_ns = now_ns;
        self.send(io, Order::Play, 0)
    }

    fn look_whether_it_is_frozen(&mut self) {
        let frozen_ns = self.presenter.frozen_ns(now_ns());
        if frozen_ns.is_some() != self.is_frozen {
            self.is_frozen = frozen_ns.is_some();
            tell(match self.is_frozen {
                true => "the picture is frozen: the sound goes on, and no picture comes",
                false => "the picture is in step with the sound again",
            });
        }
    }

    /// Publishes the player's state to the viewers.
    fn tell(&mut self) -> Result<(), Fault> {
        let now_ns = now_ns();
        if now_ns < self.told_ns + STATE_NS {
            return Ok(());
        }
        self.told_ns = now_ns;
        if let Some(watchers) = self.outputs.watchers() {
            let state = State::of(&Moment {
                figures: &self.figures,
                tally: self.presenter.tally(),
                clock: self.heard.as_ref(),
                pictures: self.window.len(),
                frozen_ns: self.presenter.frozen_ns(now_ns),
                now_ns,
            });
            watchers.tell(serde_json::to_string(&state).expect("plain values"));
        }
        // The log is read by people while it grows.
        self.outputs.flush()
    }
}
