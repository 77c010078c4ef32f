//! The result of a replay, as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};
use sinew_core::replay::{Difference, Number, Site, numbers};
use sinew_core::trace::Failed;
use sinew_spec::plan::{End, Plan};

use super::ends::{ThreadEnd, lines};
use super::player::Player;
use super::tally::{First, Largest, Tally, port_name, site_name};
use super::thread::RecordedThread;

/// Most differences of one cycle that are shown one by one. The number of the others is shown.
const SHOWN_MAX: usize = 64;

/// The report of a finished replay.
pub struct ReplayReport<'a> {
    player: &'a Player<'a>,
    plan: &'a Plan,
    file: String,
    /// Whether to show differences one by one.
    diff: bool,
    /// How long it took; `None` if the user chose the pace.
    taken_s: Option<f64>,
}

impl<'a> ReplayReport<'a> {
    /// The report of what `player` has replayed.
    pub fn new(player: &'a Player<'a>, diff: bool, taken_s: Option<f64>) -> ReplayReport<'a> {
        let file = player.recording.file.display().to_string();
        ReplayReport { player, plan: &player.graphs.now, file, diff, taken_s }
    }

    fn cycles(&self) -> u64 {
        self.player.threads.iter().map(|thread| thread.tally.cycles).sum()
    }

    fn differing(&self) -> u64 {
        self.player.threads.iter().map(|thread| thread.tally.differing).sum()
    }

    /// Numbers of the threads with a replayed cycle, and of the ports and signals that were
    /// compared.
    fn compared(&self) -> (usize, usize, usize) {
        let threads = self.player.threads.iter().filter(|thread| thread.tally.cycles > 0);
        threads.fold((0, 0, 0), |(threads, ports, signals), thread| {
            let (more_ports, more_signals) = thread.compared(self.plan);
            (threads + 1, ports + more_ports, signals + more_signals)
        })
    }

    /// Whether everything that should be there was replayed, and nothing differs.
    pub fn is_good(&self) -> bool {
        self.cycles() > 0 && self.differing() == 0 && self.player.stops.is_empty()
    }

    /// Recorded time divided by the time it took, and cycles per second.
    fn speed(&self) -> Option<(f64, f64)> {
        let taken_s = self.taken_s.filter(|&taken_s| taken_s > 0.0 && self.cycles() > 0)?;
        Some((self.player.recorded_ns as f64 * 1e-9 / taken_s, self.cycles() as f64 / taken_s))
    }

    /// As text for people.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.write_text(&mut text).expect("a string takes all");
        text
    }

    fn write_text(&self, text: &mut String) -> std::fmt::Result {
        let ReplayReport { player, .. } = self;
        let recording = player.recording;
        let (graph, parts) = (&recording.head().graph, recording.parts.len() as u64);
        let recorded_s = player.recorded_ns as f64 * 1e-9;
        let (parts, lives) = (grouped(parts, "part"), recording.lives() as u64);
        let resets = match lives {
            0 | 1 => String::new(),
            _ => format!(", {}", grouped(lives - 1, "reset")),
        };
        writeln!(text, "{}: graph '{graph}', {parts}{resets}, {recorded_s:.3} s", self.file)?;
        let (threads, ports, signals) = self.compared();
        let what = format!(
            "{} of {}, {}, {}",
            grouped(self.cycles(), "cycle"),
            grouped(threads as u64, "thread"),
            grouped(ports as u64, "port"),
            grouped(signals as u64, "signal"),
        );
        match (self.cycles(), self.differing()) {
            (0, _) => writeln!(text, "no cycle was replayed")?,
            (_, 0) => writeln!(text, "{what}: bit-identical")?,
            (_, differing) => writeln!(text, "{what}: {} differ", grouped(differing, "cycle"))?,
        }
        if let (Some((times, per_s)), Some(taken_s)) = (self.speed(), self.taken_s) {
            let per_s = grouped(per_s as u64, "cycle");
            writeln!(
                text,
                "in {taken_s:.3} s: {per_s} a second, {times:.1} times as fast as they were"
            )?;
        }
        lines(&player.ends).try_for_each(|line| writeln!(text, "{line}"))?;
        if player.interrupted {
            writeln!(text, "interrupted before the end")?;
        }
        for thread in player.threads.iter().filter(|thread| thread.tally.differing > 0) {
            self.write_thread(thread, text)?;
        }
        if self.differing() > 0 && !self.diff {
            writeln!(text, "--diff shows the first cycle that differs, field by field")?;
        }
        player.stops.iter().try_for_each(|stop| writeln!(text, "not replayed: {stop}"))?;
        player.notes.iter().try_for_each(|note| writeln!(text, "note: {note}"))
    }

    fn write_thread(&self, thread: &RecordedThread, text: &mut String) -> std::fmt::Result {
        let (plan, RecordedThread { name, tally, .. }) = (self.plan, thread);
        let Some(first) = &tally.first else { return Ok(()) };
        let node = node_at(plan, thread, first.differences[0].place);
        writeln!(
            text,
            "\nthread {name}: cycle {} is the first that differs, in {node}",
            first.cycle
        )?;
        if let Some(fault) = &first.fault {
            writeln!(text, "  fails now: {fault}")?;
        }
        if let Some(failed) = first.failed {
            let at = failed.place.map_or("the feedback".into(), |at| node_at(plan, thread, at));
            writeln!(text, "  failed then: {} in {at}", failed.cause.word())?;
        }
        if !self.diff {
            return Ok(());
        }
        let shown = first.differences.iter().filter(|it| it.site != Site::Failure);
        let rows: Vec<_> = shown.take(SHOWN_MAX).map(|it| row(plan, it)).collect();
        write_columns(&["", "recorded", "now", "difference"], &rows, text)?;
        if first.differences.len() > SHOWN_MAX {
            writeln!(text, "  and {} more", first.differences.len() - SHOWN_MAX)?;
        }
        write_inputs(plan, first, text)?;
        writeln!(text, "  in all {} of {} cycles differ:", tally.differing, tally.cycles)?;
        for (&place, &cycles) in &tally.by_place {
            let node = node_at(plan, thread, place);
            writeln!(text, "    {node}: {}", grouped(cycles, "cycle"))?;
        }
        let rows = tally.largest.iter().filter(|((_, site), _)| *site != Site::Failure);
        let rows: Vec<_> =
            rows.map(|((_, site), largest)| largest_row(plan, *site, largest)).collect();
        write_columns(&["", "cycles", "largest difference", "in cycle"], &rows, text)
    }

    /// As JSON for programs.
    pub fn to_json(&self) -> Value {
        let ReplayReport { player, .. } = self;
        let recording = player.recording;
        let (threads, ports, signals) = self.compared();
        let parts = recording.parts.iter().map(|part| part.path.display().to_string());
        let speed = self.speed();
        json!({
            "file": self.file,
            "graph": recording.head().graph,
            "run": recording.head().run,
            "parts": parts.collect::<Vec<_>>(),
            "missing_parts": recording.missing(),
            "identical": self.is_good(),
            "cycles": self.cycles(),
            "differing_cycles": self.differing(),
            "threads_compared": threads,
            "ports_compared": ports,
            "signals_compared": signals,
            "recorded_s": player.recorded_ns as f64 * 1e-9,
            "taken_s": self.taken_s,
            "times_realtime": speed.map(|speed| speed.0),
            "cycles_per_s": speed.map(|speed| speed.1),
            "interrupted": player.interrupted,
            "ends": player.ends.iter().map(ThreadEnd::to_json).collect::<Vec<_>>(),
            "threads": player.threads.iter().map(|it| self.thread_json(it)).collect::<Vec<_>>(),
            "not_replayed": player.stops,
            "notes": player.notes,
        })
    }

    fn thread_json(&self, thread: &RecordedThread) -> Value {
        let (plan, RecordedThread { name, tally, .. }) = (self.plan, thread);
        let Tally { cycles, differing, by_place, largest, first } = tally;
        let nodes = by_place.iter().map(|(&place, &cycles)| {
            json!({ "node": plain_node(plan, thread, place), "cycles": cycles })
        });
        let largest = largest.iter().filter(|((_, site), _)| *site != Site::Failure);
        let largest = largest.map(|((_, site), row)| {
            json!({
                "field": site_name(plan, *site, row.at), "cycles": row.cycles,
                "difference": finite(row.difference), "cycle": row.cycle,
            })
        });
        json!({
            "thread": name,
            "cycles": cycles,
            "differing_cycles": differing,
            "first": first.as_ref().map(|first| first_json(plan, thread, first)),
            "by_node": nodes.collect::<Vec<_>>(),
            "largest": largest.collect::<Vec<_>>(),
        })
    }
}

