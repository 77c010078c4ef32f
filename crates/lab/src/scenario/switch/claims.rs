//! The figures of the source beside ours, and whether its claims hold here: with the source's
//! figures, and by the size of this machine's own second-level cache. The criteria were set before
//! the first run.

use sinew_figures::Interval;
use sinew_figures::units::{ratio as in_digits, size};

use super::SWITCHES;
use super::case::{ARRAYS, HandedBy, SOURCE, STRIDES, SwitchCase, Walk, word_of};
use super::others::OTHERS;
use crate::bar::{Bar, Holds};
use crate::harness::Placement;
use crate::report::{Measure, Row, Table, Verdict};

/// Li, Ding, Shen 2007 as the source gives them, us: a switch without an array.
const DIRECT_US: f64 = 3.8;
/// The total cost for arrays up to [`SMALL_BYTES`].
const SMALL_US: (f64, f64) = (4.0, 8.0);
const SMALL_BYTES: usize = 200_000;
/// The total cost from 256 to 512 KB.
const LARGE_US: (f64, f64) = (38.6, 203.2);
const LARGE: [usize; 2] = [256 << 10, 512 << 10];
/// The mean for strides of 8 and of 128 bytes, at one size that the source does not name.
const STRIDES_US: [f64; 2] = [116.5, 825.3];
/// The second-level cache of the source's machine.
const ITS_L2: usize = 512 << 10;

/// The source's machine is of 2007: a time from half to twice the source's counts as like it.
const LIKE: f64 = 2.0;
/// What the source calls small costs at most this many times as much as no array: 8 to 3.8 us.
const STAYS: Bar = Bar::AtMost(SMALL_US.1 / DIRECT_US);
/// From the most that a small array costs to the least that a large one costs: a jump.
const JUMP: f64 = LARGE_US.0 / SMALL_US.1;
/// The source's ratio of the cost with stride 128 to that with stride 8, halved, because half of it
/// still counts as like it.
const STRIDE_JUMP: f64 = STRIDES_US[1] / STRIDES_US[0] / LIKE;
/// The programs of others do other work between two switches, so a quarter counts as agreement.
const AGREES: Bar = Bar::Within(0.25);

/// A row that was measured, and in which every turn was a switch.
fn proven<'a>(rows: &'a [Row], case: &SwitchCase) -> Option<&'a Row> {
    let axes = case.row().axes;
    rows.iter().find(|row| row.axes == axes && row.figure(SWITCHES) >= Some(1.0))
}

fn measure<'a>(rows: &'a [Row], case: &SwitchCase, name: &str) -> Option<&'a Measure> {
    proven(rows, case)?.measure(name)
}

/// The differences, round by round.
fn less(this: &[f64], other: &[f64]) -> Vec<f64> {
    this.iter().zip(other).map(|(this, other)| this - other).collect()
}

/// What a switch costs, round by round, ns: the turn, less the same walk alone, less the calls
/// alone. The source counts in this way.
fn cost(rows: &[Row], case: &SwitchCase) -> Option<Vec<f64>> {
    let part = |name| Some(&measure(rows, case, name)?.rounds);
    let walked = less(part("turn")?, part("walk_alone")?);
    match measure(rows, &bare(case), "calls_alone") {
        Some(calls) => Some(less(&walked, &calls.rounds)),
        // `sched_yield` has no calls to subtract.
        None if case.by == HandedBy::Yield => Some(walked),
        None => None,
    }
}

/// The same case without an array.
fn bare(case: &SwitchCase) -> SwitchCase {
    SwitchCase { by: case.by, between: case.between, ..SOURCE }
}

/// The part of the cost that is due to the array.
fn indirect(rows: &[Row], case: &SwitchCase) -> Option<Vec<f64>> {
    Some(less(&cost(rows, case)?, &cost(rows, &bare(case))?))
}

/// The interval of these times, in us.
fn us(ns: &[f64]) -> Option<Interval> {
    Interval::of(&ns.iter().map(|ns| ns / 1e3).collect::<Vec<_>>())
}

