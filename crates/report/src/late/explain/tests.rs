//! Which sentences follow from which counters.

use sinew_runtime::observer::Counters;

use super::*;

const MS: u64 = 1_000_000;

/// Counters in which nothing happened except the cycles themselves.
const QUIET: Counters = Counters {
    cpu_ns: Some(0),
    run_delay_ns: Some(0),
    minor_faults: Some(0),
    major_faults: Some(0),
    involuntary_switches: Some(0),
    steal_ns: Some(0),
};

fn meanwhile(counted: Counters) -> Meanwhile {
    Meanwhile { window_ns: 64 * MS, is_cut: false, is_asleep: true, counted, usual: QUIET }
}

/// The sentence if 1.4 ms were lost at this place.
fn told(place: Place, meanwhile: &Meanwhile) -> (Cause, String) {
    let cause = Cause::of(place, 1_400_000, Some(meanwhile));
    (cause, words(cause, place, "the thread", Ok(meanwhile)))
}

/// Place, counters, cause, and the sentence.
type Row = (Place, Counters, Cause, &'static str);

fn check(table: impl IntoIterator<Item = Row>) {
    for (place, counted, cause, text) in table {
        assert_eq!(told(place, &meanwhile(counted)), (cause, text.to_string()));
    }
}

#[test]
fn each_cause_has_its_sentence() {
    let late = Place::BeforeFirstNode;
    let (wait, steal) = (Some(1_300_000), Some(10 * MS));
    check([
        (
            late,
            Counters { run_delay_ns: wait, ..QUIET },
            Cause::WaitedForCpu,
            "the thread was runnable but waited 1.30 ms for its CPU",
        ),
        (
            late,
            Counters { run_delay_ns: wait, involuntary_switches: Some(2), ..QUIET },
            Cause::WaitedForCpu,
            "the thread was runnable but waited 1.30 ms for its CPU, which was taken from it 2 \
             times",
        ),
        (
            late,
            Counters { steal_ns: steal, ..QUIET },
            Cause::Host,
            "the host took the CPU for 10 ms (steal)",
        ),
        (
            late,
            Counters { run_delay_ns: wait, steal_ns: steal, ..QUIET },
            Cause::WaitedForCpu,
            "the thread was runnable but waited 1.30 ms for its CPU; the host took the CPU for 10 \
             ms (steal)",
        ),
        (
            late,
            QUIET,
            Cause::Unknown,
            "unknown, no counter of the thread accounts for it (a late timer interrupt, a host \
             that counts no steal, SIGSTOP?)",
        ),
        (
            Place::Feedback,
            Counters { cpu_ns: Some(9 * MS), ..QUIET },
            Cause::Unknown,
            "unknown, no counter of the thread accounts for it",
        ),
        (Place::CycleBefore(8), QUIET, Cause::CycleBefore, "see that cycle"),
    ]);
}

#[test]
fn what_a_node_did_has_its_sentence() {
    let node = Place::Node(0);
    check([
        (
            node,
            Counters {
                major_faults: Some(1),
                minor_faults: Some(3),
                cpu_ns: Some(1_300_000),
                ..QUIET
            },
            Cause::PageFaults,
            "3 minor page faults; 1 major page fault",
        ),
        (
            node,
            Counters { minor_faults: Some(700), ..QUIET },
            Cause::PageFaults,
            "700 minor page faults",
        ),
        (
            node,
            Counters { cpu_ns: Some(1_300_000), minor_faults: Some(1), ..QUIET },
            Cause::NodeOnCpu,
            "the thread was on its CPU for 1.30 ms more than usual: the node itself, interrupts, \
             or a host that counts no steal; 1 minor page fault",
        ),
        (
            node,
            Counters { cpu_ns: Some(20_000), ..QUIET },
            Cause::NodeAsleep,
            "the thread was on its CPU for 20.0 us only and did not wait for it: the node slept \
             in the kernel, or the process was stopped",
        ),
    ]);
}

#[test]
fn what_is_usual_explains_nothing() {
    let counted = Counters { run_delay_ns: Some(2 * MS), steal_ns: Some(30 * MS), ..QUIET };
    let mut meanwhile = meanwhile(counted);
    meanwhile.usual = Counters { run_delay_ns: Some(MS + MS / 2), ..counted };
    assert_eq!(told(Place::Outside, &meanwhile).0, Cause::Unknown);
    meanwhile.usual.run_delay_ns = Some(MS);
    let text = "the thread was runnable but waited 2.00 ms for its CPU (1.00 ms is usual)";
    assert_eq!(told(Place::Outside, &meanwhile), (Cause::WaitedForCpu, text.into()));
}

#[test]
fn less_than_half_of_it_is_not_the_cause() {
    let half = Counters { run_delay_ns: Some(699_999), ..QUIET };
    assert_eq!(told(Place::BeforeFirstNode, &meanwhile(half)).0, Cause::Unknown);
}

#[test]
fn a_node_is_not_said_to_have_slept_where_cpu_time_may_be_missing() {
    for (is_asleep, is_cut) in [(false, false), (true, true)] {
        let (cause, text) =
            told(Place::Node(1), &Meanwhile { is_asleep, is_cut, ..meanwhile(QUIET) });
        assert_eq!(cause, Cause::Unknown);
        assert!(text.contains("(sleep in the kernel, interrupts"), "{text}");
    }
}

#[test]
fn counters_that_the_kernel_does_not_show_are_no_evidence() {
    let place = Place::Node(0);
    let none = Meanwhile { is_asleep: true, ..Meanwhile::default() };
    assert_eq!(told(place, &none).0, Cause::Unknown);
    assert_eq!(Cause::of(place, MS, None), Cause::Unread);
    let why = "cannot read /proc/7/task/8/stat: Permission denied (os error 13)";
    let text = words(Cause::Unread, place, "the thread", Err(why));
    assert_eq!(text, format!("what the kernel did meanwhile is not known: {why}"));
}

#[test]
fn every_cause_stands_where_it_is_looked_for() {
    for (at, (cause, word, _)) in Cause::ALL.into_iter().enumerate() {
        assert_eq!((cause as usize, cause.word()), (at, word));
    }
}
