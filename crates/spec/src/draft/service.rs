//! Service domains as the user wrote them: how often they are restarted, and what they may use.

use sinew_plan::plan::{
    self, Board, Flows, Guest, PoolSize, Restart, RestartPolicy, ServiceLimits,
};
use sinew_plan::{Span, duration_text};

use crate::diagnostic::Report;
use crate::fields::{Fields, Named, NumberOrAuto};
use crate::keys;
use crate::value::size_text;

/// What the spec says of a service domain.
pub(crate) struct Service {
    /// Everything except its nodes.
    pub(crate) plan: plan::ServiceDomain,
    pub(crate) memory_at: Span,
    pub(crate) descriptors_at: Span,
    pub(crate) processes_at: Span,
    /// Its CPUs and their places.
    pub(crate) cpus_at: Vec<(u32, Span)>,
    /// The place of `flows`, if it is given.
    pub(crate) flows_at: Option<Span>,
}

/// Reads the keys that only services have. A refused value is reported; the value used instead has
/// no effect.
pub(super) fn read(domain: &Fields<'_>) -> Service {
    let time_ns = |key| domain.number(key).unwrap_or_default();
    let (flows, limits) = (domain.inner("flows"), domain.inner("limits"));
    let guest = domain.inner("guest");
    let cpus = domain.integers("cpus");
    let cpus: Option<Vec<_>> =
        cpus.map(|cpus| cpus.into_iter().map(|(cpu, at)| (cpu as u32, at)).collect());
    Service {
        plan: plan::ServiceDomain {
            nodes: Vec::new(),
            flows: Flows {
                workers: flows.number("workers").map(|count| count as u32),
                blocking: blocking(&flows),
            },
            restart: restart(&domain.inner("restart")),
            start_deadline_ns: time_ns("start_deadline"),
            heartbeat_ns: time_ns("heartbeat"),
            stop_deadline_ns: time_ns("stop_deadline"),
            limits: ServiceLimits {
                memory_bytes: limits.number("memory"),
                cpu_percent: limits.number("cpu").map(|percent| percent as u32),
                descriptors: limits.number("descriptors"),
                processes: limits.number("processes"),
            },
            cpus: cpus.as_deref().map(sorted),
            guest: domain.entry("guest").and_then(|_| self::guest(&guest)),
        },
        memory_at: limits.at("memory"),
        descriptors_at: limits.at("descriptors"),
        processes_at: limits.at("processes"),
        cpus_at: cpus.unwrap_or_default(),
        flows_at: domain.entry("flows").map(|entry| entry.span),
    }
}

/// A service of which the spec says nothing.
pub(crate) fn default_service() -> plan::ServiceDomain {
    let report = Report::default();
    read(&Fields::empty(&keys::DOMAIN, Span::default(), &report)).plan
}

/// How many threads a pool that adapts its size has at the start, unless the spec says so.
const BLOCKING_START: u32 = 8;

/// The threads for blocking work.
fn blocking(flows: &Fields<'_>) -> PoolSize {
    let bounds = match flows.number_or_auto("blocking") {
        Some(NumberOrAuto::Auto(bounds)) => bounds,
        Some(NumberOrAuto::Number(threads)) => return PoolSize::fixed(threads as u32),
        // A refused value is reported.
        None => return PoolSize::fixed(1),
    };
    let [min, max] = ["min", "max"].map(|key| bounds.number(key).unwrap_or_default() as u32);
    let start = bounds.number("start").map(|start| start as u32);
    // A bound that was refused is reported already.
    let are_read = min > 0 && max > 0;
    if are_read && min >= max {
        let message = format!(
            "a pool that adapts its size needs a min below its max, found min {min} and max {max}"
        );
        let help =
            format!("write a max that is more than min, or blocking: {min} for a fixed size");
        let key = if bounds.get("max").is_some() { "max" } else { "min" };
        bounds.report.error(bounds.at(key), message, help);
    } else if let Some(start) = start.filter(|start| are_read && !(min..=max).contains(start)) {
        let message = format!("start {start} is not within min {min} and max {max}");
        bounds.report.error(bounds.at("start"), message, "write a start between these bounds");
    }
    let max = max.max(min);
    PoolSize { start: start.unwrap_or(BLOCKING_START).clamp(min, max), min, max }
}

fn sorted(cpus: &[(u32, Span)]) -> Vec<u32> {
    let mut cpus: Vec<u32> = cpus.iter().map(|(cpu, _)| *cpu).collect();
    cpus.sort_unstable();
    cpus
}

/// `None` without an image, which is reported.
fn guest(fields: &Fields<'_>) -> Option<Guest> {
    let Named { text: image, span: image_span } = fields.text("image")?;
    let (memory_bytes, period_ns) =
        (fields.number("memory").unwrap_or_default(), fields.number("period").unwrap_or_default());
    if !memory_bytes.is_power_of_two() && memory_bytes > 0 {
        let message = format!("the memory of a guest has {memory_bytes} bytes: no power of two");
        let next = size_text(memory_bytes.next_power_of_two());
        fields.report.error(fields.at("memory"), message, format!("write memory: {next}"));
    }
    if !period_ns.is_multiple_of(keys::GUEST_STEP_NS) {
        let message = format!("period {} is not whole milliseconds", duration_text(period_ns));
        let help = "a guest's clock counts milliseconds: write period: 1ms, 2ms, ...";
        fields.report.error(fields.at("period"), message, help);
    }
    let board = fields.word("board", Board::ALL).unwrap_or(Board::Virt);
    Some(Guest { image: image.to_owned(), image_span, board, memory_bytes, period_ns })
}

fn restart(fields: &Fields<'_>) -> Restart {
    let policy = fields.word("policy", RestartPolicy::ALL);
    let numbers =
        ["backoff", "backoff_max", "restarts_max", "window"].map(|key| fields.number(key));
    let [backoff_ns, backoff_max_ns, restarts_max, window_ns] =
        numbers.map(Option::unwrap_or_default);
    let restart = Restart {
        policy: policy.unwrap_or(RestartPolicy::OnFailure),
        backoff_ns,
        backoff_max_ns,
        restarts_max: restarts_max as u32,
        window_ns,
    };
    match policy {
        Some(RestartPolicy::Never) => without_restarts(fields),
        Some(_) if numbers.iter().all(Option::is_some) => check(fields, &restart),
        _ => {}
    }
    restart
}

/// Reports options of restarts in a service that is never restarted.
fn without_restarts(fields: &Fields<'_>) {
    let rest = ["backoff", "backoff_max", "restarts_max", "window"];
    for entry in rest.iter().filter_map(|key| fields.entry(key)) {
        let message = format!("'{}' has no meaning with policy: never", entry.key);
        fields.report.error(
            entry.span,
            message,
            "remove it, or write policy: on_failure or always",
        );
    }
}

/// Reports a policy that cannot be met.
fn check(fields: &Fields<'_>, restart: &Restart) {
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
        fields.report.error(fields.at(at), message, help);
        return;
    }
    let pauses_ns = pauses_ns(restart, restarts_max);
    if pauses_ns <= u128::from(window_ns) {
        return;
    }
    let fitting = fitting(restart);
    let message = format!(
        "the restart limit can never be reached: the pauses between {restarts_max} restarts{} \
         alone take {}, and the window is {}{}",
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
    fields.report.error(fields.at(at), message, help);
}

/// The sum of the pauses between the first and the last of this many restarts: each is twice the
/// one before, up to the greatest.
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

/// The most restarts whose pauses fit into the window.
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

/// A sum of pauses, rounded up to whole seconds if it is long.
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
}
