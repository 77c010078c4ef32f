//! Reports of the lab as figures over commits.

use std::fs;
use std::path::{Path, PathBuf};

use sinew_figures::Machine;

use super::{SeenAt, Sighting};
use crate::headlines::of_run;
use crate::report::{Build, ScenarioReport};

/// A report and its file.
#[derive(Clone, Debug)]
pub struct DatedReport {
    /// The file.
    pub file: String,
    /// What it holds.
    pub report: ScenarioReport,
}

/// Reads files; for a folder, the files in it that end with `.json`, sorted by name.
///
/// # Errors
/// The first file that is not a report, and what is wrong with it.
pub fn read(paths: &[PathBuf]) -> Result<Vec<DatedReport>, String> {
    let mut files = vec![];
    for path in paths {
        let name = path.display();
        let cannot = |error| format!("cannot read '{name}': {error}");
        if path.is_dir() {
            let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let mut below: Vec<_> =
                entries.map_err(cannot)?.into_iter().map(|entry| entry.path()).collect();
            below.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
            below.sort();
            if below.is_empty() {
                return Err(format!("no file in folder '{name}' ends with .json"));
            }
            files.extend(below);
        } else {
            files.push(path.clone());
        }
    }
    files.iter().map(|file| read_one(file)).collect()
}

fn read_one(path: &Path) -> Result<DatedReport, String> {
    let file = path.display().to_string();
    let cannot = |error| format!("cannot read '{file}': {error}");
    if !fs::metadata(path).map_err(cannot)?.is_file() {
        return Err(format!("'{file}' is not a file; expected a report"));
    }
    let bytes = fs::read(path).map_err(cannot)?;
    let report = ScenarioReport::read(&String::from_utf8_lossy(&bytes));
    let report = report.map_err(|why| format!("'{file}' {why}"))?;
    Ok(DatedReport { file, report })
}

/// All figures of these reports, and notes about them: figures of different machines, scenarios and
/// forms belong to different series.
pub fn sightings(reports: &[DatedReport]) -> (Vec<Sighting>, Vec<String>) {
    let mut machines: Vec<&Machine> = vec![];
    for DatedReport { report, .. } in reports {
        if machines.iter().all(|other| !other.differences(&report.machine).is_empty()) {
            machines.push(&report.machine);
        }
    }
    let notes = match machines.as_slice() {
        [first, others @ ..] if !others.is_empty() => {
            let other = |(at, other): (usize, &&Machine)| {
                format!("machine {}: {}", at + 2, first.differences(other).join("; "))
            };
            let differ: Vec<_> = others.iter().enumerate().map(other).collect();
            vec![format!(
                "figures of different machines are drawn apart; compared with machine 1, {}",
                differ.join(". ").replace(" there and ", " and ").replace(" here", " on machine 1")
            )]
        }
        _ => vec![],
    };
    let seen = |DatedReport { file, report }: &DatedReport| {
        let same = |machine: &&Machine| machine.differences(&report.machine).is_empty();
        let number = machines.iter().position(same).unwrap_or_default() + 1;
        let quick = if report.quick { ", quick" } else { "" };
        let machine = match machines.len() {
            1 => report.machine.cpu.clone(),
            _ => format!("machine {number}, {}", report.machine.cpu),
        };
        let series = format!("{}{quick}: {machine}", report.scenario);
        let build = report.build.as_ref();
        let origin = SeenAt {
            commit: build.and_then(Build::short),
            committed_s: build.and_then(|build| build.committed_s),
            file: file.clone(),
            ..SeenAt::default()
        };
        let sighting = move |(headline, figure)| Sighting {
            series: series.clone(),
            headline,
            origin: origin.clone(),
            figure,
            exact: false,
        };
        of_run(report).into_iter().map(sighting).collect::<Vec<_>>()
    };
    (reports.iter().flat_map(seen).collect(), notes)
}
