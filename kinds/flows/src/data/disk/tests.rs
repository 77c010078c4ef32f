//! The file of a store: kills, locks, other files, full disks, many workers.

use std::env::{self, current_exe};
use std::fs;
use std::io::{BufRead, BufReader, Write, stdout};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;

use futures_util::future::join_all;
use futures_util::poll;
use sinew_flow::Value;
use tempfile::TempDir;

use super::*;
use crate::testing::run;
use sinew_flow::cbor;

/// In a child of these tests: the file that it is to write.
const FILE: &str = "SINEW_TEST_STORE_FILE";
/// How often a child is killed.
const KILLS: usize = 6;

const LIMITS: StoreLimits =
    StoreLimits { entries_max: 10_000, bytes_max: 1 << 30, value_max: 1 << 20, evicts: false };

/// A store's file, for operations at any given time.
pub(in crate::data) struct InFile {
    pub(in crate::data) disk: Disk,
    pub(in crate::data) counts: Arc<Counts>,
    _folder: Option<TempDir>,
}

impl InFile {
    pub(in crate::data) fn new() -> InFile {
        let folder = TempDir::new().expect("a folder");
        let disk = Disk::open(&folder.path().join("store")).expect("a new file");
        InFile { disk, counts: Arc::default(), _folder: Some(folder) }
    }

    pub(in crate::data) fn run(
        &mut self,
        asked: &Asked,
        limits: StoreLimits,
        now_ms: u64,
    ) -> Result<Outcome, Error> {
        let (answer, _answered) = oneshot::channel();
        let counts = Arc::clone(&self.counts);
        let job = Job { request: asked.clone(), limits, counts, answer };
        let database = lock(&self.disk.database);
        let mut done =
            self.disk.transact(database.as_ref().expect("open"), &[job], now_ms).expect("a disk");
        done.pop().expect("one answer")
    }
}

fn request(key: &str, act: Act) -> Asked {
    Asked { key: key.into(), act, expire_ms: None }
}

async fn ask(disk: &Arc<Disk>, pool: &Pool, asked: Asked) -> Result<Outcome, Error> {
    disk.carry_out(pool, asked, LIMITS, &Arc::default()).await
}

/// The numbers in these entries. Waits until nobody else has the file, and closes it.
fn count_of(mut disk: Arc<Disk>, keys: &[&str]) -> Vec<i64> {
    let disk = loop {
        match Arc::try_unwrap(disk) {
            Ok(disk) => break disk,
            // A thread of the pool still looks for more operations.
            Err(again) => disk = again,
        }
        thread::yield_now();
    };
    let mut file = InFile { disk, counts: Arc::default(), _folder: None };
    let mut count = |key: &&str| match file.run(&request(key, Act::Get), LIMITS, 0) {
        Ok(Outcome::Is(bytes)) => match cbor::value(&bytes) {
            Ok(Value::Integer(number)) => number,
            other => panic!("{other:?}"),
        },
        Ok(_) => 0,
        Err(error) => panic!("{error}"),
    };
    keys.iter().map(&mut count).collect()
}

