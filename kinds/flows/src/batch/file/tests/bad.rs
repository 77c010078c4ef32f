//! Bad files: gone, binary, one line without an end, cut while they are read; and a checkpoint for
//! which there is no room.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use super::*;

/// An element that takes its time, so that something can happen to the file meanwhile.
const SLOW: &str = "kind: sleep, duration: 20ms";

fn all(folder: &Path, parameters: &str) -> Reply {
    reply(folder, &graph(parameters, "kind: nop"))
}

fn refused(reply: Reply, status: u16, expected: &str) {
    let error = reply.expect_err(expected);
    assert!(error.status() == status && error.text().contains(expected), "{error:?}");
}

#[test]
fn ten_gigabytes_of_one_line_are_refused_without_being_held() {
    let folder = folder("");
    let file = File::create(folder.path().join("data")).expect("a file");
    file.set_len(10 << 30).expect("a file with a hole");
    for format in ["lines", "csv", "csv, header: false", "ndjson", "whole"] {
        let reply = all(folder.path(), &format!("as: {format}, line_size_max: 64KiB"));
        refused(reply, 413, "longer than 65536 bytes; raise line_size_max");
    }
}

#[test]
fn what_is_no_text_is_rejected_line_by_line() {
    let mut bytes: Vec<u8> = (0..=255).collect();
    bytes.extend(b"\nplain\n");
    let folder = folder(bytes);
    // Byte 10 ends a line: the bytes before it are text, those after it are not.
    let rejected = "
- kind: file
  name: f
  path: data
  ports: {out: [{name: n, port: in}], rejected: [{name: r, port: in}]}
- {kind: nop, name: n}
- {kind: append, name: r, path: rejects, value: '{{ packet.number }}'}
";
    assert_eq!(reply(folder.path(), rejected), counts(3, 2, 1));
    assert_eq!(fs::read_to_string(folder.path().join("rejects")).expect("rejects"), "2\n");
    let packet = reply(folder.path(), &graph("as: whole", "kind: nop"));
    assert_eq!(packet, counts(1, 1, 0), "as a whole it is bytes");
    for format in ["csv", "ndjson"] {
        assert!(all(folder.path(), &format!("as: {format}")).is_err(), "{format}");
    }
}

#[test]
fn a_file_that_is_cut_or_vanishes_while_it_is_read_is_told() {
    // Longer than the part that is read ahead.
    let text = format!("{}\n", "x".repeat(99)).repeat(5000);
    let next = "kind: append, path: seen, value: x, ports: {out: [{name: slow, port: in}]}}\n\
                - {name: slow, kind: sleep, duration: 20ms";
    for is_cut in [true, false] {
        let folder = folder(&text);
        let (data, seen) = (folder.path().join("data"), folder.path().join("seen"));
        let happens = std::thread::spawn(move || {
            while !seen.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            match is_cut {
                true => File::options().write(true).open(&data).and_then(|it| it.set_len(5)),
                false => fs::remove_file(&data),
            }
        });
        let reply = reply(folder.path(), &graph("concurrency: 100", next));
        happens.join().expect("no panic").expect("it was there");
        match is_cut {
            true => refused(reply, 500, "has become shorter, 5 bytes, while it was read"),
            // A reader that has the file open still gets all of it.
            false => assert_eq!(reply, counts(5000, 5000, 0)),
        }
    }
}

#[test]
fn what_grows_while_it_is_read_is_read_to_where_its_end_is_then() {
    let folder = folder("line\n".repeat(1000));
    let data = folder.path().join("data");
    let grows = format!(
        "{}- {{kind: append, name: next, path: data, as: text, value: more}}",
        graph("as: lines", SLOW).replace("name: next, port: in", "name: once, port: in").replace(
            "- {name: next, kind: sleep, duration: 20ms}",
            "- kind: if\n  name: once\n  when: packet == 'first'\n  \
             ports: {'out[0]': [{name: next, port: in}]}"
        )
    );
    fs::write(&data, format!("first\n{}", "line\n".repeat(100_000))).expect("a file");
    assert_eq!(reply(folder.path(), &grows), counts(100_002, 100_002, 0));
}

#[test]
fn what_is_no_file_is_refused_and_nobody_waits_for_it() {
    let folder = folder("");
    fs::remove_file(folder.path().join("data")).expect("it is there");
    let data = folder.path().join("data");
    refused(all(folder.path(), "as: lines"), 404, "No such file");
    symlink("data", &data).expect("a link");
    refused(all(folder.path(), "as: lines"), 500, "symbolic links");
    fs::remove_file(&data).expect("it is there");
    rustix::fs::mkfifoat(rustix::fs::CWD, &data, rustix::fs::Mode::RUSR).expect("a pipe");
    refused(all(folder.path(), "as: lines"), 400, "is not a file");
    fs::remove_file(&data).expect("it is there");
    symlink("/dev/zero", &data).expect("a link");
    refused(all(folder.path(), "as: lines"), 400, "is not a file");
}

#[test]
fn a_checkpoint_without_room_or_place_fails_the_whole() {
    let folder = folder("a\n");
    let with = |checkpoint: &str| all(folder.path(), &format!("checkpoint: {checkpoint}"));
    refused(with("none/mark"), 500, "cannot be written: No such file");
    refused(with("."), 500, "is not a checkpoint that can be read: Is a directory");
    symlink("/dev/full", folder.path().join("mark.new")).expect("a link");
    refused(with("mark"), 500, "cannot be written: No space left");
    assert!(!folder.path().join("mark").exists(), "there is no half of one");
}

#[test]
fn a_checkpoint_of_nonsense_is_refused() {
    let folder = folder("a\n");
    let mark = folder.path().join("mark");
    for text in ["", "{}", "null", "[1,2]", "\0\0\0", "{\"sinew_checkpoint\":1}"] {
        fs::write(&mark, text).expect("a file");
        refused(
            all(folder.path(), "checkpoint: mark"),
            500,
            "is not a checkpoint that can be read",
        );
    }
    assert_eq!(fs::remove_file(&mark).ok().map(|()| all(folder.path(), "checkpoint: mark")), {
        Some(counts(1, 1, 0))
    });
    let good = fs::read_to_string(&mark).expect("a checkpoint");
    for (from, to) in [
        ("\"sinew_checkpoint\":1", "\"sinew_checkpoint\":2"),
        ("\"offset\":2", "\"offset\":-2"),
        ("\"offset\":2", "\"offset\":1e30"),
        ("\"file_at\":0", "\"file_at\":7"),
        ("\"head_len\":2", "\"head_len\":99999999"),
    ] {
        assert!(good.contains(from), "{good}");
        fs::write(&mark, good.replace(from, to)).expect("a file");
        assert!(all(folder.path(), "checkpoint: mark").is_err(), "{to}");
    }
}
