//! Judges the bars of flows: each with what was measured of it.

use sinew_figures::Interval;

use super::row::{Load, Server, Shape};
use crate::bar::{Bar, Holds};
use crate::report::{Row, Table, Verdict};
use crate::scenario::beside::{Judged, not_greater};

/// Limit of our CPU time per request over bare hyper's.
const CPU_MAX: f64 = 1.05;
/// Least of our requests a second over bare hyper's.
const RATE_MIN: f64 = 0.95;
/// Limit of our CPU time for a row of a database over that of axum by hand.
const ROW_CPU_MAX: f64 = 1.25;
/// Limit of P99 over P50 at the source's load.
const SPREAD_MAX: f64 = 3.0;
/// Limit of resident memory at the source's load, MiB.
const RESIDENT_MIB_MAX: f64 = 30.0;
/// Limit of the time that a node that does nothing takes, ns.
const NODE_NS_MAX: f64 = 30.0;
/// Limit of the memory that a sleeping flow takes, bytes.
const FLOW_BYTES_MAX: f64 = 2048.0;
/// Our elements a second over those of three tasks by hand.
const ELEMENTS_MIN: f64 = 0.8;
/// Limit of the memory that an idle websocket takes, bytes.
const SOCKET_BYTES_MAX: f64 = 8000.0;
/// Limit of the time to another domain and back, ns.
const APART_NS_MAX: f64 = 60_000.0;
/// Least rate of two workers over one.
const SCALE_MIN: f64 = 1.8;
/// If the load runs or waits for a CPU for this share of the time, the load is the bottleneck.
const BUSY_MIN: f64 = 0.9;

fn row(rows: &[Row], server: Server, graph: Shape, load: Load) -> Option<&Row> {
    let axes = [("server", server.word()), ("graph", graph.word()), ("load", load.word())];
    rows.iter().find(|row| row.is(&axes))
}

/// A measure of one row over that of another, round by round.
fn over(rows: [Option<&Row>; 2], measure: &str) -> Option<Interval> {
    let [this, other] = rows;
    this?.measure(measure)?.over(other?.measure(measure)?)
}

/// Our graph over the others, with one worker and 64 connections.
pub(super) fn ratios(rows: &[Row]) -> Table {
    let ours = row(rows, Server::Sinew, Shape::Ping, Load::Ping);
    let cell = |of: Option<Interval>| of.map_or("-".into(), |of| of.to_string());
    let line = |server: &Server| {
        let pair = [ours, row(rows, *server, Shape::Ping, Load::Ping)];
        let cells = ["cpu_per_request", "time_per_request", "latency"];
        let cells = cells.map(|measure| cell(over(pair, measure)));
        [vec![server.word().to_owned()], cells.to_vec()].concat()
    };
    let columns = ["sinew over", "CPU per request", "time per request", "latency P50"];
    let title = "sinew over the others, round by round: the median and its interval";
    Table::of(title, columns, Server::ALL[1..].iter().map(line).collect())
}

/// One verdict for each bar, on a machine with this many CPUs.
pub(super) fn verdicts(rows: &[Row], cpus: usize) -> Vec<Verdict> {
    let ping = |server| row(rows, server, Shape::Ping, Load::Ping);
    let ours = ping(Server::Sinew);
    let to = |server, measure| over([ours, ping(server)], measure);
    let source = row(rows, Server::Sinew, Shape::Ping, Load::Source);
    let mut verdicts = vec![
        Verdict::of(
            "ping costs little more CPU than bare hyper",
            format!("sinew / hyper <= {CPU_MAX}"),
            judged(to(Server::Hyper, "cpu_per_request"), Bar::AtMost(CPU_MAX)),
        ),
        Verdict::of(
            "ping serves nearly as many requests a second as bare hyper",
            format!("sinew / hyper >= {RATE_MIN}; here hyper's time over ours"),
            judged(over([ping(Server::Hyper), ours], "time_per_request"), Bar::AtLeast(RATE_MIN)),
        ),
        Verdict::of(
            "ping is not slower than axum",
            "CPU per request, sinew / axum <= 1",
            judged(to(Server::Axum, "cpu_per_request"), Bar::AtMost(1.0)),
        ),
        Verdict::of(
            "the source's load: no request fails",
            "0 of 102400 a round",
            none_failed(source),
        ),
        Verdict::of(
            "the source's load: P99 stays near P50",
            format!("P99 / P50 < {SPREAD_MAX}"),
            spread(source),
        ),
        Verdict::of(
            "the source's load: little memory",
            format!("< {RESIDENT_MIB_MAX} MiB"),
            at_most(source, "resident_max", RESIDENT_MIB_MAX, "MiB"),
        ),
    ];
    verdicts.extend([Shape::Nop10, Shape::Nop100].map(|graph| nop(rows, graph)));
    verdicts.extend([Shape::RowSqlite, Shape::RowPostgres].map(|graph| {
        let of = |server| row(rows, server, graph, Load::Ping);
        let ratio = over([of(Server::Sinew), of(Server::Axum)], "cpu_per_request");
        Verdict::of(
            format!("a row costs little more CPU than axum by hand: {}", graph.word()),
            format!("sinew / axum <= {ROW_CPU_MAX}"),
            judged(ratio, Bar::AtMost(ROW_CPU_MAX)),
        )
    }));
    for graph in [Shape::Sleep1k, Shape::Sleep10k] {
        let asleep = row(rows, Server::Sinew, graph, Load::Ping);
        verdicts.push(Verdict::of(
            format!("a flow that sleeps takes little memory: {}", graph.word()),
            format!("< {FLOW_BYTES_MAX} B"),
            at_most(asleep, "memory_per_flow", FLOW_BYTES_MAX, "B"),
        ));
        verdicts.push(Verdict::of(
            format!("ping costs the same while flows sleep: {}", graph.word()),
            "not distinguishable",
            not_greater(over([asleep, ours], "cpu_per_request")),
        ));
    }
    verdicts.extend(streams(rows));
    verdicts.push(apart(rows));
    verdicts.push(Verdict::of(
        "two workers serve nearly twice as much as one",
        format!(">= {SCALE_MIN}; partly: the load is the limit"),
        scale(rows, cpus),
    ));
    verdicts
}

