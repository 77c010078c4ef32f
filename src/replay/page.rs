//! The page that `--page` makes of a recording during the replay.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sinew_core::trace::Record;
use sinew_recording::recording::Recording;
use sinew_recording::replay::{Graphs, Onlooker, RecordedThread};
use sinew_services::dashboard::recorded::RecordedPage;

/// A page, and the file that it will be written to.
pub(super) struct Page {
    to: PathBuf,
    page: Rc<RefCell<RecordedPage>>,
}

impl Page {
    /// The page of a recording, with these traces on its scope cycle by cycle.
    ///
    /// # Errors
    /// As text: the file exists already, or there is no such trace.
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

    /// Returns the observer that passes the cycles of these threads to the page.
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

    /// Writes the file. Returns a summary as text.
    ///
    /// # Errors
    /// As text: the recording has no cycle, or the file cannot be written.
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
