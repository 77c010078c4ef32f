//! The tables of a run: domains, threads, nodes of services and of flows, links, limits.

use ratatui::style::Style;
use ratatui::text::Line;
use sinew_control::status::{
    DomainRole, DomainStatus, HostClock, HostState, LinkStatus, Phase, PoolChange, ROUTER, Status,
    ThreadStatus,
};
use sinew_figures::short::rate;

use crate::rows::{Cell, Rows, elapsed, memory, printable};
use crate::theme::Theme;

/// A line that identifies the run.
pub(super) fn title(status: &Status) -> String {
    let Status { graph, phase, pid, .. } = status;
    let at = status.host.as_ref().map_or(String::new(), |host| format!(" at {host}"));
    printable(&format!("{graph}{at}  {phase}  {}  process {pid}", elapsed(status.elapsed_ms)))
}

/// Tables that change: domains, threads, nodes, links. `columns` wide if possible.
pub(super) fn moving(status: &Status, theme: Theme, columns: usize) -> Vec<Vec<Line<'static>>> {
    let tables = [
        stop(status, theme),
        domains(status, theme),
        threads(status, theme),
        nodes(status, theme),
        flows(status, theme),
        pools(status, theme),
        hosts(status, theme),
        links(status, theme),
    ];
    lines(tables, theme, columns)
}

/// Tables that do not change: limits, and the plan's notes.
pub(super) fn lasting(status: &Status, theme: Theme, columns: usize) -> Vec<Vec<Line<'static>>> {
    lines([limits(status, theme), notes(status)], theme, columns)
}

/// The lines of every table that has rows.
fn lines(
    tables: impl IntoIterator<Item = Rows>,
    theme: Theme,
    columns: usize,
) -> Vec<Vec<Line<'static>>> {
    let tables = tables.into_iter().filter(|table| !table.is_empty());
    tables.map(|table| table.lines(theme, columns)).collect()
}

/// Why the core has stopped, or why it last stopped.
fn stop(status: &Status, theme: Theme) -> Rows {
    let mut rows = Rows::new(&["last stop"]);
    if let Some(stop) = &status.stop {
        rows.note(stop.to_string(), theme.caution());
    }
    if status.phase == Phase::Held {
        rows.note("'sinew reset' starts the core again".into(), theme.strong());
    }
    rows
}

fn domains(status: &Status, theme: Theme) -> Rows {
    let mut rows =
        Rows::new(&["domain", "role", "state", "process", "up", "restarts", "resident", "user"]);
    for domain in &status.domains {
        rows.add([
            Cell::new(&domain.name),
            Cell::new(domain.role.word()),
            Cell::styled(domain.state.word(), theme.state(domain.state)),
            Cell::figure(known(domain.pid)),
            Cell::figure(known(domain.pid.map(|_| elapsed(domain.up_ms)))),
            Cell::count(domain.restarts.into(), theme),
            Cell::figure(memory(domain.resident_kib)),
            Cell::new(&domain.user),
        ]);
        if let Some(address) = &domain.address {
            rows.note(address.clone(), theme.strong());
        }
        if let Some(text) = why(domain) {
            rows.note(text, theme.caution());
        }
    }
    rows
}

/// `-` if there is no figure.
fn known(figure: Option<impl ToString>) -> String {
    figure.map_or("-".into(), |figure| figure.to_string())
}

