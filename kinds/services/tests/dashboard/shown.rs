//! A run with a dashboard, on a thread of its own.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle, sleep};
use std::time::Instant;

use sinew_control::status::{Event, EventKind};
use sinew_runtime::run::{Outcome, Run, RunRequest};

use crate::stage::{LOOK, PATIENCE, request, story, texts};

/// A probe in the core, its dashboard, and a camera.
const GRAPH: &str = "
name: shown
hold: true
domains:
  core: {realtime: {period: 2ms, overrun: {policy: count}}}
  page: {restart: {backoff: 10ms}}
  film: {}
nodes:
  - {kind: probe, name: probe, domain: core}
  - {kind: film, name: film, domain: film, ports: {out: [{name: page, port: image, capacity: 4}]}}
  - kind: dashboard
    name: page
    domain: page
    listen: 127.0.0.1:0
    ports: {command: [{name: probe, port: command, capacity: 8}]}
";

/// The run.
pub(crate) struct Shown {
    thread: Option<JoinHandle<Outcome>>,
    stop: Arc<AtomicBool>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Shown {
    /// Starts the run, with these parameters instead of the spec's.
    pub(crate) fn start(overrides: &[(&str, &str)]) -> Shown {
        Shown::of(GRAPH, overrides)
    }

    /// Starts it beside a second dashboard, which is before it in the spec and has no links.
    pub(crate) fn start_beside_another() -> Shown {
        let another = "nodes:
  - {kind: dashboard, name: aside, domain: aside, listen: 127.0.0.1:0}";
        let text = GRAPH.replace("film: {}", "film: {}\n  aside: {}").replace("nodes:", another);
        Shown::of(&text, &[])
    }

    fn of(text: &str, overrides: &[(&str, &str)]) -> Shown {
        let request = request(text, PathBuf::from("."), overrides);
        let (stop, events) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let work = (Arc::clone(&stop), Arc::clone(&events));
        let thread = thread::spawn(move || drive(request, &work.0, &work.1));
        Shown { thread: Some(thread), stop, events }
    }

    /// The last address that the dashboard announced, and the token.
    pub(crate) fn address(&self) -> (String, String) {
        self.address_of("page")
    }

    /// The same for the dashboard in a domain.
    pub(crate) fn address_of(&self, domain: &str) -> (String, String) {
        self.until("the dashboard announces itself", |shown| {
            let events = shown.events();
            let ours = events.iter().rev().filter(|it| it.domain.as_deref() == Some(domain));
            let (address, token) =
                ours.into_iter().find_map(|it| it.text.split_once("/#token="))?;
            let address = address.strip_prefix("http://").expect("the page's address");
            Some((address.to_owned(), token.to_owned()))
        })
    }

    /// The events so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.lock().expect("nobody panicked").clone()
    }

    /// The texts of the events of a kind in a domain.
    pub(crate) fn texts(&self, what: EventKind, domain: &str) -> Vec<String> {
        texts(self.events().iter(), what, domain).into_iter().map(str::to_owned).collect()
    }

    /// Waits for something, which is described by `what`.
    pub(crate) fn until<T>(&self, what: &str, mut found: impl FnMut(&Shown) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}: {}", self.story());
            sleep(LOOK);
        }
    }

    /// Stops it without waiting for the end.
    pub(crate) fn tell_to_stop(&self) {
        // Read by a thread that polls it.
        self.stop.store(true, Relaxed);
    }

    /// Stops it, in order.
    pub(crate) fn stop(mut self) {
        self.tell_to_stop();
        let ended = self.thread.take().expect("stopped once").join();
        assert_eq!(ended.ok(), Some(Outcome::Stopped), "{}", self.story());
    }

    fn story(&self) -> String {
        story(self.events().iter())
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.tell_to_stop();
        if let Some(thread) = self.thread.take() {
            // A test that fails has given the reason.
            let _ = thread.join();
        }
    }
}

/// Lets the run go on until it must stop, and notes its events.
fn drive(request: RunRequest, stop: &AtomicBool, events: &Mutex<Vec<Event>>) -> Outcome {
    let mut run = Run::start(request).expect("it starts");
    let mut told = None;
    while run.poll(LOOK, &mut |_, _| ()) {
        if told.is_none() && stop.load(Relaxed) {
            told = Some(Instant::now());
            run.stop();
        }
        assert!(told.is_none_or(|told| told.elapsed() < PATIENCE), "it does not stop");
        let mut events = events.lock().expect("nobody panicked");
        let newest = events.last().map_or(0, |event| event.number);
        events.extend(run.events().after(newest).cloned());
    }
    run.outcome()
}
