//! Questions and answers that wait to be sent, between those who ask or answer, who must not wait,
//! and the thread that may. The room of calls bounds their number.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::call::{Question, Reply};
use crate::room::CALLS_MAX;

/// Most answers that wait to be sent: all that have a place, and as many that have found none.
const ANSWERS_MAX: usize = 2 * CALLS_MAX;

/// What is to be sent next.
pub(crate) enum Say {
    /// A question, with its number among all of its key.
    Ask(Question, u64),
    /// An answer.
    Answer(Reply),
}

/// All questions and answers that wait.
pub(crate) struct SayQueue {
    places: Mutex<Places>,
    wake: Condvar,
}

struct Places {
    questions: VecDeque<Question>,
    answers: VecDeque<Reply>,
    /// Questions sent so far, of each key.
    sequences: Vec<u64>,
    /// The line whose thread may take. The thread of an earlier one may still hang in its last
    /// send.
    line: u64,
    /// Since when the thread has been sending one.
    busy: Option<Instant>,
}

impl SayQueue {
    /// An empty queue for so many keys.
    pub(crate) fn new(keys: usize) -> SayQueue {
        let (questions, answers) = (VecDeque::new(), VecDeque::new());
        let sequences = vec![0; keys];
        let places = Places { questions, answers, sequences, line: 0, busy: None };
        SayQueue { places: Mutex::new(places), wake: Condvar::new() }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a question; never waits for the network.
    pub(crate) fn ask(&self, question: Question) {
        self.places().questions.push_back(question);
        self.wake.notify_one();
    }

    /// Queues an answer in the same way. If too many wait, it is dropped, and its call is lost.
    pub(crate) fn answer(&self, reply: Reply) {
        let mut places = self.places();
        if places.answers.len() < ANSWERS_MAX {
            places.answers.push_back(reply);
            drop(places);
            self.wake.notify_one();
        }
    }

    /// What the thread of `line` is to send next; blocks until there is something. `None`: another
    /// line sends now, or none does. Answers go first: each of them releases a caller.
    pub(crate) fn next(&self, line: u64) -> Option<Say> {
        let mut places = self.places();
        places.busy = None;
        while places.line == line {
            let answer = places.answers.pop_front().map(Say::Answer);
            let said = answer.or_else(|| {
                let question = places.questions.pop_front()?;
                let sequence = &mut places.sequences[question.at];
                *sequence += 1;
                let sequence = *sequence;
                Some(Say::Ask(question, sequence))
            });
            if said.is_some() {
                places.busy = Some(Instant::now());
                return said;
            }
            places = self.wake.wait(places).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Another line begins, or none: the thread of the one before ends as soon as it can. What was
    /// not sent yet is dropped, and its callers get no answer: its time is over soon, and nobody
    /// knows when the next line works.
    pub(crate) fn begin_line(&self) -> u64 {
        let mut places = self.places();
        places.line += 1;
        places.busy = None;
        let (line, questions) = (places.line, std::mem::take(&mut places.questions));
        places.answers.clear();
        drop(places);
        // Dropped outside of the lock: a caller that is told may ask again at once.
        drop(questions);
        self.wake.notify_all();
        line
    }

    /// Since when the thread has been sending one.
    pub(crate) fn busy(&self) -> Option<Instant> {
        self.places().busy
    }
}