/// The ratio, round by round; `None` if noise was larger than the other cost, or if there are no
/// rounds.
fn over(this: &[f64], other: &[f64]) -> Option<Interval> {
    let ratios: Vec<_> = this.iter().zip(other).map(|(this, other)| this / other).collect();
    let is_real = other.iter().all(|ns| *ns > 0.0);
    if is_real { Interval::of(&ratios) } else { None }
}

/// Whether our cost is within the source's range, or is like it.
fn is_like(theirs: (f64, f64), ours: Interval) -> Holds {
    let (low, high) = (theirs.0 / LIKE, theirs.1 * LIKE);
    let holds = match ours {
        ours if ours.low >= low && ours.high <= high => Holds::Yes,
        ours if ours.high < low || ours.low > high => Holds::No,
        _ => Holds::NotDistinguishable,
    };
    holds.if_firm(&[ours])
}

/// Whether something costs this many times as much, or at least much more.
fn is_jump(ratio: Interval, bar: f64) -> Holds {
    let holds = match ratio {
        ratio if ratio.low >= bar => Holds::Yes,
        ratio if ratio.low >= LIKE => Holds::Partly,
        ratio if ratio.high < LIKE => Holds::No,
        _ => Holds::NotDistinguishable,
    };
    holds.if_firm(&[ratio])
}

/// All verdicts. `l2` is the size of this machine's second-level cache, if it is known.
pub(super) fn verdicts(rows: &[Row], l2: Option<usize>) -> Vec<Verdict> {
    let mut all = vec![direct(rows), small(rows), large(rows)];
    all.extend([Walk::Read, Walk::Random].map(|walk| leaves_cache(rows, l2, walk)));
    let there = format!("at {}, as large as that machine's L2", size(ITS_L2 as f64));
    all.push(stride(rows, ITS_L2, &there));
    if let Some(array) = l2.and_then(|l2| above(rows, l2, Walk::Read))
        && array != ITS_L2
    {
        let here = format!("at {}, both arrays beyond this machine's L2", size(array as f64));
        all.push(stride(rows, array, &here));
    }
    all.push(threads(rows));
    all.extend(OTHERS.iter().map(|other| beside(rows, other.name)));
    all
}

fn direct(rows: &[Row]) -> Verdict {
    let found = || {
        let switch = us(&cost(rows, &SOURCE)?)?;
        let turns = HandedBy::ALL.iter().filter_map(|&by| {
            let turn = measure(rows, &SwitchCase { by, ..SOURCE }, "turn")?;
            Some(format!("{} {:.2}", by.word(), us(&turn.rounds)?.median))
        });
        let turns: Vec<_> = turns.collect();
        let ours = format!(
            "{switch} us by a pipe between processes, without the calls; whole turns, with the \
             calls: {}",
            turns.join(", ")
        );
        Some((ours, is_like((DIRECT_US, DIRECT_US), switch)))
    };
    let theirs = format!("{DIRECT_US} us; from half to twice counts as similar");
    Verdict::of("a switch costs 3.8 us without an array", theirs, found())
}

/// The sizes of arrays that were measured with this walk.
fn measured(rows: &[Row], walk: Walk) -> Vec<usize> {
    let sizes = ARRAYS.iter().map(|(_, bytes)| *bytes).filter(|bytes| *bytes > 0);
    sizes.filter(|&array| cost(rows, &SwitchCase { array, walk, ..SOURCE }).is_some()).collect()
}

/// The costs at a size, their median, and that in words.
fn at(rows: &[Row], array: usize, walk: Walk) -> Option<(Vec<f64>, Interval, String)> {
    let ns = cost(rows, &SwitchCase { array, walk, ..SOURCE })?;
    let middle = us(&ns)?;
    let words = format!("{} {middle} us", word_of(array));
    Some((ns, middle, words))
}

