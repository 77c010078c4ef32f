//! The supervisor of a run, as the processes that it has started ask it.

use std::fmt;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use sinew_core::fault::{Cause, Fault};

use crate::client::Connection;
use crate::status::{Event, Status};
use crate::{Answer, Request};

/// The supervisor of the run, who may be asked from any thread. It answers within a millisecond, if
/// the machine lets it; each call waits for that, and for the calls of other threads.
#[derive(Clone, Debug)]
pub struct Supervisor(Arc<Mutex<Option<Connection>>>);

impl Supervisor {
    /// Over a connection that it has made.
    pub fn over(stream: UnixStream) -> Supervisor {
        Supervisor(Arc::new(Mutex::new(Some(Connection::over(stream)))))
    }

    /// Asks for anything but the log.
    ///
    /// # Errors
    /// The supervisor does not answer, or is gone: then this process is to end too.
    pub fn ask(&self, request: &Request) -> Result<Answer, Fault> {
        self.talk(|connection| connection.ask(request).map_err(|error| silent(&error)))
    }

    /// An exchange, all of it. Half of one, after an error or a panic, is the last: what is still
    /// under way must not be taken for the answer to something else.
    fn talk<T>(&self, talk: impl FnOnce(&mut Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = place.take();
        let mut connection =
            connection.ok_or_else(|| silent(&"it left an earlier question without an answer"))?;
        let answer = talk(&mut connection)?;
        *place = Some(connection);
        Ok(answer)
    }

    /// The run, as it is now.
    ///
    /// # Errors
    /// As for [`Supervisor::ask`].
    pub fn status(&self) -> Result<Status, Fault> {
        match self.ask(&Request::Status {})? {
            Answer::Status(status) => Ok(*status),
            other => Err(unexpected(&other)),
        }
    }

    /// The events after number `after` that the run still keeps, and how many it keeps no more.
    ///
    /// # Errors
    /// As for [`Supervisor::ask`].
    pub fn events(&self, after: u64) -> Result<(Vec<Event>, u64), Fault> {
        let request = Request::Log { after, follow: false };
        self.talk(|connection| {
            let mut answer = connection.ask(&request).map_err(|error| silent(&error))?;
            let (mut events, mut missed) = (Vec::new(), 0);
            loop {
                match answer {
                    Answer::Event(event) => events.push(event),
                    Answer::Missed(count) => missed += count,
                    Answer::End(_) => return Ok((events, missed)),
                    other => return Err(unexpected(&other)),
                }
                answer = connection.next_in_time().map_err(|error| silent(&error))?;
            }
        })
    }

    /// Gives an order. What comes of it, in words.
    ///
    /// # Errors
    /// Why it is not carried out, in words.
    pub fn order(&self, request: &Request) -> Result<String, String> {
        match self.ask(request).map_err(|fault| fault.to_string())? {
            Answer::Done { text, .. } => Ok(text),
            Answer::Error(text) => Err(text),
            other => Err(unexpected(&other).to_string()),
        }
    }
}

fn silent(error: &dyn fmt::Display) -> Fault {
    Fault::new(Cause::System, format_args!("the supervisor: {error}"))
}

fn unexpected(answer: &Answer) -> Fault {
    Fault::new(Cause::System, format_args!("the supervisor answered {answer:?}"))
}
