//! A report of rivals. Figures that were taken on another machine say nothing here, so the report
//! is checked before it is shown beside our rows.

use sinew_figures::Machine;

use crate::report::{Axis, ScenarioReport};

/// The name of the report's scenario.
pub const SCENARIO: &str = "rivals";
/// The command that makes such a report.
const COMMAND: &str = "cargo run --release --manifest-path rivals/Cargo.toml -- --out rivals.json";

/// The axis that rows get in a table with rivals, and the value that our rows have there.
pub(crate) const AXIS: Axis = Axis { name: "rival", values: &["sinew"] };
/// Our name for the row of our own queue that the rivals' program measures without the runtime
/// around it. `sinew` is the link as the runtime has it.
pub(crate) const BARE: &str = "sinew_link";

/// The report in a file's `text`, if it is complete and was taken on this machine. In it, our own
/// queue is called `sinew_link`.
///
/// # Errors
/// Why it cannot be shown beside what is measured `here`, and how to get a report that can.
pub fn read(text: &str, here: &Machine) -> Result<ScenarioReport, String> {
    let mut report: ScenarioReport = serde_json::from_str(text)
        .map_err(|error| format!("is not a report of rivals: {error}; make one with {COMMAND}"))?;
    if report.scenario != SCENARIO {
        let scenario = &report.scenario;
        return Err(format!(
            "is a report of '{scenario}'; expected one of '{SCENARIO}', made with {COMMAND}"
        ));
    }
    if report.partial {
        return Err(format!("is partial: it was interrupted; let {COMMAND} run to its end"));
    }
    let differences = here.differences(&report.machine);
    if !differences.is_empty() {
        let differences = differences.join("; ");
        return Err(format!(
            "was taken on another machine: {differences}; run the rivals here: {COMMAND}"
        ));
    }
    for (axis, value) in report.rows.iter_mut().flat_map(|row| &mut row.axes) {
        if axis == AXIS.name && AXIS.values.contains(&value.as_str()) {
            *value = BARE.into();
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Row;

    fn here() -> Machine {
        Machine { cpu: "Foo 9000".into(), kernel: "6.18".into(), ..Machine::default() }
    }

    fn report() -> ScenarioReport {
        ScenarioReport {
            scenario: SCENARIO.into(),
            machine: here(),
            rounds: 5,
            ..ScenarioReport::default()
        }
    }

    fn refusal(report: &ScenarioReport) -> String {
        let text = serde_json::to_string(report).expect("plain data");
        read(&text, &here()).expect_err("it must be refused")
    }

    #[test]
    fn one_of_this_machine_is_taken_whatever_its_load_was() {
        let mut report = report();
        report.machine.load = vec![7.0, 7.0, 7.0];
        report.machine.cpus_allowed = vec![3];
        let text = serde_json::to_string(&report).expect("plain data");
        assert_eq!(read(&text, &here()).map(|report| report.rounds), Ok(5));
    }

    #[test]
    fn our_own_queue_among_them_gets_a_name_of_its_own() {
        let row = |name| Row::of(&[("rival", name)]);
        let report = ScenarioReport { rows: vec![row("rtrb"), row("sinew")], ..report() };
        let text = serde_json::to_string(&report).expect("plain data");
        let read = read(&text, &here()).expect("it is whole");
        let names: Vec<_> = read.rows.iter().map(|row| row.axis("rival")).collect();
        assert_eq!(names, [Some("rtrb"), Some("sinew_link")]);
    }

    #[test]
    fn one_of_another_machine_is_refused_with_every_difference() {
        let mut other = report();
        other.machine.cpu = "Bar 7".into();
        other.machine.governor = Some("powersave".into());
        let why = refusal(&other);
        assert!(why.contains("cpu is 'Bar 7' there and 'Foo 9000' here; "), "{why}");
        assert!(why.contains("governor is 'powersave' there and not known here; "), "{why}");
        assert!(why.contains("run the rivals here: cargo run --release"), "{why}");
        assert!(!why.contains("kernel"), "{why}");
    }

    #[test]
    fn what_is_no_whole_report_of_rivals_is_refused() {
        let why = read("{\"scenario\": 1}", &here()).expect_err("no report");
        assert!(why.contains("is not a report of rivals: invalid type"), "{why}");
        assert!(
            refusal(&ScenarioReport { scenario: "link".into(), ..report() }).contains("of 'link'")
        );
        assert!(refusal(&ScenarioReport { partial: true, ..report() }).contains("is partial"));
    }
}