fn small(rows: &[Row]) -> Verdict {
    let found = || {
        let bare = cost(rows, &SOURCE)?;
        let sizes = measured(rows, Walk::Read).into_iter().filter(|size| *size <= SMALL_BYTES);
        let all: Vec<_> = sizes.filter_map(|array| at(rows, array, Walk::Read)).collect();
        let words: Vec<_> = all.iter().map(|(.., words)| words.as_str()).collect();
        if all.is_empty() {
            return None;
        }
        let stays: Option<Vec<_>> = all.iter().map(|(ns, ..)| over(ns, &bare)).collect();
        let times = |stays: &Vec<Interval>| {
            let all: Vec<_> = stays.iter().map(|stays| in_digits(stays.median)).collect();
            format!("; {} times the cost without an array", all.join(", "))
        };
        let ours = format!("{}{}", words.join(", "), stays.as_ref().map_or(String::new(), times));
        let stays: Vec<_> = stays.iter().flatten().map(|ratio| STAYS.holds(*ratio)).collect();
        let are_all = |of: &[Holds], what| !of.is_empty() && of.iter().all(|it| *it == what);
        let like: Vec<_> = all.iter().map(|(_, middle, _)| is_like(SMALL_US, *middle)).collect();
        let holds = match (are_all(&stays, Holds::Yes), are_all(&like, Holds::Yes)) {
            (true, true) => Holds::Yes,
            (true, false) => Holds::Partly,
            _ if stays.contains(&Holds::No) => Holds::No,
            _ => Holds::NotDistinguishable,
        };
        Some((ours, holds))
    };
    let theirs = format!(
        "{} to {} us; from half to twice counts as similar; partly: at most {:.1} times the cost \
         without an array",
        SMALL_US.0,
        SMALL_US.1,
        SMALL_US.1 / DIRECT_US
    );
    Verdict::of("up to 200 KB a switch costs 4 to 8 us in all", theirs, found())
}

fn large(rows: &[Row]) -> Verdict {
    let found = || {
        let sizes = measured(rows, Walk::Read).into_iter().filter(|size| *size <= SMALL_BYTES);
        let (before, ..) = at(rows, sizes.max()?, Walk::Read)?;
        let [(_, least, first), (after, most, second)] =
            [at(rows, LARGE[0], Walk::Read)?, at(rows, LARGE[1], Walk::Read)?];
        let jump = over(&after, &before);
        let times = jump.map_or("in the noise".into(), |jump| jump.to_string());
        let ours = format!("{first}, {second}; 512K over the largest below 200 KB: {times}");
        let holds = match jump.map_or(Holds::NotDistinguishable, |jump| is_jump(jump, JUMP)) {
            Holds::Yes => match [is_like(LARGE_US, least), is_like(LARGE_US, most)] {
                [Holds::Yes, Holds::Yes] => Holds::Yes,
                _ => Holds::Partly,
            },
            other => other,
        };
        Some((ours, holds))
    };
    let theirs = format!(
        "{} to {} us; from half to twice counts as similar; partly: twice the cost below 200 KB",
        LARGE_US.0, LARGE_US.1
    );
    let claim = "from 256 to 512 KB a switch costs 38.6 to 203.2 us, consecutive words";
    Verdict::of(claim, theirs, found())
}

/// The largest measured array that leaves as much of this cache to both sides as the source's small
/// ones: 200 of 256 KB for each side.
fn below(rows: &[Row], l2: usize, walk: Walk) -> Option<usize> {
    let fits = |array: &usize| 2 * array * ITS_L2 <= 2 * SMALL_BYTES * l2;
    measured(rows, walk).into_iter().filter(fits).max()
}

/// The largest measured arrays that together fill the cache once to twice; in the source 256 to 512
/// KB.
fn above(rows: &[Row], l2: usize, walk: Walk) -> Option<usize> {
    let fills = |array: &usize| (l2..=2 * l2).contains(&(2 * array));
    measured(rows, walk).into_iter().filter(fills).max()
}

fn leaves_cache(rows: &[Row], l2: Option<usize>, walk: Walk) -> Verdict {
    let found = |l2: usize| {
        let (low, high) = (below(rows, l2, walk)?, above(rows, l2, walk)?);
        let (before, _, first) = at(rows, low, walk)?;
        let (after, _, second) = at(rows, high, walk)?;
        let jump = over(&after, &before);
        let times = jump.map_or("in the noise".into(), |jump| jump.to_string());
        let ours = format!("{times} times, L2 {}: {first}, {second}", size(l2 as f64));
        Some((ours, jump.map_or(Holds::NotDistinguishable, |jump| is_jump(jump, JUMP))))
    };
    let found = match l2 {
        Some(l2) => found(l2),
        None => Some(("the kernel does not say how large L2 is".into(), Holds::NotMeasured)),
    };
    let how = if walk == Walk::Random { "random lines" } else { "consecutive words" };
    let claim = format!("a switch costs much more once both arrays together fill L2, {how}");
    let theirs = format!(">= {JUMP:.1} times (8 to 38.6 us at 512 KB); partly: twice");
    Verdict::of(claim, theirs, found)
}

