//! The scopes of all viewers, a few at most. The node's thread feeds them with every cycle; their
//! pictures are made on a thread that may take its time, at most one at once for each scope.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::extract::ws::Utf8Bytes;
use sinew_control::traces::RunLayout;
use sinew_core::clock::now_ns;
use sinew_core::pace::Pace;
use sinew_core::trace::{Record, ThreadId};
use sinew_runtime::watch::Watch;
use sinew_scope::{Doing, Scope, Sweep, find_one};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::hub::{Hub, ScopeAsk, ScopeWish};
use super::protocol::Text;
use super::protocol::scope::{SCOPES_MAX, ScopeLook, ScopePicture, ScopeWanted};
use super::scope_picture;

/// Interval between two pictures of a scope: 10 Hz.
const PICTURE_NS: u64 = 100_000_000;
/// After a slow picture the pause is longer: a scope makes pictures at most a fifth of the time.
const PAUSE_SHARE: u64 = 4;

/// All scopes.
pub(super) struct Scopes {
    layout: RunLayout,
    rows: Vec<Row>,
}

struct Row {
    key: u64,
    names: Vec<String>,
    scope: Scope,
    look: Arc<ScopeLook>,
    pictures: watch::Sender<Utf8Bytes>,
    due_ns: u64,
    /// From when on the next picture may be made, monotonic ns; [`u64::MAX`] while one is being
    /// made.
    free_ns: Arc<AtomicU64>,
    /// The content of the last picture: the next is made only if something differs.
    last: Option<(u64, Doing, Option<String>)>,
    /// Time of its newest cycle, monotonic ns.
    heard_ns: u64,
}

impl Scopes {
    /// No scopes yet.
    pub(super) fn new(watch: &Watch) -> Scopes {
        Scopes { layout: RunLayout::of(watch.plan(), Pace::AsPlanned), rows: Vec::new() }
    }

    /// Carries out the viewers' orders, and answers.
    pub(super) fn carry_out(&mut self, hub: &Hub, wishes: Vec<ScopeWish>, now_ns: u64) {
        for ScopeWish { key, ask, answers, pictures } in wishes {
            let (id, outcome) = match ask {
                ScopeAsk::Set(wanted) => {
                    (wanted.id, self.set(key, *wanted, pictures, now_ns).map(|()| "it is set"))
                }
                ScopeAsk::Arm(id) => (id, self.arm(key)),
                ScopeAsk::Close(id) => {
                    self.rows.retain(|row| row.key != key);
                    (id, Ok("the scope is closed"))
                }
            };
            let text = match &outcome {
                Ok(text) => Text::Done { id, text },
                Err(text) => Text::Error { id: Some(id), text },
            };
            // A viewer that is gone, or takes no answers, needs none.
            let _ = answers.try_send(hub.encode(&text));
        }
        // The scope of a viewer that is gone is removed.
        self.rows.retain(|row| !row.pictures.is_closed());
        hub.captures.keep(|key| self.rows.iter().any(|row| row.key == key));
    }

    fn set(
        &mut self,
        key: u64,
        wanted: ScopeWanted,
        pictures: watch::Sender<Utf8Bytes>,
        now_ns: u64,
    ) -> Result<(), String> {
        wanted.check()?;
        let ScopeWanted { traces: names, settings, look, frozen, .. } = wanted;
        let place = self.rows.iter().position(|row| row.key == key);
        // Traces that stay keep their past.
        let row = match place.filter(|&place| self.rows[place].names == names) {
            Some(place) => {
                self.rows[place].scope.set(settings)?;
                &mut self.rows[place]
            }
            None => {
                if place.is_none() && self.rows.len() >= SCOPES_MAX {
                    return Err(format!(
                        "{SCOPES_MAX} scopes are open already, the limit; close one on another page"
                    ));
                }
                let traces: Result<Vec<_>, _> =
                    names.iter().map(|name| find_one(&self.layout, name)).collect();
                let scope = Scope::new(&self.layout, traces?, settings)?;
                let row = Row {
                    key,
                    names,
                    scope,
                    look: Arc::default(),
                    pictures,
                    due_ns: 0,
                    free_ns: Arc::default(),
                    last: None,
                    heard_ns: now_ns,
                };
                self.rows.retain(|row| row.key != key);
                self.rows.push(row);
                self.rows.last_mut().expect("it was just put there")
            }
        };
        row.look = Arc::new(look);
        if frozen != (row.scope.doing() == Doing::Frozen) {
            row.scope.freeze(frozen);
        }
        (row.last, row.due_ns) = (None, 0);
        Ok(())
    }

