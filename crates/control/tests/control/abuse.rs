//! Peers that send garbage, half of a request or nothing, peers that do not read, a thousand peers,
//! and peers of another user: none of them harms the run or another peer.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::{fs, thread};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, Rlimit, Uid, geteuid, getrlimit, setrlimit};
use sinew_control::client::Connection;
use sinew_control::status::Events;
use sinew_control::{Answer, PEERS_MAX, REQUEST_LEN_MAX, Request};

use crate::{PATIENCE, follow, read_events, served, timespec};

/// A user id that nobody has.
const SOMEBODY_ELSE: u32 = 65_533;

/// Says that a test cannot run here. With `CI=true` this is a failure.
#[expect(clippy::print_stdout, reason = "a test says so on standard output")]
fn skip(lack: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run in CI: {lack}");
    println!("skipped: {lack}");
}

fn line_of(stream: &UnixStream) -> String {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("a line");
    line
}

/// Everything that the server sends until it closes the connection.
fn rest_of(mut stream: &UnixStream) -> String {
    let mut bytes = Vec::new();
    // If the server has not read everything, the connection ends with a reset.
    let end = stream.read_to_end(&mut bytes);
    let is_end = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
    assert!(end.is_ok() || end.is_err_and(is_end), "the connection stays open");
    String::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn garbage_is_answered_and_harms_nobody() {
    served("garbage", vec![], |run| {
        let mut stream = run.connect_raw();
        for garbage in [&b"\0\xff\n"[..], b"GET / HTTP/1.1\r\n", b"\n", b"{\"sinew\":1}\n"] {
            stream.write_all(garbage).expect("sent");
            let line = line_of(&stream);
            assert!(line.contains("error") && line.contains("expected a line such as"), "{line}");
        }
        run.can_be_reached();
    });
}

#[test]
fn a_request_without_an_end_is_refused() {
    served("endless", vec![], |run| {
        let mut stream = run.connect_raw();
        stream.write_all(&[b' '; REQUEST_LEN_MAX - 1]).expect("sent");
        run.can_be_reached();
        stream.write_all(b" ").expect("sent");
        let rest = rest_of(&stream);
        assert!(rest.contains("the request is longer than 16384 bytes"), "{rest}");
        // All at once, and much more than the limit.
        let stream = run.connect_raw();
        let mut writer = stream.try_clone().expect("a descriptor");
        let sender = thread::spawn(move || writer.write_all(&vec![b'{'; 16 << 20]));
        assert!(rest_of(&stream).contains("the request is longer"));
        assert!(sender.join().expect("no panic").is_err(), "somebody read 16 MiB");
        run.can_be_reached();
    });
}

#[test]
fn half_a_request_is_waited_for_but_not_for_ever() {
    served("half", vec![], |run| {
        let (mut slow, mut never) = (run.connect_raw(), run.connect_raw());
        never.write_all(b"{\"sinew\": 1, \"requ").expect("sent");
        slow.write_all(b"{\"sinew\": 1, \"requ").expect("sent");
        run.can_be_reached();
        slow.write_all(b"est\": \"status\"}\n").expect("sent");
        assert!(line_of(&slow).contains("\"status\":"));
        let silent = run.connect_raw();
        let gone = run.connect_raw();
        drop(gone);
        for stream in [never, silent] {
            let rest = rest_of(&stream);
            assert!(rest.contains("no request within 5 s"), "{rest}");
        }
        run.can_be_reached();
    });
}

#[test]
fn a_peer_that_does_not_read_holds_up_nobody_and_is_cut_off() {
    // An answer that no socket takes at once.
    let notes = vec!["x".repeat(1 << 20); 4];
    served("unread", notes, |run| {
        let mut stream = run.connect_raw();
        stream.write_all(b"{\"sinew\": 1, \"request\": \"status\"}\n").expect("sent");
        run.can_be_reached();
        let mut other = run.connect();
        other.send(&Request::Log { after: 0, follow: true }).expect("sent");
        let mut end = [PollFd::new(&stream, PollFlags::empty())];
        let ended = poll(&mut end, Some(&timespec(PATIENCE)));
        assert_eq!(ended, Ok(1), "nobody cut it off");
        let rest = rest_of(&stream);
        assert!(!rest.is_empty() && !rest.ends_with('\n'), "{} bytes came", rest.len());
        run.can_be_reached();
        // A peer that follows a log in which nothing happens is not slow.
        run.add(1, "at last");
        assert_eq!(read_events(&mut other, 1), (vec![1], 0));
    });
}

#[test]
fn a_slow_reader_is_told_what_it_missed() {
    served("missed", vec![], |run| {
        let mut connection = run.connect();
        connection.send(&Request::Log { after: 0, follow: true }).expect("sent");
        let all = 3 * Events::KEPT_MAX;
        for _ in 0..all / 100 {
            run.add(100, &"x".repeat(Events::TEXT_MAX));
            // Gives the server a turn in between.
            run.can_be_reached();
        }
        let (numbers, missed) = read_events(&mut connection, all as u64);
        assert!(missed > 0 && numbers.is_sorted());
        assert_eq!(numbers.len() as u64 + missed, all as u64);
    });
}

#[test]
fn connections_that_stay_and_a_thousand_idle_ones_keep_nobody_out() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = 2048;
    if limit.maximum.is_some_and(|maximum| maximum < wanted) {
        return skip("this needs 2048 descriptors; raise 'ulimit -Hn'");
    }
    if limit.current.is_some_and(|current| current < wanted) {
        let limit = Rlimit { current: Some(wanted), ..limit };
        setrlimit(Resource::Nofile, limit).expect("within the hard limit");
    }
    served("thousand", vec![], |run| {
        // These peers may stay: they follow the log.
        let log = Request::Log { after: 0, follow: true };
        let admit = |_| {
            let mut peer = run.connect();
            follow(&mut peer, &log);
            // Makes sure that the server has read the request.
            run.can_be_reached();
            peer
        };
        let mut admitted: Vec<_> = (0..PEERS_MAX).map(admit).collect();
        // A further peer may neither stay nor ask again and again; but it may ask once.
        let mut further = run.connect();
        let answer = further.ask(&log).expect("a refusal");
        let refusal = "this run has 16 lasting connections, the limit";
        assert!(matches!(&answer, Answer::Error(text) if text.contains(refusal)), "{answer:?}");
        let mut further = run.connect();
        assert!(matches!(further.ask(&Request::Status {}), Ok(Answer::Status(_))));
        let answer = further.ask(&Request::Status {}).expect("a refusal");
        assert!(matches!(&answer, Answer::Error(text) if text.contains(refusal)), "{answer:?}");
        // Peers that say nothing do not keep others out: a new one takes their place.
        let idle: Vec<_> = (0..1000).map(|_| run.connect_raw()).collect();
        run.can_be_reached();
        let mut orders = run.connect();
        assert!(matches!(orders.ask(&Request::Stop {}), Ok(Answer::Done { .. })));
        // Peers that have given an order may wait for its result. They displace each other.
        let more: Vec<_> = (0..10).map(|_| run.connect_raw()).collect();
        run.can_be_reached();
        assert!(matches!(orders.ask(&Request::Status {}), Ok(Answer::Status(_))));
        drop(more);
        let displaced = "this connection was closed for newer ones: 4 at most are open; try again";
        let told = idle.iter().filter(|stream| rest_of(stream).contains(displaced)).count();
        assert!(told >= 990, "{told} of 1000 were told why");
        run.add(1, "to all");
        for peer in &mut admitted {
            assert_eq!(read_events(peer, 1), (vec![1], 0));
        }
        drop(admitted);
        // Asks again until the server has noticed that they are gone.
        let begun = std::time::Instant::now();
        loop {
            let mut stays = run.connect();
            let [_, again] = [(); 2].map(|()| stays.ask(&Request::Status {}));
            if matches!(again, Ok(Answer::Status(_))) {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "no place was given back");
        }
    });
}

