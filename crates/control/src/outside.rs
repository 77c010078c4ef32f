//! Values that a spec takes from outside of it, in this process. They are read once, before the
//! spec is compiled. They are also secrets that must not be shown.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::env::{self, VarError};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use rustix::fs::OFlags;
use sinew_plan::{Brought, Secrets, Wanted};

/// Longest file whose contents are a value, in bytes. A chain of certificates fits.
pub const FILE_LEN_MAX: usize = 64 << 10;
/// Most texts that are hidden in one process. Each line of a value counts, and so does each way to
/// write it. Every line that is printed is searched for all of them.
pub const SECRETS_MAX: usize = 1024;

struct Known {
    values: BTreeMap<Wanted, Result<String, String>>,
    secrets: Secrets,
}

static KNOWN: RwLock<Option<Known>> = RwLock::new(None);
/// Whether there is anything to hide. Usually there is not, and then the lock is not taken.
static HIDES: AtomicBool = AtomicBool::new(false);

/// Reads the values that a spec wants. Paths start from `base`. Blocks on the disk.
pub fn bring(wanted: Vec<Wanted>, base: &Path) -> Vec<Brought> {
    let mut secrets = with(|known| known.secrets.clone());
    let bring = |wanted: Wanted| {
        let value = match &wanted {
            Wanted::Variable(name) => of_environment(name),
            Wanted::File(path) => {
                of_file(&base.join(path)).map_err(|why| format!("'{path}' {why}"))
            }
        };
        let value = value.and_then(|value| within(&mut secrets, value));
        Brought { wanted, value }
    };
    wanted.into_iter().map(bring).collect()
}

fn within(secrets: &mut Secrets, value: String) -> Result<String, String> {
    secrets.add(&value);
    match secrets.count() <= SECRETS_MAX {
        true => Ok(value),
        false => Err(format!(
            "it has too many lines: the output can hide {SECRETS_MAX} texts at most; take less \
             from outside, or stop the graph and run it again"
        )),
    }
}

fn of_environment(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| match error {
        VarError::NotPresent => {
            format!(
                "the environment has no variable {name}; set it, or give a default: \
                 {{{{ env.{name} or '...' }}}}"
            )
        }
        VarError::NotUnicode(_) => {
            format!(
                "the environment variable {name} holds bytes that are not text; set it to UTF-8"
            )
        }
    })
}

fn of_file(path: &Path) -> Result<String, String> {
    let cannot =
        |error| format!("cannot be read: {error}; paths start from the folder of the spec");
    // Opening a pipe would otherwise block.
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let file =
        OpenOptions::new().read(true).custom_flags(nonblocking).open(path).map_err(cannot)?;
    if !file.metadata().map_err(cannot)?.is_file() {
        return Err("is not a regular file; name one that holds the value".into());
    }
    let mut bytes = Vec::new();
    file.take(FILE_LEN_MAX as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() > FILE_LEN_MAX {
        return Err(format!("has more than {FILE_LEN_MAX} bytes, the limit; name a shorter file"));
    }
    let mut text = String::from_utf8(bytes)
        .map_err(|_| "holds bytes that are not text; save it as UTF-8".to_owned())?;
    if text.ends_with('\n') {
        text.pop();
        text.truncate(text.strip_suffix('\r').unwrap_or(&text).len());
    }
    Ok(text)
}

/// Sets the values of this process from now on, and hides them.
pub fn know(brought: &[Brought]) {
    change(|known| {
        for Brought { wanted, value } in brought {
            known.values.insert(wanted.clone(), value.clone());
            if let Ok(value) = value {
                known.secrets.add(value);
            }
        }
    });
}

/// The value, or why there is none. `None` if it was not read.
pub fn known(wanted: &Wanted) -> Option<Result<String, String>> {
    with(|known| known.values.get(wanted).cloned())
}

/// An environment variable, whose value is hidden from now on. `None` if it is not set.
///
/// # Errors
/// The value is not UTF-8, or too many texts are hidden already.
pub fn variable(name: &str) -> Result<Option<String>, String> {
    let wanted = Wanted::Variable(name.to_owned());
    if let Some(Ok(value)) = known(&wanted) {
        return Ok(Some(value));
    }
    if env::var_os(name).is_none() {
        return Ok(None);
    }
    let brought = bring(vec![wanted], Path::new(""));
    know(&brought);
    brought.into_iter().next().map(|one| one.value).transpose()
}

/// The text with secrets hidden. Does not allocate if it has none.
pub fn hide(text: &str) -> Cow<'_, str> {
    // Acquire: pairs with the release store of the flag, so the secrets set before it are seen.
    if !HIDES.load(Ordering::Acquire) {
        return Cow::Borrowed(text);
    }
    with(|known| known.secrets.hide(text))
}