fn first_json(plan: &Plan, thread: &RecordedThread, first: &First) -> Value {
    let difference = |it: &Difference| {
        let (name, at) = (site_name(plan, it.site, at_of(it.site)), it.place);
        json!({
            "node": plain_node(plan, thread, at), "field": name, "unit": unit(plan, it.site),
            "recorded": it.old.map(number), "now": it.new.map(number),
        })
    };
    let failed = |failed: Failed| {
        let node = failed.place.map(|place| plain_node(plan, thread, place));
        json!({ "cause": failed.cause.word(), "node": node, "in_link": failed.in_link })
    };
    let inputs = first.inputs.messages.iter().map(|(end, message)| {
        let End { node, port } = *end;
        let fields = numbers(plan.port(*end).message, message).map(|(field, at, it)| {
            (site_name(plan, Site::Field { node, port, field, at }, at), number(it))
        });
        json!({ "port": port_name(plan, *end), "fields": Value::Object(fields.collect()) })
    });
    json!({
        "cycle": first.cycle,
        "node": plain_node(plan, thread, first.differences[0].place),
        "failed_then": first.failed.map(failed),
        "fails_now": first.fault.as_ref().map(|fault| fault.text()),
        "differences": first.differences.iter().map(difference).collect::<Vec<_>>(),
        "skipped": first.inputs.skipped,
        "stopping": first.inputs.is_stopping,
        "inputs": inputs.collect::<Vec<_>>(),
    })
}