#[test]
fn one_who_stays_no_more_makes_no_room_for_others() {
    served("no_more", vec![], |run| {
        let mut one = run.connect();
        let mut asks = || assert!(matches!(one.ask(&Request::Status {}), Ok(Answer::Status(_))));
        (0..2).for_each(|_| asks());
        let first: Vec<_> = (0..4).map(|_| run.connect_raw()).collect();
        // Makes sure that the server has accepted them.
        asks();
        // A peer that gives an order gives up its place among those that stay: one peer too many
        // passes.
        assert!(matches!(one.ask(&Request::Stop {}), Ok(Answer::Done { .. })));
        let idle: Vec<_> = (0..100).map(|_| run.connect_raw()).collect();
        run.can_be_reached();
        let told = first.iter().chain(&idle).filter(|stream| rest_of(stream).contains("newer"));
        assert!(told.count() >= 100, "there is room for four at most");
    });
}

#[test]
fn another_user_is_turned_away() {
    if !geteuid().is_root() {
        return skip("only root can become another user");
    }
    served("user", vec![], |run| {
        // The folder is open to all: only the check of the user id keeps others out.
        let folder = run.socket.parent().expect("a folder");
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("chmod");
        fs::set_permissions(&run.socket, fs::Permissions::from_mode(0o666)).expect("chmod");
        let socket = run.socket.clone();
        let stranger = thread::spawn(move || {
            let user = Uid::from_raw(SOMEBODY_ELSE);
            // For this thread only.
            rustix::thread::set_thread_res_uid(user, user, user).expect("root may");
            let refused = Connection::open(&socket).expect_err("not its run").to_string();
            let mut stream = UnixStream::connect(&socket).expect("everything is open");
            // The server may have closed the connection already.
            let _ = stream.write_all(b"{\"sinew\": 1, \"request\": \"stop\"}\n");
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            (refused, rest_of(&stream))
        });
        let (refused, line) = stranger.join().expect("no panic");
        let expected = "this run belongs to user 0, you are user 65533; ask as user 0";
        assert!(line.contains(expected) && !line.contains("done"), "{line}");
        assert!(refused.contains("is of user 0, expected 65533"), "{refused}");
        run.can_be_reached();
    });
}
