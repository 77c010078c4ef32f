//! Counts instructions: each verb runs alone, in a process of its own under callgrind.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

use sinew_core::clock::Clock;

use crate::book::Tools;
use crate::compare::Counts;
use crate::verbs::{Verb, Work};

/// The output of a command.
///
/// # Errors
/// The command cannot be started, or fails.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("'{name}' is missing"),
        _ => format!("cannot start '{name}': {error}"),
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("'{name}' failed ({}): {}", output.status, said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The tools that are used for counting here.
///
/// # Errors
/// Which tool is missing, and what to install.
pub(crate) fn tools() -> Result<Tools, String> {
    let valgrind = output(Command::new("valgrind").arg("--version")).map_err(|why| {
        format!(
            "{why}: nothing can be shown, which counts as failed; install valgrind (Debian: \
             apt-get install valgrind)"
        )
    })?;
    let compiler = output(Command::new("rustc").arg("--version"))?;
    let libc = output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    Ok(Tools { compiler, valgrind, libc, machine: machine() })
}

/// What a program under valgrind can see of the machine: the instruction set that valgrind offers
/// on this processor, and whether there is an instruction that reads the clock.
fn machine() -> String {
    let clock = if Clock::calibrate().rate() > 0.0 { "constant counter" } else { "no counter" };
    let vectors = if has_avx2() { "avx2" } else { "no avx2" };
    format!("{}-{}, {vectors}, {clock}", env::consts::ARCH, env::consts::OS)
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

/// The function that callgrind counts, found by its name, with everything that it calls.
#[inline(never)]
pub(crate) fn counted_verb(work: &mut Work) {
    work();
}

/// Counts these verbs, as many at a time as there are CPUs. With `mistaken`, counts their variants
/// with a mistake.
///
/// # Errors
/// One verb could not be counted.
pub(crate) fn counts(verbs: &[&Verb], mistaken: bool) -> Result<Counts, String> {
    let folder = folder()?;
    let (next, counts) = (AtomicUsize::new(0), Mutex::new(Ok(Counts::new())));
    let lanes = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                // Relaxed: the counter only distributes the verbs.
                while let Some(verb) = verbs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let count = count(verb, mistaken, &folder);
                    let mut counts = counts.lock().expect("nobody panics with it");
                    match (count, &mut *counts) {
                        (Ok(count), Ok(counts)) => drop(counts.insert(verb.name.into(), count)),
                        (Err(why), counts @ Ok(_)) => *counts = Err(why),
                        _ => {}
                    }
                }
            });
        }
    });
    counts.into_inner().expect("nobody panics with it")
}

/// The folder for callgrind's output, for people who want to see where the instructions are.
fn folder() -> Result<PathBuf, String> {
    let program = env::current_exe().map_err(|error| format!("who am I: {error}"))?;
    let folder = program.parent().unwrap_or(Path::new(".")).join("gates");
    fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot make '{}': {error}", folder.display()))?;
    Ok(folder)
}

fn count(verb: &Verb, mistaken: bool, folder: &Path) -> Result<u64, String> {
    let name = verb.name;
    let file = folder.join(format!("{}.callgrind", name.replace('/', "_")));
    let program = env::current_exe().map_err(|error| format!("who am I: {error}"))?;
    let mut valgrind = Command::new("valgrind");
    // The same environment everywhere.
    valgrind.env_clear().envs(env::var_os("PATH").map(|path| ("PATH", path)));
    valgrind.args(["--tool=callgrind", "--toggle-collect=*counted_verb*"]);
    valgrind.arg(format!("--callgrind-out-file={}", file.display()));
    valgrind.arg(program).args(["--count", name]).args(mistaken.then_some("--mistaken"));
    output(&mut valgrind).map_err(|why| format!("'{name}' was not counted: {why}"))?;
    let text = fs::read_to_string(&file)
        .map_err(|error| format!("'{name}' was not counted: cannot read its figures: {error}"))?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    match total.and_then(|total| total.trim().parse().ok()) {
        Some(count @ 1..) => Ok(count),
        _ => Err(format!("'{name}' was not counted: no instruction in '{}'", file.display())),
    }
}
