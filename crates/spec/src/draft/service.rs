//! Service domains as the user wrote them: how often they come back, and what they may use.

use sinew_plan::plan::{self, Flows, Limits, Restart, RestartPolicy};
use sinew_plan::{Data, Item, Span};

use crate::diagnostic::Report;
use crate::fields::Fields;
use crate::keys;
use crate::value::duration_text;

/// What a service domain says of itself.
pub(crate) struct Service {
    /// All of it, but for its nodes.
    pub(crate) plan: plan::Service,
    pub(crate) descriptors_at: Span,
    pub(crate) processes_at: Span,
    /// Where `flows` stands, if it does.
    pub(crate) flows_at: Option<Span>,
}

/// A service of which nothing is written.
pub(super) fn with_defaults(span: Span) -> Service {
    let empty = Item::new(span, Data::Map(Vec::new()));
    read(&Fields::peek(&empty, &keys::DOMAIN), &mut Report::default())
}

/// Reads the keys that only services have.
pub(super) fn read(domain: &Fields<'_>, report: &mut Report) -> Service {
    // A value that is refused is reported; what stands for it then is never used.
    let mut time_ns = |key| domain.duration_ns(key, report).unwrap_or_default();
    let (start_deadline_ns, heartbeat_ns, stop_deadline_ns) =
        (time_ns("start_deadline"), time_ns("heartbeat"), time_ns("stop_deadline"));
    let restart = restart(domain, report);
    let empty = Item::new(domain.span, Data::Map(Vec::new()));
    let item = domain.get("limits").unwrap_or(&empty);
    let fields = Fields::new(item, &keys::LIMITS, &[], item.span, report);
    let limits = Limits {
        memory_bytes: fields.size_bytes("memory", report),
        cpu_percent: fields.percent("cpu", report),
        descriptors: fields.integer("descriptors", report).map(|count| count as u64),
        processes: fields.integer("processes", report).map(|count| count as u64),
    };
    Service {
        plan: plan::Service {
            nodes: Vec::new(),
            flows: flows(domain, report),
            restart,
            start_deadline_ns,
            heartbeat_ns,
            stop_deadline_ns,
            limits,
        },
        descriptors_at: fields.at("descriptors"),
        processes_at: fields.at("processes"),
        flows_at: domain.entry("flows").map(|entry| entry.span),
    }
}

fn flows(domain: &Fields<'_>, report: &mut Report) -> Flows {
    let empty = Item::new(domain.span, Data::Map(Vec::new()));
    let item = domain.get("flows").unwrap_or(&empty);
    let fields = Fields::new(item, &keys::FLOWS, &[], item.span, report);
    Flows {
        workers: fields.integer("workers", report).map(|count| count as u32),
        blocking: fields.integer("blocking", report).unwrap_or(1) as u32,
    }
}

fn restart(domain: &Fields<'_>, report: &mut Report) -> Restart {
    let empty = Item::new(domain.span, Data::Map(Vec::new()));
    let item = domain.get("restart").unwrap_or(&empty);
    let fields = Fields::new(item, &keys::RESTART, &[], item.span, report);
    let policy = fields.word("policy", RestartPolicy::ALL, report);
    let (backoff_ns, backoff_max_ns, window_ns) = (
        fields.duration_ns("backoff", report),
        fields.duration_ns("backoff_max", report),
        fields.duration_ns("window", report),
    );
    let restarts_max = fields.integer("restarts_max", report);
    let restart = Restart {
        policy: policy.unwrap_or(RestartPolicy::OnFailure),
        backoff_ns: backoff_ns.unwrap_or_default(),
        backoff_max_ns: backoff_max_ns.unwrap_or_default(),
        restarts_max: restarts_max.unwrap_or_default() as u32,
        window_ns: window_ns.unwrap_or_default(),
    };
    let all_read = backoff_ns.is_some() && backoff_max_ns.is_some() && window_ns.is_some();
    match policy {
        Some(RestartPolicy::Never) => without_restarts(&fields, report),
        Some(_) if all_read && restarts_max.is_some() => check(&fields, &restart, report),
        _ => {}
    }
    restart
}

/// Reports what is said of restarts that never are.
fn without_restarts(fields: &Fields<'_>, report: &mut Report) {
    let rest = ["backoff", "backoff_max", "restarts_max", "window"];
    for entry in rest.iter().filter_map(|key| fields.entry(key)) {
        let message = format!("'{}' has no meaning with policy: never", entry.key);
        report.error(entry.span, message, "remove it, or write policy: on_failure or always");
    }
}

