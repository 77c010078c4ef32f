//! The control socket against its users and its abusers. The run behind it is simulated: a thread
//! that serves as a supervisor would, between waits for its descriptors.

mod abuse;

use std::fs::{self, DirBuilder};
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{Timespec, poll};
use sinew_control::client::Connection;
use sinew_control::status::{EventKind, Events, Status};
use sinew_control::{Answer, Request, Server};

/// How long a test waits for an answer. After this time the server counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

fn timespec(duration: Duration) -> Timespec {
    duration.try_into().expect("no longer than a test")
}

/// A new folder that is closed to others. It is removed with its contents.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("sinew-control-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // It may be left over from a run that was killed.
        let _ = fs::remove_dir_all(&path);
        DirBuilder::new().mode(0o700).create(&path).expect("a folder");
        Folder(path)
    }

    fn sockets(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().display().to_string()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A test that fails may have removed it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A simulated run.
struct Served {
    _folder: Folder,
    socket: PathBuf,
    events: Mutex<Events>,
    notes: Vec<String>,
}

/// Passes a run to `test`, and serves it meanwhile.
fn served(name: &str, notes: Vec<String>, test: impl FnOnce(&Served)) {
    let folder = Folder::new(name);
    let mut server = Server::open_in(&folder.0).expect("a socket");
    let socket = server.path().to_owned();
    let served = Served { _folder: folder, socket, events: Mutex::new(Events::new()), notes };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Relaxed: the flag protects no other data.
            while !is_over.load(Ordering::Relaxed) {
                served.serve(&mut server);
            }
        });
        /// Ends the server together with the test, also if the test fails.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _over = Over(&is_over);
        test(&served);
    });
}

impl Served {
    /// One pass of a supervisor.
    fn serve(&self, server: &mut Server) {
        let mut waits = Vec::new();
        server.wait_for(&mut waits);
        let timeout = timespec(Duration::from_millis(10));
        poll(&mut waits, Some(&timeout)).expect("descriptors that are open");
        for asked in server.receive() {
            assert_eq!(asked.from.process, std::process::id());
            server.answer(asked.from.id, &self.answer(asked.request));
        }
        server.send(&self.events.lock().expect("no panic"));
    }

    fn answer(&self, request: Request) -> Answer {
        match request {
            Request::Status {} => Answer::Status(Box::new(self.status())),
            Request::Stop {} => {
                let newest = self.events.lock().expect("no panic").newest();
                Answer::Done { text: "the graph stops".into(), newest }
            }
            Request::Restart { domain } => Answer::Error(format!("there is no domain '{domain}'")),
            other => unreachable!("no test asks {other:?}"),
        }
    }

    fn status(&self) -> Status {
        Status {
            graph: "made up".into(),
            pid: std::process::id(),
            notes: self.notes.clone(),
            ..Status::default()
        }
    }

    fn connect(&self) -> Connection {
        Connection::open(&self.socket).expect("a run that can be reached")
    }

    /// A raw connection, without a protocol.
    fn connect_raw(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).expect("a run that can be reached");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Checks that another client still gets what it asks for.
    fn can_be_reached(&self) {
        let answer = self.connect().ask(&Request::Status {}).expect("an answer");
        assert_eq!(answer, Answer::Status(Box::new(self.status())));
    }

    fn add(&self, count: usize, text: &str) {
        let mut events = self.events.lock().expect("no panic");
        (0..count).for_each(|_| events.add(EventKind::Note, None, text));
    }
}

/// The numbers of the events up to event `until` or the end, and how many events were missed.
fn read_events(connection: &mut Connection, until: u64) -> (Vec<u64>, u64) {
    let (mut numbers, mut missed) = (Vec::new(), 0);
    loop {
        match connection.next(Some(PATIENCE)).expect("a line") {
            Some(Answer::Event(event)) => numbers.push(event.number),
            Some(Answer::Missed(count)) => missed += count,
            Some(Answer::End(newest)) => {
                assert_eq!(newest, until);
                return (numbers, missed);
            }
            other => panic!("expected an event, found {other:?}"),
        }
        if numbers.last() == Some(&until) {
            return (numbers, missed);
        }
    }
}

#[test]
fn a_run_answers_what_it_is_asked() {
    served("asked", vec![], |run| {
        let mut connection = run.connect();
        let status = connection.ask(&Request::Status {}).expect("an answer");
        assert_eq!(status, Answer::Status(Box::new(run.status())));
        let camera = Request::Restart { domain: "camera".into() };
        let refused = connection.ask(&camera).expect("an answer");
        assert_eq!(refused, Answer::Error("there is no domain 'camera'".into()));
        let stops = connection.ask(&Request::Stop {}).expect("an answer");
        assert_eq!(stops, Answer::Done { text: "the graph stops".into(), newest: 0 });
    });
}

