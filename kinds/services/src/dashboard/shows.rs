//! What the node's thread does at each poll: takes the cycles, and shows the results.

use std::sync::Arc;

use axum::body::Bytes;
use sinew_control::status::{Phase, Status};
use sinew_control::{Answer, Request, Tunable};
use sinew_core::clock::now_ns;
use sinew_core::{Fault, fault};
use sinew_pictures::messages;
use sinew_pictures::picture::{PictureView, jpeg, read_head};
use sinew_robot::messages::PlannerCommand;
use sinew_runtime::ServiceIo;
use sinew_runtime::watch::Watch;
use tokio::runtime::Handle;

use super::cycles::Cycles;
use super::figures::Rates;
use super::frame::{self, Motion};
use super::hub::{Hub, Wish};
use super::protocol::{CycleCosts, Hello, StopTimes, Text};
use super::scopes::Scopes;
use super::{COMMAND, IMAGE};

/// Interval between two polls of the status; figures are sent with it.
const STATUS_NS: u64 = 500_000_000;
/// Interval between two polls of the events.
const EVENTS_NS: u64 = 200_000_000;

/// Interval between two images: 15 Hz, which looks smooth and needs little of the network.
const IMAGE_NS: u64 = 1_000_000_000 / 15;
/// Interval between two frames with the values of ports: 10 Hz, as fast as people read.
const VALUES_NS: u64 = 100_000_000;
/// Most frames taken in a poll: a camera at 60 Hz leaves two, and after a pause a full link.
const FRAMES_MAX: usize = 16;
/// Quality of the JPEGs, 1 to 100.
const IMAGE_QUALITY: u8 = 75;

/// What has been shown, and what comes next.
pub(super) struct Shows {
    hub: Arc<Hub>,
    /// The thread of the viewers.
    server: Handle,
    cycles: Cycles,
    scopes: Scopes,
    /// Whether the core ran at the last poll of the status.
    is_running: bool,
    rates: Rates,
    /// When the cycles were last read, monotonic ns.
    looked_ns: u64,
    /// Number of frames so far.
    frames: u32,
    /// Number of the last command.
    sequence: u64,
    image_due_ns: u64,
    values_due_ns: u64,
    status_due_ns: u64,
    events_due_ns: u64,
    /// Number of the last event.
    event: u64,
    stop: Option<StopTimes>,
    /// The tunables at the last poll; `None`: this graph has none.
    tunables: Option<Vec<Tunable>>,
}

impl Shows {
    /// Nothing has been shown yet.
    pub(super) fn new(watch: &Watch, hello: &Hello, hub: Arc<Hub>, server: Handle) -> Shows {
        Shows {
            hub,
            server,
            cycles: Cycles::new(watch.plan(), watch.clock(), watch.life(), hello),
            scopes: Scopes::new(watch),
            is_running: true,
            rates: Rates::default(),
            looked_ns: 0,
            frames: 0,
            // A former life of this service has counted commands too, and a number that was used
            // already is not a new command. So each life begins with a number that no other has
            // used.
            sequence: now_ns(),
            image_due_ns: 0,
            values_due_ns: 0,
            status_due_ns: 0,
            events_due_ns: 0,
            event: 0,
            stop: None,
            tunables: (0..watch.plan().nodes.len())
                .any(|node| watch.plan().tuning(node).is_some())
                .then(Vec::new),
        }
    }

    /// Polls the run, and shows it to the viewers.
    ///
    /// # Errors
    /// The supervisor is gone, or a link is broken.
    pub(super) fn look(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        for wish in self.hub.take_wishes() {
            self.carry_out(io, &wish)?;
        }
        // An image takes a while to encode, so it comes before the reading of what must be new.
        // Both are then sent together, also over the network.
        let image = self.take_image(io)?;
        self.scopes.carry_out(&self.hub, self.hub.take_scope_wishes(), now_ns());
        self.cycles.read(io.watch(), |id, record| self.scopes.take(id, record));
        self.looked_ns = now_ns();
        self.scopes.show(&self.hub, &self.server, self.is_running, self.looked_ns);
        let is_stopping = self.cycles.is_stopping();
        if let Some(motion) = self.take_motion(io.watch()) {
            let values = self.take_values();
            self.show(move |hub| {
                hub.motion.send_replace(motion);
                image.into_iter().for_each(|image| drop(hub.image.send_replace(image)));
                values.into_iter().for_each(|values| drop(hub.values.send_replace(values)));
            });
        }
        if self.hub.viewers() == 0 {
            self.hub.forget();
            return Ok(());
        }
        let now_ns = now_ns();
        if now_ns >= self.events_due_ns {
            self.events_due_ns = now_ns + EVENTS_NS;
            self.show_events(io.watch())?;
        }
        // While the core stops, people wait for the figures of the stop.
        if now_ns >= self.status_due_ns || is_stopping {
            self.status_due_ns = now_ns + STATUS_NS;
            self.show_status(io.watch())?;
            self.show_tunables(io.watch())?;
        }
        Ok(())
    }

