//! The supervisor of a run, as a client in the processes that it has started.

use std::fmt;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sinew_core::fault::{Cause, Fault};

use crate::client::Connection;
use crate::status::{Event, Status};
use crate::{Answer, Request};

/// The supervisor of the run. Any thread may ask it. It normally answers within a millisecond, if
/// the machine allows it. Each call blocks until the answer, and until the calls of other threads
/// are done.
#[derive(Clone, Debug)]
pub struct Supervisor(Arc<Mutex<Talk>>);

/// The connection, and whether an earlier answer must still arrive on it. An answer that came too
/// late must not be taken for the answer to another question.
#[derive(Debug)]
struct Talk {
    connection: Connection,
    /// Whether an answer to an earlier question is still to come: one line, or the lines of a log.
    is_owed: bool,
}

impl Supervisor {
    /// Over a connection that the supervisor has made.
    pub fn over(stream: UnixStream) -> Supervisor {
        let talk = Talk { connection: Connection::over(stream), is_owed: false };
        Supervisor(Arc::new(Mutex::new(talk)))
    }

    /// Sends any request except one for the log.
    ///
    /// # Errors
    /// The supervisor does not answer, or is gone. Then this process must end too.
    pub fn ask(&self, request: &Request) -> Result<Answer, Fault> {
        let mut talk = self.talk()?;
        talk.is_owed = true;
        let answer = talk.connection.ask(request).map_err(|error| silent(&error))?;
        talk.is_owed = false;
        Ok(answer)
    }

    /// The connection, after the rest of earlier answers has arrived.
    fn talk(&self) -> Result<MutexGuard<'_, Talk>, Fault> {
        let mut talk = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while talk.is_owed {
            let late = talk.connection.next_in_time().map_err(|error| silent(&error))?;
            talk.is_owed = !is_last(&late);
        }
        Ok(talk)
    }

    /// The current status of the run.
    ///
    /// # Errors
    /// As for [`Supervisor::ask`].
    pub fn status(&self) -> Result<Status, Fault> {
        match self.ask(&Request::Status {})? {
            Answer::Status(status) => Ok(*status),
            other => Err(unexpected(&other)),
        }
    }

    /// The events after number `after` that the run still keeps, and how many it no longer keeps.
    ///
    /// # Errors
    /// As for [`Supervisor::ask`].
    pub fn events(&self, after: u64) -> Result<(Vec<Event>, u64), Fault> {
        let request = Request::Log { after, follow: false };
        let mut talk = self.talk()?;
        talk.is_owed = true;
        let mut answer = talk.connection.ask(&request).map_err(|error| silent(&error))?;
        let (mut events, mut missed) = (Vec::new(), 0);
        loop {
            talk.is_owed = !is_last(&answer);
            match answer {
                Answer::Event(event) => events.push(event),
                Answer::Missed(count) => missed += count,
                Answer::End(_) => return Ok((events, missed)),
                other => return Err(unexpected(&other)),
            }
            answer = talk.connection.next_in_time().map_err(|error| silent(&error))?;
        }
    }

    /// Gives an order. Returns what comes of it, in words.
    ///
    /// # Errors
    /// Why the order is not carried out, in words.
    pub fn order(&self, request: &Request) -> Result<String, String> {
        match self.ask(request).map_err(|fault| fault.to_string())? {
            Answer::Done { text, .. } => Ok(text),
            Answer::Error(text) => Err(text),
            other => Err(unexpected(&other).to_string()),
        }
    }
}

/// Whether this is the last line of an answer: only a log has several lines.
fn is_last(answer: &Answer) -> bool {
    !matches!(answer, Answer::Event(_) | Answer::Missed(_))
}

fn silent(error: &dyn fmt::Display) -> Fault {
    Fault::new(Cause::System, format_args!("the supervisor: {error}"))
}

fn unexpected(answer: &Answer) -> Fault {
    Fault::new(Cause::System, format_args!("the supervisor answered {answer:?}"))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::thread;

    use super::*;

    /// A supervisor that reads a request for each `None`, and sends the line of each `Some`.
    fn answers(lines: Vec<Option<&'static str>>) -> Supervisor {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        thread::spawn(move || {
            let mut requests = BufReader::new(theirs.try_clone().expect("a descriptor")).lines();
            let mut theirs = theirs;
            for line in lines {
                match line {
                    None => assert!(requests.next().is_some_and(|line| line.is_ok())),
                    // The client may be gone.
                    Some(line) => drop(writeln!(theirs, "{line}")),
                }
            }
            requests.for_each(drop);
        });
        Supervisor::over(ours)
    }

    const REFUSED: &str = r#"{"sinew":1,"error":"not now"}"#;
    const DONE: &str = r#"{"sinew":1,"done":{"text":"yes","newest":1}}"#;

    #[test]
    fn an_answer_that_came_late_is_not_taken_for_the_next_one() {
        let supervisor = answers(vec![Some(REFUSED), None, Some(DONE)]);
        // As after a question whose answer did not arrive in time.
        supervisor.0.lock().expect("nobody has panicked").is_owed = true;
        assert_eq!(supervisor.order(&Request::Stop {}), Ok("yes".into()));
        assert!(!supervisor.0.lock().expect("as above").is_owed);
    }

    #[test]
    fn what_is_left_of_a_log_is_read_to_its_end_first() {
        let missed = r#"{"sinew":1,"missed":7}"#;
        let end = r#"{"sinew":1,"end":3}"#;
        let supervisor = answers(vec![Some(missed), Some(missed), Some(end), None, Some(DONE)]);
        supervisor.0.lock().expect("nobody has panicked").is_owed = true;
        assert_eq!(supervisor.order(&Request::Stop {}), Ok("yes".into()));
    }
}