/// JSON has only finite numbers, and integers only as far as a double is exact.
fn number(number: Number) -> Value {
    match number {
        Number::Unsigned(it) => json!(it),
        Number::Signed(it) => json!(it),
        Number::Single(it) if it.is_finite() => json!(it),
        Number::Double(it) if it.is_finite() => json!(it),
        other => json!(other.to_string()),
    }
}

fn finite(difference: f64) -> Value {
    if difference.is_finite() { json!(difference) } else { json!("not a number") }
}

/// Writes rows in columns. The first column is aligned to the left.
fn write_columns(head: &[&str; 4], rows: &[[String; 4]], text: &mut String) -> std::fmt::Result {
    let mut widths = head.map(|cell| cell.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let [a, b, c, d] = widths;
    let mut line = |[w, x, y, z]: [&str; 4]| {
        let line = format!("    {w:a$}  {x:>b$}  {y:>c$}  {z:>d$}");
        writeln!(text, "{}", line.trim_end())
    };
    line(*head)?;
    rows.iter().try_for_each(|row| line(row.each_ref().map(String::as_str)))
}

/// A row for a difference, its numbers with all digits.
fn row(plan: &Plan, difference: &Difference) -> [String; 4] {
    let Difference { site, old, new, .. } = *difference;
    let name = site_name(plan, site, at_of(site));
    let (none, unit) = (|| "no message".to_owned(), unit(plan, site));
    let name = if unit.is_empty() { name } else { format!("{name} ({unit})") };
    match (old, new) {
        (Some(old), Some(new)) => {
            let apart = format!("{:+.3e}", new.to_f64() - old.to_f64());
            [name, old.to_string(), new.to_string(), apart]
        }
        (old, _) if old.is_some() => [name, "a message".into(), none(), String::new()],
        _ => [name, none(), "a message".into(), String::new()],
    }
}

fn largest_row(plan: &Plan, site: Site, largest: &Largest) -> [String; 4] {
    let apart = match (site, largest.difference) {
        (Site::Message { .. }, _) => "one has no message".into(),
        (_, apart) if apart.is_finite() => format!("{apart:.3e}"),
        _ => "not a number".into(),
    };
    let cycles = largest.cycles.to_string();
    [site_name(plan, site, largest.at), cycles, apart, largest.cycle.to_string()]
}

fn write_inputs(plan: &Plan, first: &First, text: &mut String) -> std::fmt::Result {
    let inputs = &first.inputs;
    let stopping = if inputs.is_stopping { ", the graph was stopping" } else { "" };
    writeln!(text, "  came in: {} lost before{stopping}", grouped(inputs.skipped, "period"))?;
    for (end, message) in &inputs.messages {
        writeln!(text, "    {}", port_name(plan, *end))?;
        for (index, field) in plan.port(*end).message.fields.iter().enumerate() {
            let all = numbers(plan.port(*end).message, message);
            let own = all.filter(|(at, ..)| *at == index).map(|(_, _, it)| it.to_string());
            let own: Vec<_> = own.collect();
            writeln!(text, "      {} {}", field.name, shortened(&own))?;
        }
    }
    let silent: Vec<_> = inputs.silent.iter().map(|end: &End| port_name(plan, *end)).collect();
    if silent.is_empty() {
        Ok(())
    } else {
        writeln!(text, "    nothing new: {}", silent.join(", "))
    }
}

/// Shortened: a field of a frame may have hundreds of bytes.
fn shortened(numbers: &[String]) -> String {
    const FIELD_NUMBERS_MAX: usize = 16;
    match numbers.get(FIELD_NUMBERS_MAX..) {
        None | Some([]) => numbers.join(" "),
        Some(rest) => {
            format!("{} and {} more", numbers[..FIELD_NUMBERS_MAX].join(" "), rest.len())
        }
    }
}

fn at_of(site: Site) -> usize {
    match site {
        Site::Field { at, .. } | Site::Signal { at, .. } => at,
        _ => 0,
    }
}

/// The unit of a signal. Fields have their units in their names.
fn unit(plan: &Plan, site: Site) -> &'static str {
    match site {
        Site::Signal { node, signal, .. } => plan.nodes[node].kind.signals[signal].unit,
        _ => "",
    }
}

fn node_at(plan: &Plan, thread: &RecordedThread, place: usize) -> String {
    plain_node(plan, thread, place).map_or("the feedback".into(), |name| format!("node '{name}'"))
}

fn plain_node<'a>(plan: &'a Plan, thread: &RecordedThread, place: usize) -> Option<&'a str> {
    let nodes = thread.replayed()?.nodes(plan);
    nodes.get(place).map(|&node| plan.nodes[node].name.as_str())
}

/// `1 cycle`, `12 345 cycles`.
fn grouped(count: u64, what: &str) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    if count == 1 { format!("{text} {what}") } else { format!("{text} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_counts_are_read_in_groups() {
        let texts = [1, 12, 123, 1234, 1_234_567].map(|count| grouped(count, "cycle"));
        assert_eq!(
            texts,
            ["1 cycle", "12 cycles", "123 cycles", "1 234 cycles", "1 234 567 cycles"]
        );
    }

    #[test]
    fn a_long_field_is_shortened() {
        let numbers: Vec<_> = (0..20).map(|number: u32| number.to_string()).collect();
        assert!(shortened(&numbers).ends_with("15 and 4 more"));
        assert_eq!(shortened(&numbers[..3]), "0 1 2");
    }
}
