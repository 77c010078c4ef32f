//! `--csv FILE`: a row for every cycle, written by the parent, outside the core.
//!
//! The rows of the control thread go to FILE. The rows of each other thread go to a file beside it.
//! Its name has the domain's name before the extension (`run.csv`, `run.plant.csv`), and after that
//! the thread's number if the domain has several threads. For a device or a pipe there is no file
//! beside it, so it gets only the control thread.
//!
//! A full disk does not stop the machine: writing ends, and the report says how far it got.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sinew_core::trace::ThreadId;
use sinew_spec::plan::Plan;

use crate::stats::{Observed, Stats, ThreadStats};

/// Bytes that are buffered before they are written: some hundred cycles.
const BUFFER_LEN: usize = 64 << 10;

/// The rows of one thread.
struct Table<W> {
    thread: ThreadId,
    path: PathBuf,
    file: W,
    domain: String,
    buffer: String,
    /// Complete lines that were written, including the head.
    lines: u64,
    /// Cycles that ran and have no row, because their records were not read.
    missing: u64,
}

impl<W: Write> Table<W> {
    fn new(thread: &ThreadStats, path: PathBuf, file: W) -> Table<W> {
        let domain = thread.domain.clone();
        Table { thread: thread.id, path, file, domain, buffer: head(thread), lines: 0, missing: 0 }
    }

    fn add(&mut self, observed: &Observed) -> io::Result<()> {
        let Observed { cycle, release_ns, start_ns, latency_ns, skipped, is_overrun, .. } =
            observed;
        let (domain, thread) = (&self.domain, self.thread.thread);
        let (overrun, stopping) = (u8::from(*is_overrun), u8::from(observed.is_stopping));
        let row = &mut self.buffer;
        // Writing to a string cannot fail.
        let _ = write!(row, "{domain},{thread},{cycle},{release_ns},{start_ns},{latency_ns}");
        let _ = write!(row, ",{skipped},{overrun},{stopping}");
        for ns in &observed.execution_ns {
            let _ = write!(row, ",{ns}");
        }
        for value in &observed.signals {
            let _ = write!(row, ",{value}");
        }
        row.push('\n');
        if self.buffer.len() < BUFFER_LEN { Ok(()) } else { self.flush() }
    }