    fn arm(&mut self, key: u64) -> Result<&'static str, String> {
        let row = self.rows.iter_mut().find(|row| row.key == key);
        let row = row.ok_or("there is no scope; choose a trace first")?;
        row.scope.arm();
        row.last = None;
        Ok("it waits for the trigger")
    }

    /// Takes a cycle.
    pub(super) fn take(&mut self, id: ThreadId, record: &Record) {
        for row in &mut self.rows {
            row.scope.take(id, record);
            row.heard_ns = row.heard_ns.max(record.start_ns());
        }
    }

    /// Makes the picture of each scope, if it is time and something has changed.
    pub(super) fn show(&mut self, hub: &Arc<Hub>, server: &Handle, is_running: bool, now_ns: u64) {
        for row in &mut self.rows {
            row.show(hub, server, is_running, now_ns);
        }
    }
}

impl Row {
    fn show(&mut self, hub: &Arc<Hub>, server: &Handle, is_running: bool, now_ns: u64) {
        // It orders no other memory: the picture goes through the viewer's `watch`.
        if now_ns < self.due_ns.max(self.free_ns.load(Relaxed)) {
            return;
        }
        self.due_ns = now_ns + PICTURE_NS;
        let ended = self.ended(is_running, now_ns);
        let capture = self.scope.capture();
        let is_rolling = self.scope.doing() == Doing::Rolling && ended.is_none();
        let seen = (capture.number, self.scope.doing(), ended.clone());
        if !is_rolling && self.last.as_ref() == Some(&seen) {
            return;
        }
        self.last = Some(seen);
        let mut picture = ScopePicture {
            key: self.key,
            number: 0,
            doing: self.scope.doing(),
            triggered: false,
            window_s: [0.0; 2],
            span_s: [0.0; 2],
            lost: self.scope.lost(),
            life: self.scope.life(),
            ended,
            traces: Vec::new(),
            xy: None,
            spectrum: None,
            step: None,
            bode: None,
        };
        hub.captures.put(self.key, &capture);
        let (look, pictures) = (Arc::clone(&self.look), self.pictures.clone());
        let (free, hub) = (Free(Arc::clone(&self.free_ns), now_ns), Arc::clone(hub));
        self.free_ns.store(u64::MAX, Relaxed);
        server.spawn_blocking(move || {
            let _free = free;
            scope_picture::fill(&mut picture, &capture, &look);
            pictures.send_replace(hub.encode(&Text::Scope(&picture)));
        });
    }

    /// Why nothing new comes, if that is so.
    fn ended(&mut self, is_running: bool, now_ns: u64) -> Option<String> {
        let silent_ns = now_ns.saturating_sub(self.heard_ns);
        if !self.scope.idle(silent_ns) {
            return None;
        }
        let is_done = matches!(self.scope.settings().sweep, Sweep::Single)
            && self.scope.doing() == Doing::Done;
        let what = if is_done { "the capture stays" } else { "what is shown is its last" };
        Some(match is_running {
            true => format!("no cycle comes from the core any more; {what}"),
            false => format!("the core has stopped; {what}, until it is started again"),
        })
    }
}

/// Allows the next picture, even if making this one panicked. The pause before it depends on how
/// long this picture took.
struct Free(Arc<AtomicU64>, u64);

impl Drop for Free {
    fn drop(&mut self) {
        let now_ns = now_ns();
        self.0.store(now_ns + PAUSE_SHARE * now_ns.saturating_sub(self.1), Relaxed);
    }
}
