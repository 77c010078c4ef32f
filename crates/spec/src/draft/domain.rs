//! Domains as the user wrote them: realtime ones, and [services](super::service).

use sinew_plan::plan::{self, Guest, Overrun};
use sinew_plan::{Entry, Item, Span, duration_text};

use super::requires::{self, Required};
use super::service::{self, Service};
use crate::diagnostic::Report;
use crate::fields::{Fields, Named, check_name};
use crate::keys::{self, Policy, Trigger};
use crate::value::scalar;

/// A domain.
pub(crate) struct Domain<'a> {
    pub(crate) name: Named<'a>,
    pub(crate) user: Option<Named<'a>>,
    pub(crate) host: Option<Named<'a>>,
    pub(crate) role: Role<'a>,
    pub(crate) requires: Vec<Required>,
}

/// What a domain promises.
pub(crate) enum Role<'a> {
    Realtime(Realtime<'a>),
    Service(Box<Service>),
}

/// What the spec says of a realtime domain.
pub(crate) struct Realtime<'a> {
    pub(crate) trigger: Trigger,
    pub(crate) period_ns: Option<u64>,
    pub(crate) deadline_ns: Option<u64>,
    pub(crate) deadline_at: Span,
    pub(crate) priority: u8,
    pub(crate) overrun: Overrun,
    /// `None`: all nodes fused on one thread.
    pub(crate) threads: Option<Vec<Thread<'a>>>,
}

/// A row of `threads`.
pub(crate) struct Thread<'a> {
    pub(crate) span: Span,
    pub(crate) cpu: Option<u32>,
    pub(crate) cpu_at: Span,
    pub(crate) nodes: Vec<Named<'a>>,
    pub(crate) trigger: Option<Trigger>,
}

impl<'a> Domain<'a> {
    /// The one domain of a bare list of nodes, which begins at `span`.
    pub(super) fn of_a_bare_list(span: Span, report: &'a Report) -> Domain<'a> {
        let name = Named { text: keys::SERVICES, span };
        let fields = Fields::empty(&keys::DOMAIN, span, report);
        let role = Role::Service(Box::new(service::read(&fields)));
        Domain { name, user: None, host: None, role, requires: Vec::new() }
    }

    pub(crate) fn realtime(&self) -> Option<&Realtime<'a>> {
        match &self.role {
            Role::Realtime(realtime) => Some(realtime),
            Role::Service(_) => None,
        }
    }

    pub(crate) fn service(&self) -> Option<&Service> {
        match &self.role {
            Role::Realtime(_) => None,
            Role::Service(service) => Some(service),
        }
    }

    pub(crate) fn is_service(&self) -> bool {
        self.service().is_some()
    }

    /// The guest that it is, if it is one.
    pub(crate) fn guest(&self) -> Option<&Guest> {
        self.service().and_then(|service| service.plan.guest.as_ref())
    }

    /// The domain of the plan, with this role and on this host.
    pub(crate) fn planned(&self, role: plan::Role, host: Option<usize>) -> plan::Domain {
        plan::Domain {
            name: self.name.text.to_owned(),
            user: self.user.map(|user| user.text.to_owned()),
            user_span: self.user.map(|user| user.span).unwrap_or_default(),
            host,
            role,
        }
    }

    /// The threads that its spec lists.
    pub(crate) fn listed(&self) -> &[Thread<'a>] {
        self.realtime().and_then(|realtime| realtime.threads.as_deref()).unwrap_or_default()
    }
}

/// Reads a domain; `None` if its role is not clear, which is reported.
pub(super) fn read<'a>(entry: &'a Entry, report: &'a Report) -> Option<Domain<'a>> {
    let name = Named { text: &entry.key, span: entry.span };
    check_name(name, "a domain's name", report);
    let fields = Fields::new(&entry.value, &keys::DOMAIN, &[], entry.span, report);
    let (user, host) = (fields.name("user"), fields.text("host"));
    let requires = requires::read(&fields, true);
    let Some(realtime) = fields.entry("realtime") else {
        let role = Role::Service(Box::new(service::read(&fields)));
        return is_service(&fields, name).then_some(Domain { name, user, host, role, requires });
    };
    let help = |key: &str| match key {
        "cpus" => {
            "remove it, and write 'threads: [{cpu: ..., nodes: [...]}]': each realtime thread has \
             one CPU; or remove 'realtime', then it is a service"
        }
        _ => {
            "remove it: a realtime domain is never restarted, its fault stops the graph; or remove \
             'realtime', then it is a service"
        }
    };
    refuse(&fields, keys::OF_SERVICE, name, "a realtime domain", help);
    let role = Role::Realtime(realtime_role(name, &fields, realtime));
    Some(Domain { name, user, host, role, requires })
}

