//! What earlier lives of a recorder have left in the folder: parts that a kill has broken off are
//! mended, and of this run's the newest cycles are looked up, to go on after them.

use std::fs::File;
use std::io;
use std::path::Path;

use super::cycle::Layout;
use super::folder::{Folder, open};
use super::gather::Mark;
use super::index::Index;
use super::mend::{head, is_finished, messages, scan};

/// What is there of this run.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Number of the last part; 0 if there is none.
    pub(super) part: u32,
    /// The newest cycle of each thread.
    pub(super) last: Vec<Option<Mark>>,
    /// What is to be said of the parts that were not finished.
    pub(super) lines: Vec<String>,
}

/// The cycles of a thread in a file: their topic, how they lie.
pub(super) type Cycles = (u16, Layout);

impl Past {
    /// Looks through the folder and mends what is not finished.
    pub(super) fn find(folder: &Folder, run: &str, threads: &[Cycles]) -> io::Result<Past> {
        let mut past = Past { last: vec![None; threads.len()], ..Past::default() };
        for path in folder.parts()?.iter().rev() {
            past.mend(path);
            if let Err(error) = past.look_up(path, run, threads) {
                past.lines.push(format!("cannot read '{}': {error}", path.display()));
            }
        }
        Ok(past)
    }

    /// Gives a part an end, if it has none and nobody writes it.
    fn mend(&mut self, path: &Path) {
        match mended(path) {
            Ok(None) => {}
            Ok(Some(cut)) => self.lines.push(format!(
                "mended '{}', which had no end; cut off {cut} bytes that were not whole",
                path.display()
            )),
            Err(error) => self.lines.push(format!(
                "cannot mend '{}', which has no end: {error}; it is readable from its beginning",
                path.display()
            )),
        }
    }

    /// If a part is of this run: its number, and the newest cycles of the threads of which none
    /// has been found.
    fn look_up(&mut self, path: &Path, run: &str, threads: &[Cycles]) -> io::Result<()> {
        let Some(file) = open(path, false)? else { return Ok(()) };
        let Some(head) = head(&file)?.filter(|head| head.run == run) else { return Ok(()) };
        self.part = self.part.max(head.part);
        if self.last.iter().all(Option::is_some) {
            return Ok(());
        }
        let Some(scan) = scan(&file)? else { return Ok(()) };
        for (last, (topic, layout)) in self.last.iter_mut().zip(threads) {
            if last.is_none() {
                *last = newest(&file, &scan.index, *topic, layout)?
                    .map(|(number, start_ns)| Mark { life: head.life, number, start_ns });
            }
        }
        Ok(())
    }
}

/// Mends a part; how many bytes were cut off, if it had no end.
fn mended(path: &Path) -> io::Result<Option<u64>> {
    match open(path, false)? {
        Some(file) if !is_finished(&file)? => {}
        _ => return Ok(None),
    }
    let Some(file) = open(path, true)? else { return Ok(None) };
    // What no recorder wrote is left as it is.
    let Some(scan) = scan(&file)? else { return Ok(None) };
    scan.mend(&file).map(Some)
}

/// Number and start of the newest cycle in a file.
fn newest(
    file: &File,
    index: &Index,
    topic: u16,
    layout: &Layout,
) -> io::Result<Option<(u64, u64)>> {
    let has_topic = |counts: &[(u16, u64)]| counts.iter().any(|&(id, _)| id == topic);
    for row in index.chunks.iter().rev().filter(|row| has_topic(&row.counts)) {
        let messages = messages(file, row)?.unwrap_or_default();
        let last = messages.iter().rfind(|(stamp, _)| stamp.topic == topic);
        if let Some(cycle) = last.and_then(|(_, data)| layout.read(data)) {
            return Ok(Some((cycle.past.number, cycle.past.start_ns)));
        }
    }
    Ok(None)
}
