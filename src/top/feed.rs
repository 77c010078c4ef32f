//! The status of a run, asked for again and again.

use std::collections::VecDeque;
use std::io;

use sinew_control::client::{ANSWER_WITHIN, Connection};
use sinew_control::status::{Event, Status};
use sinew_control::{Answer, Request};

use crate::reach::{Fate, Reached};

/// Most events that can be scrolled to.
const EVENTS_MAX: usize = 200;

/// A run, in its last known state.
pub(super) struct Feed {
    connection: Connection,
    /// Its last status.
    pub(super) status: Status,
    /// Its events, oldest first.
    pub(super) events: VecDeque<Event>,
    /// How it ended, if it has.
    pub(super) fate: Fate,
    follows: bool,
}

impl Feed {
    /// The feed of a run that was reached.
    pub(super) fn new(run: Reached) -> Feed {
        Feed {
            connection: run.connection,
            status: run.status,
            events: VecDeque::new(),
            // The rest comes from the log, which is read from its beginning.
            fate: Fate::default(),
            follows: false,
        }
    }

    /// Asks again. Returns whether the run still exists.
    ///
    /// # Errors
    /// If it does not answer.
    pub(super) fn refresh(&mut self) -> io::Result<bool> {
        if !self.follows {
            self.follows = true;
            // If the request cannot be sent, no answer comes, and this counts as the end of the
            // run.
            let _ = self.connection.send(&Request::Log { after: 0, follow: true });
        }
        // The same holds here. What the run said before it ended can still be read.
        let _ = self.connection.send(&Request::Status {});
        loop {
            match self.connection.next(Some(ANSWER_WITHIN))? {
                None => return Ok(false),
                Some(Answer::Status(status)) => {
                    self.status = *status;
                    return Ok(true);
                }
                Some(Answer::Event(event)) => self.take(event),
                Some(Answer::Error(text)) => return Err(io::Error::other(text)),
                // Missed events are older than anybody scrolls back to.
                Some(_) => {}
            }
        }
    }

    fn take(&mut self, event: Event) {
        self.fate.take(&event, &self.status);
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