    /// Shows something from the server's thread: there, waking the viewers needs no system call,
    /// but from this thread each viewer would need one.
    fn show(&self, show: impl FnOnce(&Hub) + Send + 'static) {
        let hub = Arc::clone(&self.hub);
        self.server.spawn(async move { show(&hub) });
    }

    /// What moved, if there are viewers.
    fn take_motion(&mut self, watch: &Watch) -> Option<Bytes> {
        let (threads, path) = self.cycles.take_motion(|id| watch.lost(id));
        if self.hub.viewers() == 0 {
            return None;
        }
        self.frames = self.frames.wrapping_add(1);
        Some(frame::motion(&Motion {
            sequence: self.frames,
            now_ms: now_ns() as f64 / 1e6,
            threads: &threads,
            signals: &self.cycles.signals,
            path: &path,
        }))
    }

    /// The newest messages of ports, if a viewer wants them and it is time.
    fn take_values(&mut self) -> Option<Bytes> {
        let now_ns = now_ns();
        if !self.hub.wants_values() || now_ns < self.values_due_ns {
            return None;
        }
        self.values_due_ns = now_ns + VALUES_NS;
        Some(frame::values(self.frames, now_ns as f64 / 1e6, &self.cycles.ports.take()))
    }

    /// Takes the frames of the camera, so that none is old, and returns an image if it is time. It
    /// encodes at most one, and takes a limited number: if encoding takes longer than a camera's
    /// period, there would always be another frame.
    fn take_image(&mut self, io: &mut ServiceIo) -> Result<Option<Bytes>, Fault> {
        let mut image = None;
        let mut is_due = self.hub.wants_images() && now_ns() >= self.image_due_ns;
        for _ in 0..FRAMES_MAX {
            let Some(frame) = io.peek::<messages::Picture>(IMAGE)? else { break };
            if std::mem::take(&mut is_due) {
                // Counted from when it was due: frames come at any time, and the rate must not
                // fall.
                let (now_ns, due_ns) = (now_ns(), self.image_due_ns + IMAGE_NS);
                self.image_due_ns = if due_ns > now_ns { due_ns } else { now_ns + IMAGE_NS / 2 };
                let head = read_head(|bytes| frame.read_at(0, bytes));
                let picture = PictureView::new(head, &frame).map_err(|bad| fault!("{bad}"))?;
                let jpeg = jpeg::encode(&picture, IMAGE_QUALITY);
                let taken_ms = picture.head().time_ns as f64 / 1e6;
                image = Some(frame::image(picture.head().number as u32, taken_ms, &jpeg));
            }
            frame.release();
        }
        Ok(image)
    }

    fn show_events(&mut self, watch: &Watch) -> Result<(), Fault> {
        let (events, missed) = watch.supervisor().events(self.event)?;
        if let Some(newest) = events.last() {
            self.event = newest.number;
            self.show(move |hub| hub.show(&Text::Events { events: &events, missed }));
        }
        Ok(())
    }

    fn show_status(&mut self, watch: &Watch) -> Result<(), Fault> {
        let status = watch.supervisor().status()?;
        self.is_running = status.phase == Phase::Running;
        let figures = self.figures(watch, &status);
        let stop = status.stop.as_ref().map(|stop| self.cycles.stop(stop));
        let other = stop.clone().filter(|_| stop != self.stop);
        self.stop = stop;
        self.show(move |hub| {
            hub.show(&Text::Status { status: &status });
            hub.show(&Text::Figures(&figures));
            other.iter().for_each(|stop| hub.show(&Text::Stop(stop)));
        });
        Ok(())
    }

    /// Others set parameters too, so the tunables are polled.
    fn show_tunables(&mut self, watch: &Watch) -> Result<(), Fault> {
        let Some(known) = &mut self.tunables else { return Ok(()) };
        let Answer::Tunables(now) = watch.supervisor().ask(&Request::Tunables {})? else {
            return Ok(());
        };
        if *known != now {
            known.clone_from(&now);
            self.show(move |hub| hub.show(&Text::Tunables { tunables: &now }));
        }
        Ok(())
    }

    fn figures(&mut self, watch: &Watch, status: &Status) -> CycleCosts {
        CycleCosts {
            threads: self.cycles.figures(|id| watch.lost(id)),
            nodes: self.cycles.nodes(watch.plan()),
            links: self.rates.figures(self.looked_ns, &status.links, &self.cycles.written),
            viewers: self.hub.viewers(),
        }
    }

    /// Puts an order into the planner's mailbox, and answers whether it had room.
    fn carry_out(&mut self, io: &mut ServiceIo, wish: &Wish) -> Result<(), Fault> {
        self.sequence += 1;
        let Wish { id, what, path, .. } = *wish;
        let command = PlannerCommand { sequence: self.sequence, what, path };
        let text = match io.send(COMMAND, &command)? {
            true => Text::Done { id, text: "the planner is told" },
            false => Text::Error { id: Some(id), text: "the planner's mailbox is full; try again" },
        };
        // A viewer that is gone, or takes no answers, needs none.
        let _ = wish.answers.try_send(self.hub.encode(&text));
        Ok(())
    }
}
