//! What follows from the rows: whether our links reach their bars, and whether the claims about
//! lock-free links and shared memory hold here.

use sinew_figures::Interval;

use crate::bar::{Bar, Holds};
use crate::report::{Measure, Row, Verdict};

/// At most this far apart counts as equal.
const EQUAL: Bar = Bar::Within(0.05);

/// The source of the claims that are tested here.
const ARTICLE: &str = "article";

/// All verdicts for which there are rows.
pub(super) fn of(rows: &[Row]) -> Vec<Verdict> {
    let mut verdicts = vec![
        to_token(rows, "up to 48 B", &["8", "48"], Bar::AtMost(1.10)),
        to_token(rows, "256 B", &["256"], Bar::AtMost(1.35)),
        placements(rows, "shared_memory costs what in_process does, between threads", "threads"),
        placements(
            rows,
            &format!("{ARTICLE}: shared memory between processes costs what in-process does"),
            "processes",
        ),
        mutex(rows),
    ];
    let is_read = |bytes: &u32| {
        let bytes = bytes.to_string();
        find(rows, &[("bytes", &bytes)]).iter().any(|row| row.axis("value").is_some())
    };
    let sizes = super::latest::SIZES.into_iter().filter(is_read);
    verdicts.extend(sizes.map(|bytes| latest(rows, bytes)));
    verdicts
}

/// The rows with these values.
pub(super) fn find<'a>(rows: &'a [Row], axes: &[(&str, &str)]) -> Vec<&'a Row> {
    rows.iter().filter(|row| row.is(axes)).collect()
}

/// The round trips of the first of these rows that was measured.
fn round_trip<'a>(rows: &'a [Row], axes: &[(&str, &str)]) -> Option<&'a Measure> {
    let measures = find(rows, axes).into_iter().filter_map(|row| row.measure("round_trip"));
    measures.into_iter().find(|measure| !measure.rounds.is_empty())
}

/// The axes of a queue that polls and copies.
const QUEUE: [(&str, &str); 4] =
    [("sync", "lock_free"), ("delivery", "queue"), ("wait", "spin"), ("access", "copied")];

/// Our queues that can be the fastest: in process or in shared memory.
pub(super) fn queues<'a>(rows: &'a [Row], bytes: &str) -> Vec<&'a Row> {
    let of = |transport| {
        let axes = [&QUEUE[..], &[("transport", transport), ("bytes", bytes)]].concat();
        find(rows, &axes)
    };
    [of("in_process"), of("shared_memory")].concat()
}

fn to_token(rows: &[Row], what: &str, sizes: &[&str], bar: Bar) -> Verdict {
    let rows_of = sizes.iter().flat_map(|bytes| queues(rows, bytes));
    let ratio = |row: &Row| row.measure("round_trip").and_then(Measure::ratio);
    let found: Vec<_> = rows_of.filter_map(|row| Some((ratio(row)?, row.id()))).collect();
    let worst = found.iter().max_by(|a, b| a.0.median.total_cmp(&b.0.median));
    let pair = round_trip(rows, &[("transport", "pair")]).and_then(Measure::ratio);
    let pair = pair.map_or(String::new(), |pair| {
        format!("; two lines, one each way, the least that two links can do with: {pair}")
    });
    let ours = worst.map(|(ratio, id)| {
        let ours = format!("{ratio} in the worst of {} rows, {id}{pair}", found.len());
        (ours, bar.holds(*ratio))
    });
    Verdict::of(format!("queue, round trip / token, {what}"), bar.to_string(), ours)
}

/// Shared memory in this placement over in_process between threads, for all sizes.
fn placements(rows: &[Row], claim: &str, placement: &str) -> Verdict {
    let of = |transport, placement, bytes: &str| {
        let axes =
            [&QUEUE[..], &[("transport", transport), ("placement", placement), ("bytes", bytes)]]
                .concat();
        round_trip(rows, &axes).cloned()
    };
    let sizes = super::case::SIZES.map(|bytes| bytes.to_string());
    let pairs: Vec<_> = sizes
        .iter()
        .filter_map(|bytes| {
            let ours = of("in_process", "threads", bytes)?;
            Some((bytes, versus(&of("shared_memory", placement, bytes)?, &ours)))
        })
        .collect();
    let medians: Vec<_> =
        pairs.iter().filter_map(|(_, ratios)| Some(Interval::of(ratios)?.median)).collect();
    let by_size: Vec<_> = pairs
        .iter()
        .zip(&medians)
        .map(|((bytes, _), median)| format!("{bytes} B {median:.2}"))
        .collect();
    let mean = Interval::of(&mean_over_sizes(&pairs));
    let ours = mean.map(|mean| {
        let ours = format!("round trips {mean}, mean over sizes ({})", by_size.join(", "));
        (ours, EQUAL.holds(mean))
    });
    Verdict::of(claim, EQUAL.to_string(), ours)
}