/// Runs this test again in a process of its own, with a file to write.
fn child(test: &str, path: &Path, before: &str) -> Child {
    let program = current_exe().expect("this program");
    let script = format!("{before} exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(program);
    command.args([&format!("data::disk::tests::{test}"), "--exact", "--nocapture"]);
    command.env(FILE, path).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().expect("a child")
}

/// Two workers count up an entry each, and print each number that was answered.
fn count_for_ever(path: &Path) {
    let (disk, pool) = (Arc::new(Disk::open(path).expect("a file")), Pool::start(2).expect("two"));
    thread::scope(|scope| {
        for key in ["a", "b"] {
            let (disk, pool) = (&disk, &pool);
            scope.spawn(move || {
                run(async {
                    loop {
                        let done = ask(disk, pool, request(key, Act::Increment(1))).await;
                        let Ok(Outcome::Is(bytes)) = done else { panic!("{done:?}") };
                        let number = cbor::value(&bytes).expect("CBOR").to_json().expect("JSON");
                        // One write for each line, so that a kill cuts no line.
                        stdout()
                            .write_all(format!("\n{key} {number}\n").as_bytes())
                            .expect("a pipe");
                    }
                })
            });
        }
    });
}

#[test]
fn what_was_answered_outlives_kill_9() {
    if let Some(path) = env::var_os(FILE) {
        return count_for_ever(Path::new(&path));
    }
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("store");
    let mut before = 0;
    for round in 0..KILLS {
        let mut child = child("what_was_answered_outlives_kill_9", &path, "");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut answered = [0_i64; 2];
        let take = |line: &str, answered: &mut [i64; 2]| {
            let Some((key, number)) = line.split_once(' ') else { return false };
            let (Some(at), Ok(number)) =
                (["a", "b"].iter().position(|it| *it == key), number.parse())
            else {
                return false;
            };
            answered[at] = number;
            true
        };
        let mut left = 3 + 7 * round;
        while left > 0 {
            let line = lines.next().expect("it counts until it is killed").expect("a pipe");
            left -= usize::from(take(&line, &mut answered));
        }
        // The child lives and has the file, so the kill comes in the middle of its work.
        let error = Disk::open(&path).err().expect("another process has it");
        assert!(error.text().contains("in use by another process"), "{error}");
        child.kill().expect("it lives");
        let status = child.wait().expect("our own child");
        assert_eq!(status.signal(), Some(9), "the kill did not land: {status}");
        for line in lines.map_while(Result::ok) {
            take(&line, &mut answered);
        }
        let disk = Arc::new(Disk::open(&path).expect("the kill left a store"));
        for (kept, answered) in count_of(disk, &["a", "b"]).into_iter().zip(answered) {
            // One more number may have been written without being answered.
            assert!((answered..=answered + 1).contains(&kept), "{kept}, answered {answered}");
        }
        let sum = answered[0] + answered[1];
        assert!(sum > before, "it went on where it was");
        before = sum;
    }
}

#[test]
fn a_full_disk_is_an_error_and_the_store_goes_on_when_there_is_room() {
    if let Some(path) = env::var_os(FILE) {
        let disk = Arc::new(Disk::open(Path::new(&path)).expect("a file"));
        let pool = Pool::start(1).expect("a thread");
        let value = cbor::bytes(&Value::text("x".repeat(200_000)), 1 << 20).expect("short");
        run(async {
            for number in 0..1000 {
                let key = format!("k{number}");
                if let Err(error) = ask(&disk, &pool, request(&key, Act::Set(value.clone()))).await
                {
                    // The earlier entries are still there, and the file is open again.
                    let first = ask(&disk, &pool, request("k0", Act::Get)).await;
                    let read = matches!(first, Ok(Outcome::Is(_)));
                    let said = format!("\nfailed {number} {} {read} {error}\n", error.status());
                    stdout().write_all(said.as_bytes()).expect("a pipe");
                    return;
                }
            }
        });
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("store");
    // A file of more than this many KiB is refused like on a full disk.
    let limited = "ulimit -f 8000; trap '' XFSZ;";
    let test = "a_full_disk_is_an_error_and_the_store_goes_on_when_there_is_room";
    let said = child(test, &path, limited).wait_with_output().expect("our own child");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let line =
        said.lines().find(|line| line.starts_with("failed")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains(" 507 true ") && line.contains("no room on the disk"), "{line}");
    let kept: i64 = line.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a number");
    let (disk, pool) = (Arc::new(Disk::open(&path).expect("a file")), Pool::start(1).expect("one"));
    assert_eq!(disk.totals().entries, kept.unsigned_abs());
    let done = run(ask(&disk, &pool, request("more", Act::Increment(1))));
    assert!(done.is_ok(), "there is room now: {done:?}");
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("store");
    let refused = |what: &str| {
        let before = fs::read(&path).expect("a file");
        let error = Disk::open(&path).err().unwrap_or_else(|| panic!("{what} was opened"));
        assert!(error.text().contains("move it away"), "{error}");
        assert!(what == "other" || before == fs::read(&path).expect("a file"), "{what}");
    };
    fs::write(&path, "user,age\nAda,36\n").expect("a file");
    refused("a table");
    fs::write(&path, vec![7; 100_000]).expect("a file");
    refused("bytes");
    fs::remove_file(&path).expect("a file");
    let other = Database::create(&path).expect("a file");
    let write = other.begin_write().expect("a new file");
    write.open_table(TableDefinition::<u64, u64>::new("orders")).expect("a table");
    write.commit().expect("a disk");
    drop(other);
    refused("other");
    let error = Disk::open(folder.path()).err().expect("a folder");
    assert!(error.text().contains("store '"), "{error}");
}

#[test]
fn a_file_that_is_broken_anywhere_gives_errors_and_no_panic() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("store");
    let pool = Pool::start(1).expect("a thread");
    let fill = async |disk: &Arc<Disk>| {
        let acts = |number| [Act::Increment(1), Act::Set(Bytes::from(vec![0; number]))];
        for (number, act) in (0..40).flat_map(|number| acts(number).map(|act| (number, act))) {
            // A broken entry may give an error; nothing may hang.
            let _ = ask(disk, &pool, request(&format!("k{}", number % 7), act)).await;
        }
    };
    run(fill(&Arc::new(Disk::open(&path).expect("a new file"))));
    let whole = fs::read(&path).expect("a file");
    let used = whole.iter().rposition(|byte| *byte != 0).expect("something is in it");
    let mut random = fastrand::Rng::with_seed(7);
    let mut refused = 0;
    for _ in 0..60 {
        let mut broken = whole.clone();
        match random.u8(..3) {
            0 => broken.truncate(random.usize(..used)),
            1 => broken[random.usize(..used)] ^= 1 << random.u8(..8),
            _ => {
                let at = random.usize(..used);
                let end = (at + 4096).min(broken.len());
                random.fill(&mut broken[at..end]);
            }
        }
        fs::write(&path, &broken).expect("a file");
        match Disk::open(&path) {
            Ok(disk) => run(fill(&Arc::new(disk))),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0, "nothing was broken");
}

#[test]
fn workers_share_a_file_and_no_count_is_lost() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("store");
    let (disk, pool) = (Arc::new(Disk::open(&path).expect("a file")), Pool::start(2).expect("two"));
    let count = || {
        run(async {
            let add = |_| ask(&disk, &pool, request("n", Act::Increment(1)));
            assert!(join_all((0..100).map(add)).await.iter().all(Result::is_ok));
        })
    };
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(count))));
    assert_eq!(count_of(disk, &["n"]), [400]);
    assert_eq!(count_of(Arc::new(Disk::open(&path).expect("a file")), &["n"]), [400]);
}

#[test]
fn a_line_is_bounded_and_who_was_cancelled_in_it_changes_nothing() {
    let folder = TempDir::new().expect("a folder");
    let disk = Arc::new(Disk::open(&folder.path().join("store")).expect("a file"));
    let pool = Pool::start(1).expect("a thread");
    let held = lock(&disk.database);
    run(async {
        let add = |_| Box::pin(ask(&disk, &pool, request("n", Act::Increment(1))));
        let mut first = add(0);
        assert!(poll!(&mut first).is_pending());
        while !lock(&disk.line).jobs.is_empty() {
            tokio::task::yield_now().await;
        }
        let mut cancelled: Vec<_> = (0..WAITING_MAX).map(add).collect();
        for waits in &mut cancelled {
            assert!(poll!(waits).is_pending());
        }
        assert_eq!(add(0).await.expect_err("it is full").status(), 503);
        drop(cancelled);
        drop(held);
        assert!(first.await.is_ok());
        let long = Bytes::from(vec![0; WAITING_BYTES_MAX]);
        let done = ask(&disk, &pool, request("n", Act::Set(long))).await;
        assert_eq!(done.expect_err("more than may wait").status(), 503);
    });
    assert_eq!(count_of(disk, &["n"]), [1]);
}
