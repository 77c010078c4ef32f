//! What a run says of itself, again and again.

use std::collections::VecDeque;
use std::io;

use sinew_control::client::{ANSWER_WITHIN, Connection};
use sinew_control::status::{Event, Status};
use sinew_control::{Answer, Request};

use crate::reach::{Fate, Reached};

/// Events that can be scrolled to.
const EVENTS_MAX: usize = 200;

/// A run, as last heard of.
pub(super) struct Feed {
    connection: Connection,
    /// What it looks like.
    pub(super) status: Status,
    /// What happened, oldest first.
    pub(super) events: VecDeque<Event>,
    /// How it ended, if it has.
    pub(super) fate: Fate,
    follows: bool,
}

impl Feed {
    /// Of a run that was reached.
    pub(super) fn new(run: Reached) -> Feed {
        Feed {
            connection: run.connection,
            status: run.status,
            events: VecDeque::new(),
            // The log, from its beginning, tells the rest.
            fate: Fate::default(),
            follows: false,
        }
    }

    /// Asks again. Whether the run is still there.
    ///
    /// # Errors
    /// If it does not answer.
    pub(super) fn refresh(&mut self) -> io::Result<bool> {
        if !self.follows {
            self.follows = true;
            // If it cannot be sent, nothing will come, and that is the end of the run.
            let _ = self.connection.send(&Request::Log { after: 0, follow: true });
        }
        // As above. What the run said before it ended can still be read.
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
                // Events that were missed are further back than anybody scrolls.
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
