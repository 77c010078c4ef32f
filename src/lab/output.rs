//! The files of a report: tried before anything is measured, written at the end.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use sinew_lab::show::Plot;

/// Name of a file that shows that the folder can be written to. It is removed at once.
const PROBE: &str = ".sinew-lab";

/// Where a report goes besides standard output.
pub(crate) struct Outputs {
    page: Option<PathBuf>,
    plots: Option<PathBuf>,
}

impl Outputs {
    /// Tries the page and the folder of the plots. A file that exists stays unchanged, and a new
    /// page is not left behind, until there is something to write.
    pub(crate) fn open(file: Option<&Path>, plots: Option<&Path>) -> Result<Outputs, String> {
        let page = |path: &Path| match try_file(path) {
            Ok(()) => Ok(path.to_path_buf()),
            Err(error) => Err(format!("--report: cannot write '{}': {error}", path.display())),
        };
        let folder = |path: &Path| {
            let probe = path.join(PROBE);
            let tried = fs::create_dir_all(path)
                .and_then(|()| File::create(&probe))
                .and_then(|_| fs::remove_file(&probe));
            tried.map_err(|error| {
                format!("--svg: cannot write to folder '{}': {error}", path.display())
            })?;
            Ok::<_, String>(path.to_path_buf())
        };
        Ok(Outputs { page: file.map(page).transpose()?, plots: plots.map(folder).transpose()? })
    }

    /// Writes everything that was asked for.
    pub(crate) fn write(
        self,
        page: impl Fn() -> String,
        plots: impl Fn() -> Vec<Plot>,
    ) -> Result<(), String> {
        if let Some(path) = self.page {
            let written = fs::write(&path, page());
            written.map_err(|error| format!("cannot write '{}': {error}", path.display()))?;
        }
        if let Some(folder) = self.plots {
            for plot in plots() {
                let path = folder.join(format!("{}.svg", plot.name));
                let written = fs::write(&path, plot.to_document());
                written.map_err(|error| format!("cannot write '{}': {error}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// Whether a file can be written. A file that did not exist does not exist afterwards.
fn try_file(path: &Path) -> io::Result<()> {
    match File::create_new(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            File::options().write(true).open(path).map(drop)
        }
        Err(error) => Err(error),
    }
}