fn nop(rows: &[Row], graph: Shape) -> Verdict {
    let claim = format!("one more node costs little: {}", graph.word());
    Verdict::of(claim, format!("<= {NODE_NS_MAX} ns a node"), node(rows, graph))
}

/// The verdicts on elements and on websockets.
fn streams(rows: &[Row]) -> [Verdict; 3] {
    let lines = |server, graph| row(rows, server, graph, Load::Elements);
    let by_hand = lines(Server::Axum, Shape::LinesTasks);
    let rate = over([by_hand, lines(Server::Sinew, Shape::Lines)], "time_per_request");
    let idle = row(rows, Server::Sinew, Shape::Websocket, Load::Idle);
    [
        Verdict::of(
            "three nodes carry nearly as many elements as three tasks by hand",
            format!("sinew / axum >= {ELEMENTS_MIN}; here the tasks' time over ours"),
            judged(rate, Bar::AtLeast(ELEMENTS_MIN)),
        ),
        Verdict::of(
            "an idle websocket takes little memory",
            format!("< {SOCKET_BYTES_MAX} B"),
            at_most(idle, "memory_per_connection", SOCKET_BYTES_MAX, "B"),
        ),
        Verdict::of("no websocket is lost", "0", all_stay(idle)),
    ]
}

fn judged(ratio: Option<Interval>, bar: Bar) -> Judged {
    ratio.map(|ratio| (ratio.to_string(), bar.holds(ratio)))
}

fn none_failed(source: Option<&Row>) -> Judged {
    let (failed, latency) = (source?.figure("failed")?, source?.measure("latency"));
    let answers = latency.map_or(0, |measure| measure.distribution.n());
    let holds = if failed == 0.0 { Holds::Yes } else { Holds::No };
    Some((format!("{failed:.0} failed, {answers} answered"), holds))
}

fn all_stay(idle: Option<&Row>) -> Judged {
    let (lost, count) = (idle?.figure("failed")?, idle?.figure("connections")?);
    let holds = if lost == 0.0 && count > 0.0 { Holds::Yes } else { Holds::No };
    Some((format!("{lost:.0} lost of {count:.0} in each round"), holds))
}

fn spread(source: Option<&Row>) -> Judged {
    let latency = &source?.measure("latency")?.distribution;
    let (p50, p99) = (latency.quantile(0.5)?, latency.quantile(0.99)?);
    let ratio = p99 as f64 / p50 as f64;
    let ms = |ns: u64| ns as f64 * 1e-6;
    let text = format!("{ratio:.2}: P50 {:.2} ms, P99 {:.2} ms", ms(p50), ms(p99));
    Some((text, if ratio < SPREAD_MAX { Holds::Yes } else { Holds::No }))
}

fn at_most(row: Option<&Row>, name: &str, max: f64, unit: &str) -> Judged {
    let value = row?.figure(name)?;
    Some((format!("{value:.1} {unit}"), if value < max { Holds::Yes } else { Holds::No }))
}

/// What one more node costs: the difference to ping, round by round, over the number of nodes.
fn node(rows: &[Row], graph: Shape) -> Judged {
    let of = |graph| row(rows, Server::Sinew, graph, Load::Ping)?.measure("cpu_per_request");
    let (more, ping) = (of(graph)?, of(Shape::Ping)?);
    let nodes = graph.nops() as f64;
    let pairs = more.rounds.iter().zip(&ping.rounds);
    let ns: Vec<f64> = pairs.map(|(more, ping)| (more - ping) / nodes).collect();
    let ns = Interval::of(&ns)?;
    Some((format!("{ns:.1} ns"), Bar::AtMost(NODE_NS_MAX).holds(ns)))
}

