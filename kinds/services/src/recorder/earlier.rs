//! What earlier lives of a recorder have left in the folder. Parts that were cut off by a kill are
//! mended, and the newest cycles of this run are looked up, so that the recording continues after
//! them.

use std::io;
use std::path::Path;

use sinew_recording::cycle::CycleLayout;
use sinew_recording::event;
use sinew_recording::format::PartHead;
use sinew_recording::mend::{head, is_finished, scan};

use super::folder::{Folder, open};
use super::gather::Mark;

/// The existing recordings of this run.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// Number of the last part; 0 if there is none.
    pub(super) part: u32,
    /// The newest cycle of each thread.
    pub(super) last: Vec<Option<Mark>>,
    /// Number of the newest event; 0 if there is none.
    pub(super) event: u64,
    /// Lines about the parts that were not finished.
    pub(super) lines: Vec<String>,
}

/// The cycles of a thread in a file: their topic and their layout.
pub(super) type CycleTopic = (String, CycleLayout);

impl Earlier {
    /// Looks through the folder and mends unfinished parts; `beat` is called for each file.
    pub(super) fn find(
        folder: &Folder,
        run: &str,
        threads: &[CycleTopic],
        mut beat: impl FnMut(),
    ) -> io::Result<Earlier> {
        let mut earlier = Earlier { last: vec![None; threads.len()], ..Earlier::default() };
        let mut ours = Vec::new();
        for path in folder.parts()? {
            beat();
            earlier.mend(&path);
            match of_run(&path, run) {
                Ok(head) => ours.extend(head.map(|head| (head, path))),
                Err(error) => earlier.cannot_read(&path, &error),
            }
        }
        // By number: names contain the time of day, which somebody may set back.
        ours.sort_by_key(|(head, _)| head.part);
        earlier.part = ours.last().map_or(0, |(head, _)| head.part);
        for (head, path) in ours.iter().rev() {
            if earlier.event > 0 && earlier.last.iter().all(Option::is_some) {
                break;
            }
            beat();
            if let Err(error) = earlier.look_up(path, head.life, threads) {
                earlier.cannot_read(path, &error);
            }
        }
        Ok(earlier)
    }

    /// Gives a part an end, if it has none and nobody writes it.
    fn mend(&mut self, path: &Path) {
        match mended(path) {
            Ok(None) => {}
            Ok(Some(0)) => {
                self.lines.push(format!("mended '{}', which had no end", path.display()));
            }
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

    fn cannot_read(&mut self, path: &Path, error: &io::Error) {
        self.lines.push(format!("cannot read '{}': {error}", path.display()));
    }

    /// Looks up the newest cycles of threads for which none was found yet, and the newest event.
    fn look_up(&mut self, path: &Path, life: u32, threads: &[CycleTopic]) -> io::Result<()> {
        let Some(file) = open(path, false)? else { return Ok(()) };
        let Some(scan) = scan(&file)? else { return Ok(()) };
        for (last, (topic, layout)) in self.last.iter_mut().zip(threads) {
            if last.is_none() {
                let number = |_, data: &[u8]| Some(layout.read(data)?.past.number);
                let number = scan.newest(&file, topic, &number)?;
                *last = number.map(|number| Mark { life, number });
            }
        }
        if self.event == 0 {
            let number = |sequence, _: &[u8]| Some(u64::from(sequence));
            self.event = scan.newest(&file, event::TOPIC, &number)?.unwrap_or(0);
        }
        Ok(())
    }
}

/// The head of a part, if the part is one of this run and nobody writes it.
fn of_run(path: &Path, run: &str) -> io::Result<Option<PartHead>> {
    let Some(file) = open(path, false)? else { return Ok(None) };
    Ok(head(&file)?.and_then(Result::ok).filter(|head| head.run == run))
}

/// Mends a part; returns how many bytes were cut off, if it had no end.
fn mended(path: &Path) -> io::Result<Option<u64>> {
    match open(path, false)? {
        Some(file) if !is_finished(&file)? => {}
        _ => return Ok(None),
    }
    let Some(file) = open(path, true)? else { return Ok(None) };
    // A file that no recorder wrote is left as it is.
    let Some(scan) = scan(&file)? else { return Ok(None) };
    scan.mend(&file).map(Some)
}