/// The beginning of a long text, with secrets hidden. A secret that is cut at `len` bytes is found
/// too.
pub fn hide_first(text: &str, len: usize) -> Cow<'_, str> {
    // Acquire: as in [`hide`].
    if !HIDES.load(Ordering::Acquire) {
        return Cow::Borrowed(text);
    }
    let enough = len + with(|known| known.secrets.len_max());
    hide(&text[..text.floor_char_boundary(enough)])
}

/// The same for an owned text.
pub fn hidden(text: String) -> String {
    match hide(&text) {
        Cow::Owned(hidden) => hidden,
        Cow::Borrowed(_) => text,
    }
}

/// The same for bytes, if they are UTF-8.
pub fn hide_in(bytes: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(bytes).map(hide) {
        Ok(Cow::Owned(hidden)) => Cow::Owned(hidden.into_bytes()),
        _ => Cow::Borrowed(bytes),
    }
}

fn with<T>(look: impl FnOnce(&Known) -> T) -> T {
    // A poisoned lock is no danger: a value is either complete or absent.
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    match &*known {
        Some(known) => look(known),
        None => look(&Known { values: BTreeMap::new(), secrets: Secrets::default() }),
    }
}

fn change(change: impl FnOnce(&mut Known)) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    let empty = || Known { values: BTreeMap::new(), secrets: Secrets::default() };
    let known = known.get_or_insert_with(empty);
    change(known);
    // Release: whoever sees the flag also sees the secrets.
    HIDES.store(known.secrets.count() > 0, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::id;

    use super::*;

    #[test]
    fn a_file_is_a_value_without_its_last_newline() {
        let folder = env::temp_dir().join(format!("sinew-outside-{}", id()));
        fs::create_dir_all(&folder).expect("a folder");
        let table: [(&str, &[u8], Result<&str, &str>); 7] = [
            ("a", b"one\n", Ok("one")),
            ("b", b"one\r\n", Ok("one")),
            ("c", b"one\n\n", Ok("one\n")),
            ("d", b"", Ok("")),
            ("e", b"\xff", Err("UTF-8")),
            ("f", &[b'x'; FILE_LEN_MAX + 1], Err("more than 65536 bytes")),
            ("g", b"12345678\n23456789\n", Ok("12345678\n23456789")),
        ];
        for (name, bytes, expected) in table {
            fs::write(folder.join(name), bytes).expect("a file");
            let brought = bring(vec![Wanted::File(name.into())], &folder);
            match (&brought[0].value, expected) {
                (Ok(value), Ok(expected)) => assert_eq!(value, expected, "{name}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{name}: {why}"),
                other => panic!("{name}: {other:?}"),
            }
        }
        let lines: String = (0..SECRETS_MAX).map(|at| format!("line {at:08}\n")).collect();
        fs::write(folder.join("h"), lines).expect("a file");
        let bad = [("h", "too many"), ("no", "No such file"), (".", "not a regular file")];
        for (name, part) in bad.into_iter().chain([("/dev/zero", "not a regular file")]) {
            let brought = bring(vec![Wanted::File(name.into())], &folder);
            let why = brought[0].value.as_ref().expect_err(name);
            assert!(why.contains(part), "{name}: {why}");
        }
        fs::remove_dir_all(&folder).expect("it goes");
    }

    #[test]
    fn what_is_known_is_hidden() {
        assert_eq!(variable("SINEW_NO_SUCH"), Ok(None));
        let wanted = Wanted::File("hides".into());
        assert_eq!(known(&wanted), None);
        know(&[Brought { wanted: wanted.clone(), value: Ok("only-this-test-has-it".into()) }]);
        assert_eq!(known(&wanted), Some(Ok("only-this-test-has-it".into())));
        assert_eq!(hide("x only-this-test-has-it"), "x ***");
        // A secret that is cut in the middle is still found.
        let text = format!("x only-this-test-has-it{}", "y".repeat(100));
        assert!(hide_first(&text, 8).starts_with("x ***"), "{}", hide_first(&text, 8));
    }
}
