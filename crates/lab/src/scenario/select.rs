//! Which rows are requested: values on axes, and what is wrong with a request that no row meets.

use super::CannotRun;
use crate::report::{Axis, Row, ScenarioReport};
use crate::rivals;

/// The values that are requested on some axes; on the other axes all are. The default requests all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(Vec<(String, Vec<String>)>);

impl Selection {
    /// Reads `AXIS=VALUE[,VALUE]`, once for each axis. A report of rivals adds the axes and values
    /// of its rows.
    ///
    /// # Errors
    /// What is not an axis, or not a value on it, and which there are.
    pub fn parse(
        axes: &[Axis],
        theirs: Option<&ScenarioReport>,
        texts: &[String],
    ) -> Result<Selection, CannotRun> {
        let axes = with_theirs(axes, theirs);
        let mut selection = Selection::default();
        for text in texts {
            let (name, values) = text.split_once('=').ok_or_else(|| {
                CannotRun(format!("--only {text}: expected AXIS=VALUE or AXIS=VALUE,VALUE"))
            })?;
            let (_, there) = axes.iter().find(|(axis, _)| *axis == name).ok_or_else(|| {
                let names: Vec<_> = axes.iter().map(|(axis, _)| *axis).collect();
                CannotRun(format!(
                    "--only {text}: no axis '{name}'; there are {}",
                    names.join(", ")
                ))
            })?;
            let values: Vec<String> = values.split(',').map(Into::into).collect();
            if let Some(value) = values.iter().find(|value| !there.contains(&value.as_str())) {
                let there = there.join(", ");
                let what = format!("--only {text}: {name} is never '{value}'; it is {there}");
                return Err(CannotRun(what));
            }
            if selection.0.iter().any(|(axis, _)| axis == name) {
                let what = format!("--only: {name} is given twice; give its values with commas");
                return Err(CannotRun(what));
            }
            selection.0.push((name.into(), values));
        }
        Ok(selection)
    }

    /// Whether all rows are requested.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a row with these axes and values is requested. A row that lacks an axis with
    /// requested values is not.
    pub fn wants(&self, axes: &[(String, String)]) -> bool {
        let has = |name: &String, values: &Vec<String>| {
            axes.iter().any(|(axis, value)| axis == name && values.contains(value))
        };
        self.0.iter().all(|(name, values)| has(name, values))
    }

    /// The rows that are requested.
    ///
    /// # Errors
    /// If there are none.
    pub fn pick<T>(
        &self,
        mut rows: Vec<T>,
        axes: impl Fn(&T) -> &[(String, String)],
    ) -> Result<Vec<T>, CannotRun> {
        let all = rows.len();
        rows.retain(|row| self.wants(axes(row)));
        if rows.is_empty() {
            return Err(CannotRun(self.matches_nothing(all)));
        }
        Ok(rows)
    }

    fn matches_nothing(&self, all: usize) -> String {
        let only = |(axis, values): &(String, Vec<String>)| format!("{axis}={}", values.join(","));
        let only: Vec<_> = self.0.iter().map(only).collect();
        format!(
            "--only {}: none of the {all} rows matches; allow more values, or leave out --quick, \
             which has fewer rows",
            only.join(" --only ")
        )
    }
}

/// All axes that rows can have, and all values there.
fn with_theirs<'a>(
    axes: &'a [Axis],
    theirs: Option<&'a ScenarioReport>,
) -> Vec<(&'a str, Vec<&'a str>)> {
    let beside = theirs.map(|_| rivals::AXIS);
    let axes = beside.iter().chain(axes).map(|axis| (axis.name, axis.values.to_vec()));
    let mut axes: Vec<_> = axes.collect();
    let rows: &[Row] = theirs.map_or(&[], |report| &report.rows);
    for (name, value) in rows.iter().flat_map(|row| &row.axes) {
        match axes.iter_mut().find(|(axis, _)| axis == name) {
            Some((_, values)) if values.contains(&value.as_str()) => {}
            Some((_, values)) => values.push(value),
            None => axes.push((name, vec![value])),
        }
    }
    axes
}

#[cfg(test)]
mod tests {
    use super::*;

    const AXES: &[Axis] = &[
        Axis { name: "transport", values: &["in_process", "pipe"] },
        Axis { name: "bytes", values: &["8", "48"] },
    ];

    fn parse(texts: &[&str]) -> Result<Selection, String> {
        let texts: Vec<String> = texts.iter().map(|&text| text.into()).collect();
        Selection::parse(AXES, None, &texts).map_err(|CannotRun(why)| why)
    }

    fn row(transport: &str, bytes: &str) -> Vec<(String, String)> {
        vec![("transport".into(), transport.into()), ("bytes".into(), bytes.into())]
    }

    #[test]
    fn every_axis_that_is_named_must_hold() {
        let selection = parse(&["transport=pipe", "bytes=8,48"]).expect("good");
        assert!(selection.wants(&row("pipe", "48")));
        assert!(!selection.wants(&row("in_process", "48")));
        assert!(!selection.wants(&row("pipe", "64")));
        assert!(!selection.wants(&row("pipe", "8")[..1]), "it has no bytes");
        assert!(Selection::default().wants(&[]));
    }

    #[test]
    fn a_bad_request_is_told_what_there_is() {
        let error = |texts| parse(texts).expect_err("bad");
        assert!(error(&["transprt=pipe"]).contains("'transprt'; there are transport, bytes"));
        assert!(error(&["bytes=8,9"]).contains("bytes is never '9'; it is 8, 48"));
        assert!(error(&["bytes="]).contains("bytes is never ''"));
        assert!(error(&["bytes"]).contains("expected AXIS=VALUE"));
        assert!(error(&["bytes=8", "bytes=48"]).contains("bytes is given twice"));
    }

    #[test]
    fn a_request_that_no_row_meets_is_refused() {
        let rows = || vec![row("pipe", "8"), row("in_process", "48")];
        let pick = |texts| parse(texts).expect("good").pick(rows(), |row| row);
        assert_eq!(pick(&["bytes=8"]), Ok(vec![row("pipe", "8")]));
        let Err(CannotRun(why)) = pick(&["bytes=8", "transport=in_process"]) else {
            panic!("no row matches");
        };
        assert!(why.contains("--only bytes=8 --only transport=in_process: none of the 2 rows"));
    }
}