/// The time to another domain and back: P50 of the latency, the difference to ping round by round.
fn apart(rows: &[Row]) -> Verdict {
    Verdict::of(
        "a packet to another domain and its reply take little time",
        format!("<= {:.0} us more than inside one domain", APART_NS_MAX / 1000.0),
        way_apart(rows),
    )
}

fn way_apart(rows: &[Row]) -> Judged {
    let of = |graph| row(rows, Server::Sinew, graph, Load::Alone)?.measure("latency");
    let (apart, inside) = (of(Shape::Apart)?, of(Shape::Ping)?);
    let pairs = apart.rounds.iter().zip(&inside.rounds);
    let ns = Interval::of(&pairs.map(|(apart, inside)| apart - inside).collect::<Vec<_>>())?;
    let times = over(
        [Shape::Apart, Shape::Ping].map(|graph| row(rows, Server::Sinew, graph, Load::Alone)),
        "latency",
    )?;
    let text = format!("{:.1} us, {times} times as long as inside", ns.median / 1000.0);
    Some((text, Bar::AtMost(APART_NS_MAX).holds(ns)))
}

/// Two workers over one. If the load shares the CPUs with the workers, it does not get enough of
/// them to keep two workers busy. Then the verdict shows how long the load ran and waited for a
/// CPU, and what a request costs with two workers over what it costs with one.
fn scale(rows: &[Row], cpus: usize) -> Judged {
    let of = |load| row(rows, Server::Sinew, Shape::Ping, load);
    let (one, two) = (of(Load::OneWorker), of(Load::TwoWorkers));
    let rate = over([one, two], "time_per_request")?;
    let cost = over([two, one], "cpu_per_request")?;
    let [server, ran, waited, busy] = shares(two?)?;
    let text = format!(
        "{rate}; the load ran {ran} of the time and waited {waited} of it for one of {cpus} CPUs; \
         the server used {server} CPUs; a request cost the server {cost} times what it costs with \
         one worker"
    );
    let is_limit = busy.is_firm() && busy.median >= BUSY_MIN;
    match Bar::AtLeast(SCALE_MIN).holds(rate) {
        Holds::No if is_limit => Some((text, Holds::Partly)),
        holds => Some((text, holds)),
    }
}

/// Shares of the time that a request took, round by round: how long the server ran, on all CPUs;
/// how long the load ran, waited for a CPU, and both.
fn shares(row: &Row) -> Option<[Interval; 4]> {
    let time = &row.measure("time_per_request")?.rounds;
    let share = |measures: &[&str]| -> Option<Interval> {
        let rounds = measures.iter().map(|name| Some(&row.measure(name)?.rounds));
        let rounds = rounds.collect::<Option<Vec<_>>>()?;
        let sum = |at: usize| rounds.iter().filter_map(|all| all.get(at)).sum::<f64>();
        Interval::of(&time.iter().enumerate().map(|(at, time)| sum(at) / time).collect::<Vec<_>>())
    };
    let (ran, waited) = ("client_cpu_per_request", "client_wait_per_request");
    Some([share(&["cpu_per_request"])?, share(&[ran])?, share(&[waited])?, share(&[ran, waited])?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use sinew_figures::Distribution;

    /// A row with these values of a measure in each round.
    fn measured(load: Load, measures: &[(&str, f64)]) -> Row {
        let words = [("server", "sinew"), ("graph", "ping"), ("load", load.word())];
        let mut row = Row::of(&words);
        for &(name, ns) in measures {
            for _ in 0..3 {
                row.measure_mut(name).add_round(&Distribution::new(), ns, None);
            }
        }
        row
    }

    /// The verdict on two workers with these times: server, load, its wait, wall clock.
    fn judged(two: [f64; 4]) -> Holds {
        let names = [
            "cpu_per_request",
            "client_cpu_per_request",
            "client_wait_per_request",
            "time_per_request",
        ];
        let row = |load, ns: [f64; 4]| measured(load, &[0, 1, 2, 3].map(|at| (names[at], ns[at])));
        let one = row(Load::OneWorker, [5000.0, 2500.0, 0.0, 5000.0]);
        scale(&[one, row(Load::TwoWorkers, two)], 2).expect("both were measured").1
    }

    #[test]
    fn a_second_worker_that_the_load_cannot_feed_is_not_judged() {
        assert_eq!(judged([5000.0, 2500.0, 0.0, 2600.0]), Holds::Yes);
        assert_eq!(judged([5000.0, 2500.0, 1200.0, 3750.0]), Holds::Partly, "the load is busy");
        assert_eq!(judged([5000.0, 2500.0, 0.0, 3750.0]), Holds::No, "the load has time");
    }
}