fn stride(rows: &[Row], array: usize, when: &str) -> Verdict {
    let found = || {
        let case = |stride| SwitchCase { array, stride, ..SOURCE };
        let [near, far] = [cost(rows, &case(8))?, cost(rows, &case(128))?];
        let ratio = over(&far, &near);
        let times = ratio.map_or("in the noise".into(), |ratio| ratio.to_string());
        let ours = format!("{times} times: {} us, {} us", us(&near)?, us(&far)?);
        let holds = ratio.map_or(Holds::NotDistinguishable, |it| is_jump(it, STRIDE_JUMP));
        Some((ours, holds))
    };
    let [near, far] = STRIDES_US;
    let theirs = format!(
        "{near} to {far} us, {:.1} times; half of that counts as similar; partly: twice",
        far / near
    );
    let claim = format!("a switch costs more with a stride of 128 B than of 8 B, {when}");
    Verdict::of(claim, theirs, found())
}

/// Turns between threads over turns between processes, handed over in one way, without an array.
fn threads_over(rows: &[Row], by: HandedBy) -> Option<Interval> {
    let turn = |between| measure(rows, &SwitchCase { by, between, ..SOURCE }, "turn");
    turn(Placement::Threads)?.over(turn(Placement::Processes)?)
}

fn threads(rows: &[Row]) -> Verdict {
    let all: Vec<_> =
        HandedBy::ALL.iter().filter_map(|&by| Some((by, threads_over(rows, by)?))).collect();
    let words: Vec<_> = all.iter().map(|(by, ratio)| format!("{} {ratio}", by.word())).collect();
    let cheaper = all.iter().filter(|(_, ratio)| ratio.is_firm() && ratio.high < 1.0).count();
    let dearer = all.iter().filter(|(_, ratio)| ratio.is_firm() && ratio.low >= 1.0).count();
    let holds = match (cheaper, dearer) {
        (cheaper, _) if cheaper == all.len() => Holds::Yes,
        (0, dearer) if dearer == all.len() => Holds::No,
        (0, _) => Holds::NotDistinguishable,
        _ => Holds::Partly,
    };
    let found = (!all.is_empty()).then(|| (format!("turns: {}", words.join("; ")), holds));
    let theirs = "threads / processes < 1 by every way; partly: by some";
    Verdict::of("a switch between threads is cheaper than between processes", theirs, found)
}

/// Our cost over that of another program.
fn beside(rows: &[Row], name: &str) -> Verdict {
    let found = || {
        let theirs = rows.iter().find(|row| row.axis("by") == Some(name))?.measure("turn")?;
        let turns = match name {
            "lat_ctx" => cost(rows, &SOURCE)?,
            _ => measure(rows, &SOURCE, "turn")?.rounds.clone(),
        };
        let ratio = over(&turns, &theirs.rounds)?;
        Some((ratio.to_string(), AGREES.holds(ratio)))
    };
    let claim = format!("our switch by a pipe between processes / that of {name}");
    Verdict::of(claim, AGREES.to_string(), found())
}

/// All tables.
pub(super) fn tables(rows: &[Row], l2: Option<usize>) -> Vec<Table> {
    vec![ratios(rows, l2), costs(rows), by_stride(rows), ways(rows)]
}

/// The turn over the walk alone.
fn times_walk(rows: &[Row], case: &SwitchCase) -> Option<Interval> {
    measure(rows, case, "turn")?.over(measure(rows, case, "walk_alone")?)
}