/// Why a domain has changed its state, and what comes next.
fn why(domain: &DomainStatus) -> Option<String> {
    let next = domain.next_restart_ms.map(|ms| format!("starts again in {}", elapsed(ms)));
    let last = domain.last_reason.as_ref().map(|reason| format!("last: {reason}"));
    let parts: Vec<_> = next.into_iter().chain(last).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn threads(status: &Status, theme: Theme) -> Rows {
    let mut rows =
        Rows::new(&["thread", "cycles", "overruns", "skipped", "last us", "max us", "privileges"]);
    for domain in &status.domains {
        for (number, thread) in domain.threads.iter().enumerate() {
            add_thread(&mut rows, &format!("{}/{number}", domain.name), thread, theme);
        }
    }
    rows
}

fn add_thread(rows: &mut Rows, name: &str, thread: &ThreadStatus, theme: Theme) {
    let whole = thread.privileges.missing.is_empty();
    let look = if whole { theme.good() } else { theme.caution() };
    rows.add([
        Cell::new(name),
        Cell::figure(thread.cycles),
        Cell::count(thread.overruns, theme),
        Cell::count(thread.skipped, theme),
        Cell::micros(thread.latency_ns_last),
        Cell::micros(thread.latency_ns_max),
        Cell::styled(thread.privileges.obtained.trim_start_matches("SCHED_"), look),
    ]);
    if thread.records_lost > 0 {
        let lost = thread.records_lost;
        rows.note(format!("{lost} records lost: times are without these cycles"), theme.caution());
    }
    for missing in &thread.privileges.missing {
        rows.note(format!("missing: {missing}"), theme.caution());
    }
}

/// Nodes of services and guests. Nodes of the core have no counters of their own.
fn nodes(status: &Status, theme: Theme) -> Rows {
    let mut rows = Rows::new(&["node", "kind", "beats", "received", "lost", "sent", "dropped"]);
    let services = status.domains.iter().filter(|domain| domain.role != DomainRole::Realtime);
    let nodes = services.flat_map(|domain| &domain.nodes);
    for node in nodes.filter(|node| node.flow.is_none()) {
        rows.add([
            Cell::new(&node.name),
            Cell::new(&node.kind),
            Cell::figure(node.beats),
            Cell::figure(node.received),
            Cell::count(node.lost, theme),
            Cell::figure(node.sent),
            Cell::count(node.dropped, theme),
        ]);
    }
    rows
}

/// Flow nodes: what they have done since their process was started.
fn flows(status: &Status, theme: Theme) -> Rows {
    let mut rows = Rows::new(&[
        "flow node",
        "kind",
        "packets",
        "per s",
        "in flight",
        "p50 us",
        "p99 us",
        "max us",
        "errors",
    ]);
    let nodes = status.domains.iter().flat_map(|domain| &domain.nodes);
    for (node, flow) in nodes.filter_map(|node| Some((node, node.flow.as_ref()?))) {
        rows.add([
            Cell::new(&node.name),
            Cell::new(&node.kind),
            Cell::figure(flow.packets),
            Cell::figure(rate(flow.packets_per_s)),
            Cell::figure(flow.in_flight),
            Cell::micros(flow.time_ns_p50),
            Cell::micros(flow.time_ns_p99),
            Cell::micros(flow.time_ns_max),
            Cell::count(flow.errors, theme),
        ]);
        if flow.refused > 0 {
            rows.note(format!("refused {}: no room", flow.refused), theme.bad());
        }
    }
    rows
}

/// Threads for work that blocks: their number, the time that work takes, and the reason for the
/// number. Times are means over pieces of work.
fn pools(status: &Status, theme: Theme) -> Rows {
    let mut rows = Rows::new(&[
        "pool",
        "threads",
        "of",
        "waiting",
        "done",
        "cpu us",
        "outside us",
        "queued us",
        "changes",
    ]);
    for domain in &status.domains {
        let Some(pool) = &domain.pool else { continue };
        let bounds =
            if pool.min == pool.max { "-".into() } else { format!("{}-{}", pool.min, pool.max) };
        rows.add([
            Cell::new(&domain.name),
            Cell::figure(pool.threads),
            Cell::figure(bounds),
            Cell::figure(pool.waiting),
            Cell::figure(pool.done),
            Cell::micros(pool.cpu_ns),
            Cell::micros(pool.outside_ns),
            Cell::micros(pool.queued_ns),
            Cell::figure(pool.changes),
        ]);
        // A pool that never did anything has nothing to show.
        if pool.done > 0 && pool.min < pool.max {
            rows.note(pool.why.clone(), theme.strong());
        }
        if let Some(PoolChange { before, after, ago_ms, why }) = &pool.last_change {
            rows.note(
                format!("{before} -> {after} {} ago: {why}", elapsed(*ago_ms)),
                theme.strong(),
            );
        }
    }
    rows
}

/// The other hosts of the graph, as this one sees them.
fn hosts(status: &Status, theme: Theme) -> Rows {
    let mut rows = Rows::new(&[
        "host",
        "state",
        "heard",
        "round trip us",
        "clock ahead us",
        "late",
        "lost",
        "refused",
        "misplaced",
        "early",
    ]);
    for host in status.domains.iter().flat_map(|domain| &domain.hosts) {
        let look = match host.state {
            HostState::Heard => theme.good(),
            HostState::Unheard => theme.caution(),
            HostState::Silent | HostState::OtherGraph | HostState::Two => theme.bad(),
        };
        let word = match (host.name.as_str(), host.state) {
            (ROUTER, HostState::Heard) => "connected",
            (ROUTER, _) => "not connected",
            _ => host.state.word(),
        };
        let heard = host.heard_ms.map(|ms| format!("{} ago", elapsed(ms)));
        rows.add([
            Cell::new(&host.name),
            Cell::styled(word, look),
            Cell::figure(known(heard)),
            Cell::figure(known(host.round_trip_us)),
            Cell::figure(known(host.clock.map(ahead))),
            Cell::count(host.late, theme),
            Cell::count(host.lost, theme),
            Cell::count(host.refused, theme),
            Cell::count(host.misplaced, theme),
            Cell::figure(host.early),
        ]);
    }
    rows
}

/// How far a host's wall clock is ahead, and the possible error, us.
fn ahead(clock: HostClock) -> String {
    let HostClock { day_offset_ns, uncertainty_ns, .. } = clock;
    format!("{} +-{}", day_offset_ns / 1000, uncertainty_ns.div_ceil(1000))
}

fn links(status: &Status, theme: Theme) -> Rows {
    let mut rows = Rows::new(&["link", "how", "fill", "written", "lost", "dropped"]);
    for link in &status.links {
        let count = |n: Option<u64>| n.map_or(Cell::figure("-"), |n| Cell::count(n, theme));
        rows.add([
            Cell::new(format!("{} > {}", link.from, link.to)),
            Cell::styled(how(link), if link.broken { theme.bad() } else { Style::new() }),
            Cell::figure(known(link.fill.map(|fill| format!("{fill}/{}", link.capacity)))),
            Cell::figure(known(link.written)),
            count(link.lost),
            count(link.dropped),
        ]);
        if link.broken {
            let what = "the graph goes on without it; to restore it, stop the graph and run it \
                        again";
            rows.note(what.into(), theme.bad());
        }
    }
    rows
}

fn how(link: &LinkStatus) -> String {
    match (link.broken, link.transport.as_str()) {
        (true, transport) => format!("BROKEN {transport}"),
        // Within a thread there is no delivery.
        (false, "fused") => "fused".into(),
        // The transport of most links is not shown.
        (false, "shared_memory") => link.delivery.clone(),
        (false, transport) => format!("{transport} {}", link.delivery),
    }
}

fn limits(status: &Status, theme: Theme) -> Rows {
    let columns = ["domain", "limit", "asked", "enforced"];
    let mut rows = Rows::new(&columns);
    for domain in &status.domains {
        for limit in &domain.limits {
            let (word, look) = match limit.enforced {
                true => ("yes", theme.good()),
                false => ("no", theme.caution()),
            };
            rows.add([
                Cell::new(&domain.name),
                Cell::new(&limit.what),
                Cell::figure(&limit.asked),
                Cell::styled(word, look),
            ]);
            let remedy = limit.remedy.iter().map(|remedy| format!("; {remedy}"));
            let got = format!("{}{}", limit.got, remedy.collect::<String>());
            rows.note(got, if limit.enforced { Style::new() } else { look });
        }
    }
    rows
}

/// The decisions of the plan.
fn notes(status: &Status) -> Rows {
    let mut rows = Rows::new(&["plan"]);
    status.notes.iter().for_each(|note| rows.note(note.clone(), Style::new()));
    rows
}
