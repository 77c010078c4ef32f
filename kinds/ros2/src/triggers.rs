//! Services of ROS that give an order to the run: `std_srvs/srv/Trigger`, one for each order that
//! the spec offers.

use sinew_control::Request;
use sinew_core::{Fault, Refusal};
use sinew_runtime::service::tell;
use sinew_runtime::watch::Watch;
use sinew_spec::plan::Plan;
use sinew_spec::{Data, Item};

use crate::messages::TriggerResponse;
use crate::session::{Session, TriggerServer};

/// A service that the spec offers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trigger {
    /// Name of the service.
    pub(crate) name: String,
    /// What the service does.
    order: Order,
    /// Where the spec says so.
    span: sinew_spec::Span,
}

#[derive(Clone, Debug, PartialEq)]
enum Order {
    /// Stops the core.
    Halt,
    /// Starts it again.
    Reset,
    /// Stops the run.
    Stop,
    /// Restarts a service.
    Restart(String),
}

/// What the spec writes: `{~/stop: halt, ~/new_camera: restart camera}`.
///
/// # Errors
/// All that is wrong, each with its place.
pub(crate) fn triggers(item: &Item) -> Result<Vec<Trigger>, Vec<Refusal>> {
    let help = "write a mapping such as {~/stop: halt, ~/camera: restart camera}; the orders are \
                halt, reset, stop and restart with a service";
    let Data::Map(entries) = &item.data else {
        let message = format!("'triggers' is {}", item.sort());
        return Err(vec![Refusal::new(item.span, message, help)]);
    };
    let (mut triggers, mut wrong) = (Vec::new(), Vec::new());
    for entry in entries {
        let text = entry.value.text().unwrap_or_default();
        let order = match text.split_once(' ') {
            Some(("restart", domain)) => Some(Order::Restart(domain.trim().to_owned())),
            None if text == "halt" => Some(Order::Halt),
            None if text == "reset" => Some(Order::Reset),
            None if text == "stop" => Some(Order::Stop),
            _ => None,
        };
        let span = entry.value.span;
        match order {
            Some(order) => triggers.push(Trigger { name: entry.key.clone(), order, span }),
            None => wrong.push(Refusal::new(span, format!("'{text}' is not an order"), help)),
        }
    }
    if wrong.is_empty() { Ok(triggers) } else { Err(wrong) }
}

impl Trigger {
    /// Refuses a restart of a service that the graph does not have.
    pub(crate) fn check(&self, plan: &Plan) -> Option<Refusal> {
        let Order::Restart(domain) = &self.order else { return None };
        let service = |it: &&sinew_spec::plan::Domain| it.service().is_some();
        let services: Vec<_> = plan.domains.iter().filter(service).collect();
        (!services.iter().any(|it| it.name == *domain)).then(|| {
            let names: Vec<_> = services.iter().map(|it| it.name.as_str()).collect();
            let help = format!("services are: {}", names.join(", "));
            Refusal::new(self.span, format!("no service is named '{domain}'"), help)
        })
    }

    /// Offers the service.
    ///
    /// # Errors
    /// The name is not valid, or the network refuses it.
    pub(crate) fn offer(&self, session: &Session) -> Result<Offered, Fault> {
        Ok(Offered { trigger: self.clone(), server: session.offer(&self.name)? })
    }

    fn request(&self) -> Request {
        match &self.order {
            Order::Halt => Request::Halt { reason: Some(format!("ROS asked at '{}'", self.name)) },
            Order::Reset => Request::Reset {},
            Order::Stop => Request::Stop {},
            Order::Restart(domain) => Request::Restart { domain: domain.clone() },
        }
    }
}

/// A trigger that is offered.
pub(crate) struct Offered {
    trigger: Trigger,
    server: TriggerServer,
}

impl Offered {
    /// Answers the requests that have come since the last poll.
    ///
    /// # Errors
    /// The network has failed.
    pub(crate) fn look(&self, watch: &Watch) -> Result<(), Fault> {
        let name = &self.trigger.name;
        self.server.answer(|| {
            let done = watch.supervisor().order(&self.trigger.request());
            tell(match &done {
                Ok(_) => format!("ROS asked at '{name}': done"),
                Err(why) => format!("ROS asked at '{name}': refused: {why}"),
            });
            let (success, message) = match done {
                Ok(text) => (true, text),
                Err(why) => (false, why),
            };
            TriggerResponse { success, message }
        })
    }
}
