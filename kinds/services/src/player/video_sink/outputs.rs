//! The outputs of pictures: viewers, a file, a log.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use axum::body::Bytes;
use sinew_core::{Fault, fault};
use sinew_media::PictureHead;
use sinew_pictures::picture::{PictureView, Points, jpeg};
use sinew_runtime::service::tell;

use crate::hosts::Hosts;
use crate::player::presenter::{Showing, Tally};
use crate::player::watchers::Watchers;

/// Columns of the log. Times in ns; `shown` is monotonic, `difference` is empty while no sound is
/// heard.
const COLUMNS: &str = "number,serial,position_ns,shown_ns,difference_ns,decode_ns,waiting,late,\
                       dropped,repeated,copies\n";

/// All outputs.
pub(super) struct Outputs {
    quality: u8,
    file: Option<BufWriter<File>>,
    log: Option<BufWriter<File>>,
    watchers: Option<Watchers>,
}

impl Outputs {
    /// Opens the files.
    ///
    /// # Errors
    /// The file system's error.
    pub(super) fn open(
        quality: u8,
        file: Option<&Path>,
        log: Option<&Path>,
    ) -> Result<Outputs, Fault> {
        let cannot = |path: &Path, error| fault!("cannot write '{}': {error}", path.display());
        let file = file.map(|path| File::create(path).map_err(|error| cannot(path, error)));
        let log = log.map(|path| {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            let mut log = opened.map_err(|error| cannot(path, error))?;
            if log.metadata().is_ok_and(|about| about.len() == 0) {
                log.write_all(COLUMNS.as_bytes()).map_err(|error| cannot(path, error))?;
            }
            Ok(log)
        });
        Ok(Outputs {
            quality,
            file: file.transpose()?.map(BufWriter::new),
            log: log.transpose()?.map(BufWriter::new),
            watchers: None,
        })
    }

    /// Serves the viewers, and announces the address.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn serve(&mut self, address: SocketAddr, names: &[String]) -> Result<(), Fault> {
        let listener = TcpListener::bind(address).map_err(|error| {
            fault!(
                "cannot listen at {address}: {error}; stop the program that does, or change \
                 'listen'"
            )
        })?;
        let own = listener.local_addr().map_err(|error| fault!("its own address: {error}"))?;
        let hosts = Hosts::new(own, names);
        tell(format_args!("watch at http://{}/", hosts.shown()));
        if hosts.is_beyond_loopback() {
            tell("other machines reach the page too, and may give orders; nothing is encrypted");
        }
        let watchers = Watchers::start(listener, hosts);
        let refused = |error| fault!("no thread for those who watch: {error}");
        self.watchers = Some(watchers.map_err(refused)?);
        Ok(())
    }

    /// The viewers.
    pub(super) fn watchers(&self) -> Option<&Watchers> {
        self.watchers.as_ref()
    }

    /// Whether pictures must be encoded.
    pub(super) fn wants_pictures(&self) -> bool {
        self.file.is_some() || self.watchers.as_ref().is_some_and(Watchers::wants_pictures)
    }

    /// The JPEG of a picture.
    ///
    /// # Errors
    /// The head is not valid.
    pub(super) fn encode(&self, head: &PictureHead, points: &dyn Points) -> Result<Bytes, Fault> {
        let picture = PictureView::new(*head, points).map_err(|bad| fault!("{bad}"))?;
        Ok(jpeg::encode(&picture, self.quality).into())
    }

    /// Outputs a JPEG.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn show(&mut self, jpeg: &Bytes) -> Result<(), Fault> {
        if let Some(watchers) = &self.watchers {
            watchers.show(jpeg.clone());
        }
        match &mut self.file {
            Some(file) => file.write_all(jpeg).map_err(|error| fault!("'file': {error}")),
            None => Ok(()),
        }
    }

    /// Writes a line of the log.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn log(
        &mut self,
        head: &PictureHead,
        showing: &Showing,
        shown_ns: u64,
        tally: &Tally,
    ) -> Result<(), Fault> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let PictureHead { number, serial, position_ns, decode_ns, waiting, copies, .. } = head;
        let difference = showing.difference_ns.map(|it| it.to_string()).unwrap_or_default();
        let (late, Tally { dropped, repeated, .. }) = (u8::from(showing.is_late), tally);
        let written = writeln!(
            log,
            "{number},{serial},{position_ns},{shown_ns},{difference},{decode_ns},{waiting},{late},\
             {dropped},{repeated},{copies}"
        );
        written.map_err(|error| fault!("'log': {error}"))
    }

    /// Passes everything to the kernel.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn flush(&mut self) -> Result<(), Fault> {
        for (name, file) in [("file", &mut self.file), ("log", &mut self.log)] {
            if let Some(file) = file {
                file.flush().map_err(|error| fault!("'{name}': {error}"))?;
            }
        }
        Ok(())
    }
}
