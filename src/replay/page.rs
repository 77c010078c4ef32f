//! The page that `--page` makes of a recording, while that is replayed.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sinew_core::trace::Record;
use sinew_recording::recording::Recording;
use sinew_recording::replay::{Graphs, Onlooker, RecordedThread};
use sinew_services::dashboard::recorded::RecordedPage;

/// A page, and the file that it becomes.
pub(super) struct Page {
    to: PathBuf,
    page: Rc<RefCell<RecordedPage>>,
}

impl Page {
    /// Of a recording, with these traces on its scope cycle by cycle.
    ///
    /// # Errors
    /// In words: the file is there already, a trace is not.
    pub(super) fn new(
        to: &Path,
        recording: &Recording,
        graphs: &Graphs,
        traces: &[String],
    ) -> Result<Page, String> {
        if to.symlink_metadata().is_ok() {
            return Err(format!("'{}' exists already; name a new file", to.display()));
        }
        let head = recording.head();
        let when = (head.host.as_str(), head.clock_offset_ns);
        let page = RecordedPage::new(&graphs.recorded, &head.file, graphs.base(), when, traces)?;
        Ok(Page { to: to.to_owned(), page: Rc::new(RefCell::new(page)) })
    }

    /// Who shows the page the cycles of these threads.
    pub(super) fn onlooker(
        &self,
        graphs: &Graphs,
        threads: &[RecordedThread],
    ) -> Onlooker<'static> {
        let plan = &graphs.recorded;
        let records = threads.iter().map(|thread| Record::of(plan, thread.id.nodes(plan)));
        let mut records: Vec<_> = records.collect();
        let page = Rc::clone(&self.page);
        Box::new(move |at, thread| {
            thread.restore(&mut records[at]);
            page.borrow_mut().take(at, &records[at]);
            Ok(true)
        })
    }

    /// Writes the file. What it came to, in words.
    ///
    /// # Errors
    /// In words: no cycle is in the recording, or the file cannot be written.
    pub(super) fn write(self) -> Result<String, String> {
        let to = self.to.display();
        let page = Rc::into_inner(self.page).expect("a player lets its onlooker go when it ends");
        let (html, cut) = page.into_inner().finish()?;
        let made = File::create_new(&self.to).and_then(|mut file| file.write_all(html.as_bytes()));
        made.map_err(|error| format!("cannot write '{to}': {error}"))?;
        let size = html.len() as f64 / 1e6;
        let cut = cut.map_or(String::new(), |cut| format!("; {cut}"));
        Ok(format!("page: {to}, {size:.2} MB{cut}"))
    }
}