/// Reports a policy that cannot be met.
fn check(fields: &Fields<'_>, restart: &Restart, report: &mut Report) {
    let &Restart { backoff_ns, backoff_max_ns, restarts_max, window_ns, .. } = restart;
    let written = |key| if fields.get(key).is_some() { "" } else { " (the default)" };
    if backoff_ns > backoff_max_ns {
        let (backoff, most) = (duration_text(backoff_ns), duration_text(backoff_max_ns));
        let message = format!(
            "backoff {backoff}{} is longer than backoff_max {most}{}",
            written("backoff"),
            written("backoff_max")
        );
        let at = if fields.get("backoff").is_some() { "backoff" } else { "backoff_max" };
        let help = format!("write backoff: {most} or less, or backoff_max: {backoff} or more");
        report.error(fields.at(at), message, help);
        return;
    }
    let pauses_ns = pauses_ns(restart, restarts_max);
    if pauses_ns <= u128::from(window_ns) {
        return;
    }
    let fitting = fitting(restart);
    let message = format!(
        "the service could never be given up: from the first to the last of {restarts_max} \
         restarts{} the pauses alone take {}, and the window is {}{}",
        written("restarts_max"),
        text(pauses_ns),
        duration_text(window_ns),
        written("window"),
    );
    let fewer = format!("write restarts_max: {fitting} or less, or lower backoff_max");
    let help = match pauses_ns <= u128::from(keys::PAUSE_NS_MAX) {
        true => format!("{fewer}, or write window: {} or more", text(pauses_ns)),
        false => fewer,
    };
    let at = ["window", "restarts_max", "backoff", "backoff_max"];
    let at = at.into_iter().find(|key| fields.get(key).is_some()).unwrap_or("window");
    report.error(fields.at(at), message, help);
}

/// The pauses between the first and the last of so many restarts: they double up to the greatest.
fn pauses_ns(restart: &Restart, restarts: u32) -> u128 {
    let (mut pause_ns, most_ns) = (u128::from(restart.backoff_ns), restart.backoff_max_ns.into());
    let (mut sum_ns, mut left) = (0, restarts.saturating_sub(1));
    while left > 0 && pause_ns < most_ns {
        pause_ns = (2 * pause_ns).min(most_ns);
        sum_ns += pause_ns;
        left -= 1;
    }
    sum_ns + pause_ns * u128::from(left)
}

/// Most restarts whose pauses fit the window.
fn fitting(restart: &Restart) -> u32 {
    let fits = |restarts: u32| pauses_ns(restart, restarts) <= u128::from(restart.window_ns);
    let (mut fit, mut too_many) = (1, restart.restarts_max);
    while fit + 1 < too_many {
        let middle = fit + (too_many - fit) / 2;
        if fits(middle) {
            fit = middle;
        } else {
            too_many = middle;
        }
    }
    fit
}

/// A sum of pauses, rounded up to whole seconds where it is long.
fn text(ns: u128) -> String {
    const S: u128 = 1_000_000_000;
    match u64::try_from(ns) {
        Ok(ns) if u128::from(ns) < S => duration_text(ns),
        _ => format!("{}s", ns.div_ceil(S)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Restart = Restart {
        policy: RestartPolicy::OnFailure,
        backoff_ns: 100,
        backoff_max_ns: 500,
        restarts_max: 10,
        window_ns: 6_000,
    };

    #[test]
    fn pauses_double_up_to_the_greatest() {
        let sums = [1, 2, 3, 4, 5].map(|restarts| pauses_ns(&DEFAULT, restarts));
        assert_eq!(sums, [0, 200, 600, 1_100, 1_600]);
        let even = Restart { backoff_ns: 500, ..DEFAULT };
        assert_eq!(pauses_ns(&even, 1_000_001), 500_000_000);
    }

    #[test]
    fn what_fits_the_window_fits_and_one_more_does_not() {
        for (window_ns, expected) in [(0, 1), (199, 1), (200, 2), (1_100, 4), (1_599, 4)] {
            assert_eq!(fitting(&Restart { window_ns, ..DEFAULT }), expected, "{window_ns}");
        }
    }

    #[test]
    fn a_service_of_which_nothing_is_written_has_the_defaults_of_the_table() {
        let service = with_defaults(Span::default()).plan;
        assert_eq!(service.restart.policy, RestartPolicy::OnFailure);
        assert_eq!(service.restart.backoff_ns, 100_000_000);
        assert_eq!((service.restart.restarts_max, service.limits), (10, Limits::default()));
        assert_eq!(service.heartbeat_ns, 2_000_000_000);
        let times_s =
            [service.start_deadline_ns, service.stop_deadline_ns].map(|ns| ns / 1_000_000_000);
        assert_eq!(times_s, [10, 3]);
    }
}