    /// Writes the buffer, and counts the lines that were completely written.
    fn flush(&mut self) -> io::Result<()> {
        let bytes = self.buffer.as_bytes();
        let mut written = 0;
        let result = loop {
            if written == bytes.len() {
                break self.file.flush();
            }
            match self.file.write(&bytes[written..]) {
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(len) => written += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.lines += bytes[..written].iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.buffer.clear();
        result
    }

    fn rows(&self) -> u64 {
        self.lines.saturating_sub(1)
    }
}

/// The names of the columns. Signals with several numbers are numbered from 0.
fn head(thread: &ThreadStats) -> String {
    let mut head = "domain,thread,cycle,release_ns,start_ns,latency_ns".to_string();
    head += ",skipped,overrun,stopping";
    for node in &thread.nodes {
        head += &format!(",{}.execution_ns", node.name);
    }
    for signal in &thread.signals {
        let name = format!(",{}.{}", signal.node, signal.signal.name);
        match signal.signal.count {
            1 => head += &name,
            count => head.extend((0..count).map(|at| format!("{name}.{at}"))),
        }
    }
    head + "\n"
}

/// All files of a run.
pub struct Csv<W = File> {
    tables: Vec<Table<W>>,
    /// Why writing ended early.
    error: Option<String>,
}

impl Csv {
    /// Creates the files.
    ///
    /// # Errors
    /// The path that cannot be written, and why.
    pub fn create(path: &Path, plan: &Plan, stats: &Stats) -> Result<Csv, String> {
        let has_files_beside = fs::metadata(path).map_or(true, |data| data.is_file());
        let Some(control) = stats.control().map(|control| control.id) else {
            return Err("--csv: the graph has no realtime domain, so there are no cycles".into());
        };
        let wanted = |thread: &&ThreadStats| has_files_beside || thread.id == control;
        let tables = stats.threads.iter().filter(wanted).map(|thread| {
            let path = if thread.id == control { path.into() } else { beside(path, plan, thread) };
            let shown = path.display();
            let file = File::create(&path)
                .map_err(|error| format!("--csv: cannot write '{shown}': {error}"))?;
            Ok(Table::new(thread, path, file))
        });
        Ok(Csv { tables: tables.collect::<Result<_, String>>()?, error: None })
    }
}

/// `run.csv` -> `run.plant.csv`.
fn beside(path: &Path, plan: &Plan, thread: &ThreadStats) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{}", thread.domain));
    if plan.domains[thread.id.domain].threads().len() > 1 {
        name.push(format!(".{}", thread.id.thread));
    }
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

impl<W: Write> Csv<W> {
    /// Adds a row. If writing ended at this row, returns the text to show.
    pub fn add(&mut self, thread: ThreadId, observed: &Observed) -> Option<String> {
        self.attempt(|table| if table.thread == thread { table.add(observed) } else { Ok(()) })
    }

    /// Writes the rest of the buffer. `stats` has counted the cycles. Returns the text to show if
    /// writing failed or rows are missing, unless this was reported before.
    pub fn finish(&mut self, stats: &Stats) -> Option<String> {
        if self.error.is_some() {
            return None;
        }
        for table in &mut self.tables {
            table.missing = stats.thread(table.thread).map_or(0, |thread| thread.records_lost);
        }
        self.attempt(Table::flush).or_else(|| self.lacks())
    }

    fn attempt(&mut self, mut each: impl FnMut(&mut Table<W>) -> io::Result<()>) -> Option<String> {
        if self.error.is_some() {
            return None;
        }
        let mut failed = |table: &mut Table<W>| {
            let error = each(table).err()?;
            let (path, rows) = (table.path.display(), table.rows());
            Some(format!(
                "--csv: writing '{path}' failed after {rows} rows: {error}; the run goes on \
                 without it, make room or name another file"
            ))
        };
        self.error = self.tables.iter_mut().find_map(&mut failed);
        self.error.clone()
    }

    /// What is missing of the requested files, in words.
    pub fn lacks(&self) -> Option<String> {
        if self.error.is_some() {
            return Some("the CSV is incomplete: its writing failed".into());
        }
        let worst = self.tables.iter().max_by_key(|table| table.missing)?;
        let (missing, all) = (worst.missing, worst.rows() + worst.missing);
        (missing > 0).then(|| {
            format!(
                "the CSV is incomplete: '{}' lacks {missing} of {all} rows, sinew run read them \
                 too late; give it more CPU time, or make the period longer",
                worst.path.display()
            )
        })
    }

    /// Rows written, in all files.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(Table::rows).sum()
    }

    /// As one JSON object.
    pub fn to_json(&self) -> Value {
        let files = self.tables.iter().map(|table| {
            let path = table.path.display().to_string();
            json!({ "path": path, "rows": table.rows(), "missing": table.missing })
        });
        let missing: u64 = self.tables.iter().map(|table| table.missing).sum();
        let files: Vec<_> = files.collect();
        let error = self.error.clone().or_else(|| self.lacks());
        json!({ "rows": self.rows(), "missing": missing, "error": error, "files": files })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::fixture;

    fn csv<W: Write>(file: W) -> Csv<W> {
        let stats = Stats::new(&fixture::plan());
        Csv {
            tables: vec![Table::new(stats.control().expect("a core"), "run.csv".into(), file)],
            error: None,
        }
    }

    /// A file that takes `room` bytes, and is full then.
    struct Full {
        room: usize,
        taken: Vec<u8>,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let len = bytes.len().min(self.room - self.taken.len());
            if len == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.taken.extend(&bytes[..len]);
            Ok(len)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_row_has_a_value_for_every_column() {
        let mut csv = csv(Vec::new());
        let thread = csv.tables[0].thread;
        assert_eq!(csv.add(thread, &fixture::observed(7)), None);
        assert_eq!(csv.add(ThreadId { domain: 9, thread: 0 }, &fixture::observed(8)), None);
        assert_eq!(csv.finish(&fixture::stats(0)), None);
        let text = String::from_utf8(csv.tables[0].file.clone()).expect("UTF-8");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "domain,thread,cycle,release_ns,start_ns,latency_ns,skipped,overrun,stopping,\
             planner.execution_ns,planner.tracking_error_m,planner.target_m.0,planner.target_m.1,\
             planner.target_m.2"
        );
        assert_eq!(lines[1], "control,0,7,7000000,7002000,9000,0,0,0,8000,0.001,0.4,0.1,0.3");
        assert_eq!((lines.len(), csv.rows()), (2, 1));
    }

    #[test]
    fn a_full_disk_ends_the_writing_and_is_told_once() {
        let mut csv = csv(Full { room: 2000, taken: vec![] });
        let thread = csv.tables[0].thread;
        let told: Vec<_> =
            (0..5000).filter_map(|cycle| csv.add(thread, &fixture::observed(cycle))).collect();
        let lines = csv.tables[0].file.taken.iter().filter(|&&byte| byte == b'\n').count() as u64;
        assert_eq!((told.len(), csv.rows()), (1, lines - 1));
        assert!(
            told[0].contains(&format!("'run.csv' failed after {} rows", lines - 1)),
            "{told:?}"
        );
        assert_eq!(csv.finish(&fixture::stats(0)), None);
        assert!(csv.lacks().is_some_and(|lacks| lacks.contains("failed")));
        assert_eq!(csv.to_json()["rows"], lines - 1);
    }

    #[test]
    fn rows_that_nobody_read_are_missing() {
        let (mut csv, mut stats) = (csv(Vec::new()), fixture::stats(0));
        let thread = csv.tables[0].thread;
        (0..3).for_each(|cycle| assert_eq!(csv.add(thread, &fixture::observed(cycle)), None));
        stats.threads[1].records_lost = 9;
        assert_eq!((csv.finish(&stats), csv.lacks()), (None, None), "that one is in no file");
        stats.threads[0].records_lost = 7;
        let lacks = csv.finish(&stats).expect("rows are missing");
        assert_eq!(csv.lacks().as_ref(), Some(&lacks));
        assert!(lacks.contains("'run.csv' lacks 7 of 10 rows"), "{lacks}");
        let json = csv.to_json();
        assert_eq!((&json["missing"], &json["error"]), (&json!(7), &json!(lacks)));
    }

    #[test]
    fn a_full_device_is_reported_at_the_end() {
        let stats = Stats::new(&fixture::plan());
        let mut csv = Csv::create(Path::new("/dev/full"), &fixture::plan(), &stats)
            .expect("every Linux has it");
        assert_eq!(csv.tables.len(), 1, "no file beside a device");
        assert_eq!(csv.add(stats.control().expect("a core").id, &fixture::observed(0)), None);
        let told = csv.finish(&stats).expect("it is full");
        assert!(told.contains("'/dev/full' failed after 0 rows"), "{told}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let stats = Stats::new(&fixture::plan());
        let path = Path::new("/nowhere/run.csv");
        let error = Csv::create(path, &fixture::plan(), &stats).err().expect("no such folder");
        assert!(error.contains("'/nowhere/run.csv'"), "{error}");
    }

    #[test]
    fn other_threads_have_their_domain_before_the_extension() {
        let (plan, name) = (fixture::plan(), |path| {
            let stats = Stats::new(&fixture::plan());
            beside(Path::new(path), &fixture::plan(), &stats.threads[1]).display().to_string()
        });
        assert_eq!(plan.domains[1].name, "plant");
        assert_eq!(name("out/run.csv"), "out/run.plant.csv");
        assert_eq!(name("run"), "run.plant");
    }
}