fn ratios(rows: &[Row], l2: Option<usize>) -> Table {
    let ways = HandedBy::ALL.iter().flat_map(|&by| Placement::ALL.iter().map(move |&it| (by, it)));
    let line = |(by, between): (HandedBy, Placement), (word, array): (&str, usize)| {
        let of = |walk| times_walk(rows, &SwitchCase { by, between, array, walk, stride: 8 });
        let all = [Walk::Read, Walk::Modify, Walk::Random].map(of);
        let both = l2.map_or("-".into(), |l2| in_digits(2.0 * array as f64 / l2 as f64));
        let head = vec![by.word().into(), between.word().into(), word.into(), both];
        all.iter().any(Option::is_some).then(|| [head, all.map(Table::cell).to_vec()].concat())
    };
    let all = ways.flat_map(|way| ARRAYS[1..].iter().filter_map(move |&at| line(way, at)));
    let columns = ["by", "between", "array", "both / L2", "read", "modify", "random"];
    Table::of("the turn / the same walk alone, consecutive words", columns, all.collect())
}

fn costs(rows: &[Row]) -> Table {
    let range = |range: (f64, f64)| format!("{} to {}", range.0, range.1);
    let line = |&(word, array): &(&str, usize)| {
        let theirs = match array {
            0 => DIRECT_US.to_string(),
            small if small <= SMALL_BYTES => range(SMALL_US),
            large if LARGE.contains(&large) => range(LARGE_US),
            _ => "-".into(),
        };
        let of = |walk| {
            let case = SwitchCase { array, walk, ..SOURCE };
            Table::cell(cost(rows, &case).and_then(|ns| us(&ns)))
        };
        let part = |walk| {
            let case = SwitchCase { array, walk, ..SOURCE };
            Table::cell(indirect(rows, &case).and_then(|ns| us(&ns)))
        };
        let walks = [Walk::Read, Walk::Modify, Walk::Random];
        let cells = match array {
            0 => [vec![of(Walk::Read); 3], vec!["-".into(); 2]].concat(),
            _ => walks.map(of).into_iter().chain([Walk::Read, Walk::Random].map(part)).collect(),
        };
        [vec![word.into(), theirs], cells].concat()
    };
    let columns =
        ["array", "theirs", "read", "modify", "random", "read, indirect", "random, indirect"];
    let title = "cost of a switch, us: the turn minus the walk alone minus the calls alone";
    Table::of(title, columns, ARRAYS.iter().map(line).collect())
}

fn by_stride(rows: &[Row]) -> Table {
    const SIZES: [usize; 2] = [512 << 10, 2 << 20];
    let line = |&stride: &usize| {
        let theirs = match stride {
            8 => STRIDES_US[0].to_string(),
            128 => STRIDES_US[1].to_string(),
            _ => "-".into(),
        };
        let of = |array| {
            let case = SwitchCase { array, stride, ..SOURCE };
            [
                Table::cell(times_walk(rows, &case)),
                Table::cell(cost(rows, &case).and_then(|ns| us(&ns))),
            ]
        };
        let head = [stride.to_string(), theirs];
        head.into_iter().chain(SIZES.into_iter().flat_map(of)).collect()
    };
    let columns = ["stride, B", "theirs, us", "512K / walk", "512K, us", "2M / walk", "2M, us"];
    let title = "by stride, words read: the turn / the same walk alone, and the cost of a switch";
    Table::of(title, columns, STRIDES.iter().map(line).collect())
}

fn ways(rows: &[Row]) -> Table {
    let line = |&by: &HandedBy| {
        let case = |between| SwitchCase { by, between, ..SOURCE };
        let turn = |between| measure(rows, &case(between), "turn").and_then(|it| us(&it.rounds));
        let calls = measure(rows, &case(Placement::Processes), "calls_alone");
        let least = |between| proven(rows, &case(between))?.figure(SWITCHES);
        let least = least(Placement::Threads).into_iter().chain(least(Placement::Processes));
        let least = least.min_by(f64::total_cmp).map_or("no proof".into(), in_digits);
        vec![
            by.word().into(),
            Table::cell(threads_over(rows, by)),
            Table::cell(turn(Placement::Threads)),
            Table::cell(turn(Placement::Processes)),
            Table::cell(calls.and_then(|calls| us(&calls.rounds))),
            least,
        ]
    };
    let columns = [
        "by",
        "threads / processes",
        "threads, us",
        "processes, us",
        "calls alone, us",
        "switches a turn",
    ];
    let title = "the whole turn without an array, by how it is handed over";
    Table::of(title, columns, HandedBy::ALL.iter().map(line).collect())
}

#[cfg(test)]
mod tests;
