//! A machine profile as text.

use std::fmt::Write;

use sinew_figures::units::{ratio, time};
use sinew_figures::wrap::wrap_at;
use sinew_plan::plan::LinkClass;

use crate::candidates::{measured, usual};
use crate::profile::{MachineProfile, MeasuredPair};
use crate::search::{GAIN_MIN, STEPS, Suited, Tried};

/// Width of the text between the tables.
const COLUMNS: usize = 100;

/// All measurements, the choices, and the reasons for them.
pub fn to_text(profile: &MachineProfile) -> String {
    let mut text = format!("{}\n", profile.machine.to_line());
    profile.pairs.iter().for_each(|row| pair(row, &mut text));
    for row in &profile.not_measured {
        let [one, other] = row.cpus;
        line(&mut text, format_args!("\nCPUs {one} and {other}: not measured: {}", row.why));
    }
    text
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    writeln!(text, "{what}").expect("a text takes all");
}

fn pair(row: &MeasuredPair, text: &mut String) {
    let ([one, other], [pause, other_pause]) = (row.cpus, row.pause_ns);
    let [least, greatest] = row.token_range_ns;
    line(
        text,
        format_args!(
            "\nCPUs {one} and {other}: token {}, pair {}; a PAUSE takes {pause} and \
             {other_pause} ns",
            time(row.token_ns.median),
            time(row.pair_ns.median),
        ),
    );
    if row.distance_changed {
        let moved = format!(
            "the distance between these CPUs changed while this ran: tokens from {least:.0} to \
             {greatest:.0} ns; only what was faster at both distances is taken"
        );
        wrap_at(text, "", &moved, COLUMNS);
    }
    row.suited().into_iter().for_each(|(class, found)| suited(class, found, text));
}

fn suited(class: LinkClass, suited: &Suited, text: &mut String) {
    line(text, format_args!("\n{}", measured(class).what));
    let row = |mark: char, [layout, polls, ahead, over]: [&str; 4], times: String, speed: &str| {
        format!("{mark} {layout:<9} {polls:<22} {ahead:<5} {over:<4} {times}  {speed}")
    };
    let cell = |text: String| format!("{text:>9}");
    let sizes = measured(class).sizes.iter().map(|bytes| cell(format!("{bytes} B"))).collect();
    let head = ["layout", "between polls", "ahead", "over"];
    line(text, format_args!("{}", row(' ', head, sizes, "times as fast as the default")));
    let mut shown = 0;
    for Tried { step, tuning, times, speed } in &suited.tried {
        // Another step was measured at another time.
        if *step != shown {
            shown = *step;
            let name = STEPS.get((shown as usize).wrapping_sub(1)).map_or("", |(name, _)| name);
            line(text, format_args!("  {shown}. {name}"));
        }
        let mark = if *tuning == suited.chosen { '*' } else { ' ' };
        let is = |it| if it { "yes" } else { "no" };
        let polls = tuning.polls();
        let words =
            [tuning.layout.word(), &*polls, is(tuning.fetches_ahead), is(tuning.hands_over)];
        let times = times.iter().map(|size| cell(time(size.ns.median))).collect();
        line(text, format_args!("{}", row(mark, words, times, &speed.to_string())));
    }
    line(text, format_args!("  * {}", why(class, suited)));
    if let (Some(worst), Some(costs)) = (suited.worst(), suited.worst_costs()) {
        let costs = ratio(costs);
        line(text, format_args!("  the worst on purpose costs {costs} times: {}", worst.tuning));
    }
}

/// The reason for the choice.
fn why(class: LinkClass, suited: &Suited) -> String {
    if suited.chosen != usual(class) {
        return format!("chosen: faster than the default, {} times", suited.speed);
    }
    match suited.tried.iter().any(|row| row.speed.low > GAIN_MIN) {
        true => {
            "chosen: the default; what seems faster is not so in all rounds, at every size and \
                 at every distance"
                .into()
        }
        false => {
            format!("chosen: the default; nothing else was {GAIN_MIN} times as fast beyond doubt")
        }
    }
}