/// Reports keys that have no meaning in a domain of this role. `help` gets the key.
fn refuse(
    fields: &Fields<'_>,
    keys: &[&str],
    name: Named<'_>,
    what: &str,
    help: impl Fn(&str) -> &'static str,
) {
    for entry in keys.iter().filter_map(|key| fields.entry(key)) {
        let message = format!("'{}' has no meaning in '{}', which is {what}", entry.key, name.text);
        fields.report.error(entry.span, message, help(&entry.key));
    }
}

/// Whether a domain without `realtime` can be meant as a service. Keys of a realtime domain
/// contradict that and are reported.
fn is_service(fields: &Fields<'_>, name: Named<'_>) -> bool {
    let help = "remove it: each node of a service has a separate thread; or add 'realtime: \
                {period: 1ms}'";
    refuse(fields, keys::OF_REALTIME, name, "a service: it has no 'realtime'", |_| help);
    let of_realtime = |key: &str| {
        keys::OF_REALTIME.contains(&key) || keys::REALTIME.keys.iter().any(|row| row.name == key)
    };
    !fields.entries().iter().any(|entry| of_realtime(&entry.key))
}

fn realtime_role<'a>(name: Named<'a>, domain: &Fields<'a>, entry: &'a Entry) -> Realtime<'a> {
    let report = domain.report;
    let rows = domain.list("threads").iter();
    let threads: Vec<Thread<'a>> = rows.map(|item| thread(item, report)).collect();
    let written = domain.get("threads").is_some();
    let fields = Fields::new(&entry.value, &keys::REALTIME, &[], entry.span, report);
    let trigger = fields.word("trigger", Trigger::ALL).unwrap_or(Trigger::Timer);
    let period_ns = fields.number("period");
    let deadline_ns = fields.number("deadline");
    match (trigger, fields.get("period")) {
        (Trigger::Timer, None) => {
            let message = format!("domain '{}' lacks 'period'", name.text);
            report.error(fields.span, message, "add 'period: 1ms', or 'trigger: input'");
        }
        (Trigger::Input, Some(item)) => {
            let message = "a domain with trigger: input has no period";
            report.error(
                item.span,
                message,
                "remove 'period'; it is the period of the domain that releases this one",
            );
        }
        _ => {}
    }
    let deadline_at = fields.at("deadline");
    if let (Some(period_ns), Some(deadline_ns)) = (period_ns, deadline_ns)
        && deadline_ns > period_ns
    {
        late(deadline_at, deadline_ns, period_ns, report);
    }
    Realtime {
        trigger,
        period_ns,
        deadline_ns,
        deadline_at,
        priority: fields.number("priority").unwrap_or(80) as u8,
        overrun: overrun(&fields.inner("overrun")),
        threads: written.then_some(threads),
    }
}

/// Reports a deadline that is later than the period.
pub(crate) fn late(at: Span, deadline_ns: u64, period_ns: u64, report: &Report) {
    let (deadline, period) = (duration_text(deadline_ns), duration_text(period_ns));
    let message = format!("deadline {deadline} is later than the period {period}");
    report.error(at, message, format!("write {period} or less, or raise the period"));
}

fn overrun(fields: &Fields<'_>) -> Overrun {
    let policy = fields.word("policy", Policy::ALL).unwrap_or(Policy::Stop);
    let consecutive_max = fields.number("consecutive_max").unwrap_or(0) as u32;
    match (policy, fields.entry("consecutive_max")) {
        (Policy::Stop, _) => Overrun::Stop { consecutive_max },
        (Policy::Count, None) => Overrun::Count,
        (Policy::Count, Some(entry)) => {
            let message = "'consecutive_max' has no meaning with policy: count";
            fields.report.error(entry.span, message, "remove it, or write policy: stop");
            Overrun::Count
        }
    }
}

fn thread<'a>(item: &'a Item, report: &'a Report) -> Thread<'a> {
    let fields = Fields::of(item, &keys::THREAD, report);
    let name =
        |item: &'a Item| scalar(item, "nodes", report).map(|text| Named { text, span: item.span });
    Thread {
        span: item.span,
        cpu: fields.number("cpu").map(|cpu| cpu as u32),
        cpu_at: fields.at("cpu"),
        nodes: fields.list("nodes").iter().filter_map(name).collect(),
        trigger: fields.given_word("trigger", Trigger::ALL),
    }
}
