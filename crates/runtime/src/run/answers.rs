//! What a run answers to those that ask through its control socket: people and their scripts, and
//! its own services.

use sinew_control::status::{EventKind, Phase, cut};
use sinew_control::traces::RunLayout;
use sinew_control::{Answer, HANDED_MAX, Incoming, PeerId, Request};

use super::Run;
use super::edits::Said;

impl Run {
    /// Takes the requests that came, and carries out the orders. Returns the peers that asked for
    /// the status: [`Run::answer`] answers them once the status is known.
    pub(super) fn take_orders(&mut self) -> Vec<PeerId> {
        let mut questions = Vec::new();
        for asked in self.server.receive() {
            if asked.request == (Request::Status {}) {
                questions.push(asked.from.id);
                continue;
            }
            // A service that observes has the traces already; another service, which may be of
            // another user, must not have them.
            if asked.request == (Request::Traces {}) && asked.from.service.is_none() {
                self.hand_traces(asked.from.id);
                continue;
            }
            let answer = match self.carry_out(&asked) {
                Ok(answer) => answer,
                Err(text) => Answer::Error(text),
            };
            self.server.answer(asked.from.id, &answer);
        }
        questions
    }

    pub(super) fn answer(&mut self, questions: &[PeerId]) {
        for &peer in questions {
            let status = Box::new(self.status());
            self.server.answer(peer, &Answer::Status(status));
        }
        self.server.send(&self.events);
    }

    /// Hands over the traces of the core, for reading only: a reader disturbs nothing. A
    /// description of their content goes along, but not the spec, which may hold what came from
    /// outside.
    fn hand_traces(&mut self, peer: PeerId) {
        let layout = RunLayout::of(&self.request.plan, self.request.pace);
        match self.core.shown() {
            Ok(traces) if traces.len() <= HANDED_MAX => {
                self.server.hand(peer, &Answer::Traces(Box::new(layout)), traces);
            }
            Ok(traces) => {
                let count = traces.len();
                let text = format!("the core has {count} threads; {HANDED_MAX} can be shown");
                self.server.answer(peer, &Answer::Error(text));
            }
            Err(error) => {
                let text = format!("cannot hand over the traces: {error}; see 'ulimit -n'");
                self.server.answer(peer, &Answer::Error(text));
            }
        }
    }

    fn carry_out(&mut self, asked: &Incoming) -> Result<Answer, String> {
        let newest = self.events.newest();
        let done = |text: String| Ok(Answer::Done { text, newest });
        match &asked.request {
            Request::Stop {} => {
                let order = self.requested(asked, "stop");
                self.stop_for(&order);
                done("the graph stops".into())
            }
            Request::Halt { reason } => {
                let reason = reason.as_deref().map_or(String::new(), |it| format!(": {it}"));
                let order = self.requested(asked, &format!("halt{reason}"));
                self.halt(&order);
                done(self.halting().into())
            }
            Request::Reset {} => {
                self.requested(asked, "reset");
                self.reset()?;
                done("the core starts again".into())
            }
            Request::Restart { domain } => {
                self.requested(asked, &format!("restart {domain}"));
                self.restart(domain)?;
                done(format!("domain '{domain}' restarts"))
            }
            Request::Announce { address } => {
                let service = self.asking_service(asked)?;
                self.services[service].address = Some(cut(address.clone()));
                done(self.raise(service, EventKind::Address, address).into())
            }
            Request::Alarm { text } => {
                let service = self.asking_service(asked)?;
                done(self.raise(service, EventKind::Alarm, text).into())
            }
            Request::Edition {} => {
                let service = self.asking_service(asked)?;
                self.edition_for(service)
            }
            Request::Prepared { number, refused } => {
                let service = self.asking_service(asked)?;
                self.hear(service, *number, Said::Prepared, refused.as_deref());
                done("it is known".into())
            }
            Request::Swapped { number, flows } => {
                let service = self.asking_service(asked)?;
                self.hear(service, *number, Said::Swapped(*flows), None);
                done("it is known".into())
            }
            Request::Figures { .. } | Request::Pool { .. } | Request::Hosts { .. } => {
                let service = self.asking_service(asked)?;
                self.show(service, &asked.request);
                done("it is shown".into())
            }
            Request::Finish { error } => {
                let service = self.asking_service(asked)?;
                self.end_job(service, error.as_deref());
                done("the graph stops".into())
            }
            Request::Tunables {} => Ok(Answer::Tunables(self.tunables())),
            Request::Set { settings, save } => done(self.tuned(asked, settings, *save)?),
            Request::Tap(_) | Request::Step {} | Request::Go {} => {
                Err("packets are seen at the socket of their domain; use 'sinew tap'".into())
            }
            Request::Traces {} => Err("in the run itself, only a service whose kind observes the \
                                       run may read the core's cycles"
                .into()),
            Request::Status {} | Request::Log { .. } => Err("a bug: answered elsewhere".into()),
        }
    }

    /// Sets parameters, and makes an event of that; returns what changed.
    fn tuned(&mut self, asked: &Incoming, set: &[String], save: bool) -> Result<String, String> {
        let changed = self.set(set, save)?;
        let order = self.by(asked, &changed);
        self.tell_order(asked, EventKind::Tuned, &order);
        Ok(changed)
    }

    /// Takes what a service says about itself, for those that look at the run.
    fn show(&mut self, service: usize, said: &Request) {
        match said {
            Request::Figures { nodes } => self.services[service].take_figures(nodes),
            Request::Pool { pool } => self.services[service].take_pool(pool),
            Request::Hosts { hosts } => {
                for text in self.services[service].take_hosts(hosts) {
                    self.raise(service, EventKind::Host, &text);
                }
            }
            _ => {}
        }
    }

    fn halting(&self) -> &'static str {
        match (self.holds(), self.phase()) {
            (false, _) => "the graph stops",
            (true, Phase::Held) => "the core is held already",
            (true, _) => "the core stops",
        }
    }

    /// The service that asks, by its place among the services.
    fn asking_service(&self, asked: &Incoming) -> Result<usize, String> {
        let service = asked.from.service.and_then(|at| at.checked_sub(self.core.domains.len()));
        service.ok_or_else(|| "only a service of the run itself may send this request".into())
    }

    /// Makes an event of what a service says; returns what became of it.
    fn raise(&mut self, service: usize, what: EventKind, text: &str) -> &'static str {
        let service = &mut self.services[service];
        match service.orders.say(what, Some(&service.name), text, &mut self.events) {
            true => "it is an event now",
            false => "too many events in this second: it is counted only",
        }
    }

    /// Makes an event of an order; returns the order in words. The order is carried out even if its
    /// service asks for so much that not all events of it are kept.
    fn requested(&mut self, asked: &Incoming, what: &str) -> String {
        let order = self.by(asked, what);
        self.tell_order(asked, EventKind::Request, &order);
        order
    }

    /// An order, and the service that gives it.
    fn by(&self, asked: &Incoming, what: &str) -> String {
        match asked.from.service {
            Some(at) => {
                format!("{what}, by service '{}'", self.request.plan.domains[at].name)
            }
            None => format!("{what}, by process {}", asked.from.process),
        }
    }

    fn tell_order(&mut self, asked: &Incoming, kind: EventKind, order: &str) {
        match self.asking_service(asked) {
            Ok(service) => {
                let orders = &mut self.services[service].orders;
                orders.say(kind, None, order, &mut self.events);
            }
            Err(_) => self.events.add(kind, None, order),
        }
    }
}