/// The geometric mean over sizes, round by round.
fn mean_over_sizes(pairs: &[(&String, Vec<f64>)]) -> Vec<f64> {
    let rounds = pairs.iter().map(|(_, ratios)| ratios.len()).min().unwrap_or(0);
    let mean = |round| {
        let logs = pairs.iter().map(|(_, ratios)| f64::ln(ratios[round]));
        (logs.sum::<f64>() / pairs.len() as f64).exp()
    };
    (0..rounds).map(mean).collect()
}

/// One over the other, round by round. If both have ratios to the token, these are compared: the
/// distance of the CPUs may have changed between the two.
fn versus(this: &Measure, other: &Measure) -> Vec<f64> {
    let with_token = !this.ratios.is_empty() && !other.ratios.is_empty();
    let of = |measure: &Measure| {
        if with_token { measure.ratios.clone() } else { measure.rounds.clone() }
    };
    of(this).iter().zip(of(other)).map(|(this, other)| this / other).collect()
}

/// The claim that a mutex is what costs: judges what the mutex costs alone, and what sleeping
/// costs.
fn mutex(rows: &[Row]) -> Verdict {
    let of = |sync, wait| {
        let axes = [
            ("transport", "in_process"),
            ("delivery", "queue"),
            ("placement", "threads"),
            ("access", "copied"),
            ("bytes", "8"),
            ("sync", sync),
            ("wait", wait),
        ];
        round_trip(rows, &axes)
    };
    let fast = of("lock_free", "spin");
    let over = |sync, wait| Interval::of(&versus(of(sync, wait)?, fast?));
    let both = over("mutex", "park");
    let (lock, sleep) = (over("mutex", "spin"), over("lock_free", "park"));
    let part = |name, part: Option<Interval>| {
        part.map_or(String::new(), |part| format!("; {name} {part}"))
    };
    let found = both.map(|both| {
        let (alone, asleep) = (part("the mutex alone", lock), part("the sleeping alone", sleep));
        let holds = match both.median {
            _ if !both.is_firm() => Holds::NotDistinguishable,
            // The slow part is the sleeping, which a lock-free link can do as well.
            _ if lock.is_some_and(|lock| lock.high < both.low / 2.0) && both.low > 1.0 => {
                Holds::Partly
            }
            median if median >= 50.0 => Holds::Yes,
            _ if both.low > 1.0 => Holds::Partly,
            _ if both.high < 1.0 => Holds::No,
            _ => Holds::NotDistinguishable,
        };
        (format!("round trip of 8 B {both}{alone}{asleep}"), holds)
    });
    Verdict::of(
        format!("{ARTICLE}: a mutex with a condition variable costs a hundred times lock-free"),
        "about 100 (78-103 us against 0.74-0.82 us, four stages)",
        found,
    )
}

/// One verdict for each size: a small read is only a few instructions, so the fixed ones weigh
/// most.
fn latest(rows: &[Row], bytes: u32) -> Verdict {
    const BAR: Bar = Bar::AtMost(1.10);
    let ratio = |row: &Row| Some((row.measure("read")?.ratio()?, row.axis("value")?.to_string()));
    let rows = find(rows, &[("bytes", &bytes.to_string())]);
    let found: Vec<_> = rows.into_iter().filter_map(ratio).collect();
    let each: Vec<_> = found.iter().map(|(ratio, value)| format!("{value} {ratio}")).collect();
    let worst = found.iter().max_by(|a, b| a.0.median.total_cmp(&b.0.median));
    let ours = worst.map(|(ratio, _)| (each.join("; "), BAR.holds(*ratio)));
    Verdict::of(format!("latest, read / read of a seqlock, {bytes} B"), BAR.to_string(), ours)
}
