//! A copy of a graph with other links between hosts.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use sinew_spec::edit::{Change, Places, edit};
use sinew_spec::plan::{Delivery, RemoteLink};

/// The text of a graph with another delivery of the first of these links whose place in the text
/// is found: hosts compare what crosses between them, and how it is delivered.
///
/// # Errors
/// None of them can be changed.
pub(super) fn of_another_version(text: &str, links: &[RemoteLink]) -> Result<String, String> {
    let places = Places::of(text);
    let mut links = links.iter();
    let changed = links.find_map(|RemoteLink { from, to, delivery, .. }| {
        let ends = ((from.node.as_str(), from.port.as_str()), (to.node.as_str(), to.port.as_str()));
        let place = places.as_ref()?.link(ends.0, ends.1)?;
        let change = |key: &str, value: Option<&str>| Change {
            to: place.clone(),
            key: key.into(),
            value: value.map(str::to_owned),
        };
        let changes = match delivery {
            Delivery::Latest => vec![change("delivery", Some("queue"))],
            // The newest message has no queue with a capacity.
            _ => vec![change("delivery", Some("latest")), change("capacity", None)],
        };
        edit(text, &changes).ok()
    });
    changed.ok_or("the drill finds no link between the two hosts in the file to change".into())
}

/// A copy of a file, in a folder of its own until this is dropped. What lies around the file, and
/// in as many folders above as its paths lead to, is there by links: relative paths lead to the
/// same files.
pub(super) struct EditedCopy {
    folder: PathBuf,
    file: PathBuf,
}

impl EditedCopy {
    /// Writes a copy of `file` that has this text.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn write(file: &Path, text: &str) -> io::Result<EditedCopy> {
        let original = fs::canonicalize(file)?;
        let name = format!("sinew-drill-{}-{:08x}", std::process::id(), fastrand::u32(..));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder)?;
        let mut copy = EditedCopy { file: folder.clone(), folder };
        // The folders from the outermost to that of the file, and then the file.
        let inner: Vec<&Path> = original.ancestors().take(upwards(text) + 2).collect();
        for pair in inner.windows(2).rev() {
            let &[within, around] = pair else { continue };
            for entry in fs::read_dir(around)?.flatten().filter(|entry| entry.path() != within) {
                symlink(entry.path(), copy.file.join(entry.file_name()))?;
            }
            copy.file.push(within.file_name().unwrap_or_default());
            match within == original {
                true => fs::write(&copy.file, text)?,
                false => fs::create_dir(&copy.file)?,
            }
        }
        Ok(copy)
    }

    /// The copy.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }
}

impl Drop for EditedCopy {
    fn drop(&mut self) {
        // What cannot be removed is in the folder for temporary files. Links are not followed.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// How many folders the paths in a text lead upwards, at most.
fn upwards(text: &str) -> usize {
    let words = text.split(|sign: char| sign.is_whitespace() || "\"'{}[],".contains(sign));
    words.map(|word| word.matches("../").count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_sees_what_the_original_sees_and_leaves_nothing() {
        let around = std::env::temp_dir().join(format!("sinew-copy-{}", std::process::id()));
        let (graphs, arm) = (around.join("graphs"), around.join("arm"));
        for folder in [&around, &graphs, &arm] {
            fs::create_dir(folder).expect("a folder");
        }
        for (file, text) in [(graphs.join("a.yaml"), "x: ../arm/b"), (arm.join("b"), "the arm")] {
            fs::write(file, text).expect("a file");
        }
        fs::write(graphs.join("c"), "beside it").expect("a file");
        let copy = EditedCopy::write(&graphs.join("a.yaml"), "y: ../arm/b").expect("a copy");
        let read = |path: &str| {
            let path = copy.file().parent().expect("its folder").join(path);
            fs::read_to_string(path).expect("it is there")
        };
        assert_eq!(read("../arm/b"), "the arm");
        assert_eq!(read("c"), "beside it");
        assert_eq!(read("a.yaml"), "y: ../arm/b");
        let folder = copy.folder.clone();
        drop(copy);
        assert!(!folder.exists() && arm.join("b").exists());
        fs::remove_dir_all(around).expect("it is removed");
    }

    #[test]
    fn paths_lead_upwards() {
        assert_eq!(upwards("a: [../x, '../../y', z/w]"), 2);
        assert_eq!(upwards("a: x"), 0);
    }
}