#[test]
fn the_log_is_read_to_its_end_or_followed() {
    served("log", vec![], |run| {
        run.add(3, "before");
        let mut connection = run.connect();
        let log = Request::Log { after: 1, follow: false };
        assert!(matches!(connection.ask(&log), Ok(Answer::Event(event)) if event.number == 2));
        assert_eq!(read_events(&mut connection, 3), (vec![3], 0));
        assert_eq!(connection.next(Some(PATIENCE)).expect("the end"), Some(Answer::End(3)));
        // The connection still works. An event number that never existed does no harm.
        let log = Request::Log { after: u64::MAX, follow: true };
        connection.ask(&Request::Status {}).expect("an answer");
        let error = connection.next(Some(Duration::ZERO)).expect_err("nothing comes");
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        follow(&mut connection, &log);
        run.add(2, "after");
        assert_eq!(read_events(&mut connection, 5), (vec![4, 5], 0));
        // A client that follows may still ask.
        let status = connection.ask(&Request::Status {}).expect("an answer");
        assert!(matches!(status, Answer::Status(_)), "{status:?}");
    });
}

/// Asks to follow. Nothing happens yet, so a second question confirms it.
fn follow(connection: &mut Connection, log: &Request) {
    connection.send(log).expect("sent");
    let status = connection.ask(&Request::Status {}).expect("an answer");
    assert!(matches!(status, Answer::Status(_)), "{status:?}");
}

#[test]
fn requests_that_come_at_once_are_answered_in_turn() {
    served("pipelined", vec![], |run| {
        let mut stream = run.connect_raw();
        let lines =
            "{\"sinew\":1,\"request\":\"stop\"}\nrubbish\n{\"sinew\":1,\"request\":\"status\"}";
        stream.write_all(lines.as_bytes()).expect("sent");
        stream.write_all(b"\n").expect("sent");
        // As `nc -N` does.
        stream.shutdown(Shutdown::Write).expect("half closed");
        let text = std::io::read_to_string(&stream).expect("UTF-8, then the end");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        let begins =
            ["{\"sinew\":1,\"done\":", "{\"sinew\":1,\"error\":", "{\"sinew\":1,\"status\":"];
        assert!(lines.iter().zip(begins).all(|(line, begin)| line.starts_with(begin)), "{text}");
    });
}

#[test]
fn a_socket_is_its_owners_alone_and_goes_with_its_run() {
    let folder = Folder::new("mode");
    let server = Server::open_in(&folder.0).expect("a socket");
    let mode = server.path().metadata().expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(folder.sockets(), [format!("{}.sock", std::process::id())]);
    drop(server);
    assert!(folder.sockets().is_empty());
}

#[test]
fn two_runs_of_one_process_have_two_sockets() {
    let folder = Folder::new("two");
    let servers = [(); 3].map(|()| Server::open_in(&folder.0).expect("a socket"));
    let pid = std::process::id();
    let expected = [format!("{pid}.sock"), format!("{pid}-1.sock"), format!("{pid}-2.sock")];
    assert_eq!(servers.each_ref().map(|server| folder.0.join(server.path())), {
        expected.map(|name| folder.0.join(name))
    });
}

#[test]
fn a_socket_of_a_killed_run_is_removed_by_the_next() {
    let folder = Folder::new("stale");
    let mut child = Command::new("true").spawn().expect("a process");
    child.wait().expect("it ends");
    let (dead, other) = (child.id(), folder.0.join("note.txt"));
    for pid in [dead, std::process::id()] {
        // Nobody listens once the listener is dropped, and the file remains.
        UnixListener::bind(folder.0.join(format!("{pid}.sock"))).expect("a socket");
    }
    fs::write(&other, "").expect("a file");
    let server = Server::open_in(&folder.0).expect("a socket");
    let dead = folder.0.join(format!("{dead}.sock"));
    assert!(!dead.exists(), "the socket of a process that is gone");
    assert!(other.exists() && server.path().exists());
    // A process with that number exists, so it cannot be told whose socket it was.
    assert!(server.path().ends_with(format!("{}-1.sock", std::process::id())));
}

#[test]
fn a_folder_without_room_for_a_name_is_refused_with_a_remedy() {
    let folder = Folder::new(&"x".repeat(100));
    let error = Server::open_in(&folder.0).err().expect("too long a path").to_string();
    assert!(error.contains("SUN_LEN") && error.contains("set XDG_RUNTIME_DIR"), "{error}");
    let error = Server::open_in(Path::new("/no/such/folder")).err().expect("none").to_string();
    assert!(error.contains("cannot make the control socket /no/such/folder"), "{error}");
}
