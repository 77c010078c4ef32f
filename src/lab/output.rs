//! The files of a report: opened before anything is measured, written when all is known.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use sinew_lab::{Report, show};

/// Shows that files can be made in a folder; it is removed at once.
const PROBE: &str = ".sinew-lab";

/// Where a report goes beside standard output.
pub(super) struct Outputs {
    page: Option<(PathBuf, File)>,
    plots: Option<PathBuf>,
}

impl Outputs {
    /// Opens the page and the folder of the plots. What is there already stays as it is until there
    /// is something to take its place.
    pub(super) fn open(page: Option<&Path>, plots: Option<&Path>) -> Result<Outputs, String> {
        let open = |path: &Path| {
            let file = File::options().write(true).create(true).truncate(false).open(path);
            let file = file
                .map_err(|error| format!("--report: cannot write '{}': {error}", path.display()))?;
            Ok::<_, String>((path.to_path_buf(), file))
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
        Ok(Outputs { page: page.map(open).transpose()?, plots: plots.map(folder).transpose()? })
    }

    /// Writes all of it.
    pub(super) fn write(self, report: &Report) -> Result<(), String> {
        if let Some((path, mut file)) = self.page {
            let page = show::to_page(report);
            // A device has no length to be cut; then writing alone is all there is to do.
            let _ = file.set_len(0);
            let written = file.write_all(page.as_bytes()).and_then(|()| file.flush());
            written.map_err(|error| format!("cannot write '{}': {error}", path.display()))?;
        }
        if let Some(folder) = self.plots {
            for plot in show::plots(report) {
                let path = folder.join(format!("{}.svg", plot.name));
                let written = fs::write(&path, plot.to_document());
                written.map_err(|error| format!("cannot write '{}': {error}", path.display()))?;
            }
        }
        Ok(())
    }
}
