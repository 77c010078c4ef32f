//! What a run answers to those who ask through its control socket: people and their scripts, and
//! its own services.

use super::Run;
use crate::control::{Answer, Asked, Request};
use crate::status::EventKind;

impl Run {
    /// Answers whoever has asked.
    pub(super) fn answer(&mut self) {
        for asked in self.server.receive() {
            let answer = match self.carry_out(&asked) {
                Ok(answer) => answer,
                Err(text) => Answer::Error(text),
            };
            self.server.answer(asked.peer, &answer);
        }
        self.server.send(&self.events);
    }

    fn carry_out(&mut self, asked: &Asked) -> Result<Answer, String> {
        let newest = self.events.newest();
        let done = |text: String| Ok(Answer::Done { text, newest });
        match &asked.request {
            Request::Status {} => Ok(Answer::Status(Box::new(self.status()))),
            Request::Stop {} => {
                self.requested(asked, "stop");
                self.stop();
                done("the graph stops".into())
            }
            Request::Halt { reason } => {
                let reason = reason.as_deref().map_or(String::new(), |it| format!(": {it}"));
                self.requested(asked, &format!("halt{reason}"));
                self.stop();
                done("the core stops".into())
            }
            Request::Reset {} => {
                Err("this graph does not hold: its end is the end of the run".into())
            }
            Request::Restart { domain } => {
                self.requested(asked, &format!("restart {domain}"));
                self.restart(domain)?;
                done(format!("domain '{domain}' restarts"))
            }
            Request::Announce { address } => {
                let service = self.asking_service(asked)?;
                self.services[service].address = Some(address.clone());
                let name = self.request.plan.domains[self.domains.len() + service].name.clone();
                self.events.add(EventKind::Note, Some(&name), format!("serves {address}"));
                done("announced".into())
            }
            Request::Alarm { text } => {
                let service = self.asking_service(asked)?;
                let name = self.request.plan.domains[self.domains.len() + service].name.clone();
                self.events.add(EventKind::Alarm, Some(&name), text.clone());
                done("raised".into())
            }
            Request::Log { .. } => Err("a bug: the server answers that".into()),
        }
    }

    /// The service that asks, by its place among the services.
    fn asking_service(&self, asked: &Asked) -> Result<usize, String> {
        let service = asked.service.and_then(|at| at.checked_sub(self.domains.len()));
        service.ok_or_else(|| "only a service of the run itself may say that".into())
    }

    fn requested(&mut self, asked: &Asked, what: &str) {
        let by = match asked.service {
            Some(at) => format!("service '{}'", self.request.plan.domains[at].name),
            None => format!("process {}", asked.process),
        };
        self.events.add(EventKind::Request, None, format!("{what}, by {by}"));
    }
}
