//! The table of the tester's commands.

use std::time::Duration;

use serde_json::json;
use sinew_carve_out::{MadeBy, SharedWish};
use sinew_spec::suggest;

use super::tester::{Answer, Said, Tester, Wrong};
use crate::duration::duration;

/// A command.
struct Row {
    /// Its first words.
    words: &'static str,
    /// What follows them.
    usage: &'static str,
    /// What it does.
    doc: &'static str,
    /// The least and the greatest number of words that follow.
    count: (usize, usize),
    act: fn(&mut Tester, &[&str]) -> Answer,
}

/// Most words of a text, or of the arguments of a call.
const CALL_WORDS_MAX: usize = 32;

const ROWS: &[Row] = &[
    row("open", "", "start the guest; show the addresses of the memory", (0, 0), |it, _| it.open()),
    row("run", "", "run its nodes", (0, 0), |it, _| it.run()),
    row(
        "test",
        "BYTES",
        "send a test pattern through the memory, both ways",
        (1, 1),
        |it, words| it.test(number(words[0])?),
    ),
    row("wait", "DURATION", "wait this long; the guest goes on", (1, 1), |it, words| {
        it.wait(duration(words[0]).map_err(Wrong::Request)?)
    }),
    row("shm list", "", "list everything with a name, and who holds it", (0, 0), |it, _| it.list()),
    row(
        "shm get",
        "NAME BYTES [linux|guest]",
        "get a region; create it if missing",
        (2, 3),
        |it, words| {
            let wish = SharedWish::region(number(words[1])?, 0);
            it.get(words[0], &wish, side(words.get(2))?)
        },
    ),
    row("shm attach", "NAME [linux|guest]", "attach it; show its address", (1, 2), |it, words| {
        it.attach(words[0], side(words.get(1))?)
    }),
    row("shm detach", "NAME [linux|guest]", "detach it", (1, 2), |it, words| {
        it.detach(words[0], side(words.get(1))?)
    }),
    row("shm remove", "NAME", "remove it, if neither side holds it", (1, 1), |it, words| {
        it.remove(words[0], false)
    }),
    row("shm write", "NAME TEXT", "write to its start", (2, CALL_WORDS_MAX), |it, words| {
        it.write(words[0], &words[1..].join(" "))
    }),
    row("shm read", "NAME BYTES", "read from its start", (2, 2), |it, words| {
        it.read(words[0], number(words[1])? as usize)
    }),
    row(
        "sem get",
        "NAME TOKENS [linux|guest]",
        "get one; create it if missing",
        (2, 3),
        |it, words| {
            let wish = SharedWish::semaphore(number(words[1])?);
            it.get(words[0], &wish, side(words.get(2))?)
        },
    ),
    row("sem post", "NAME", "add a token", (1, 1), |it, words| it.post(words[0])),
    row("sem take", "NAME", "take a token", (1, 1), |it, words| it.take(words[0])),
    row("sem remove", "NAME", "detach and remove it", (1, 1), |it, words| {
        it.remove(words[0], true)
    }),
    row(
        "queue get",
        "NAME MESSAGE_BYTES CAPACITY [linux|guest]",
        "get one; create it if missing",
        (3, 4),
        |it, words| {
            let wish = SharedWish::queue(number(words[1])?, number(words[2])?, 0);
            it.get(words[0], &wish, side(words.get(3))?)
        },
    ),
    row("queue send", "NAME TEXT", "send a message", (2, CALL_WORDS_MAX), |it, words| {
        it.send(words[0], &words[1..].join(" "))
    }),
    row("queue receive", "NAME", "receive a message", (1, 1), |it, words| it.receive(words[0])),
    row("queue remove", "NAME", "detach and remove it", (1, 1), |it, words| {
        it.remove(words[0], true)
    }),
    row("node list", "", "list its nodes (also: task list)", (0, 0), |it, _| it.nodes()),
    row("node stop", "NAME", "stop one node (also: task stop)", (1, 1), |it, words| {
        it.stop_node(words[0])
    }),
    row("job list", "", "list the jobs of its image", (0, 0), |it, _| it.jobs()),
    row(
        "call",
        "JOB [NUMBER|TEXT]...",
        "run a job; show its answer",
        (1, CALL_WORDS_MAX),
        |it, words| it.call(words[0], &words[1..]),
    ),
    row("doorbell", "TIMES", "ring its doorbell", (1, 1), |it, words| {
        it.doorbell(number(words[0])?)
    }),
    row("states", "", "show the state of guest, links and letters", (0, 0), |it, _| it.states()),
    row("shutdown", "", "stop it in order", (0, 0), |it, _| it.shutdown()),
    row("quit", "", "kill it, and quit", (0, 0), |it, _| {
        it.quit();
        Ok(Said::new("bye", json!({})))
    }),
    row("help", "", "show this list", (0, 0), |_, _| Ok(help())),
];

const fn row(
    words: &'static str,
    usage: &'static str,
    doc: &'static str,
    count: (usize, usize),
    act: fn(&mut Tester, &[&str]) -> Answer,
) -> Row {
    Row { words, usage, doc, count, act }
}

/// A command with its words, parsed but not carried out.
pub(super) struct Given {
    pub(super) text: String,
    row: &'static Row,
    rest: Vec<String>,
    within: Option<Duration>,
}

impl Given {
    pub(super) fn carry_out(&self, tester: &mut Tester) -> Answer {
        let usual = tester.within;
        tester.within = self.within.unwrap_or(usual);
        let rest: Vec<&str> = self.rest.iter().map(String::as_str).collect();
        let answer = (self.row.act)(tester, &rest);
        tester.within = usual;
        answer
    }
}

/// Reads a command.
pub(super) fn parse(text: &str) -> Result<Given, String> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let mut within = None;
    if let [.., "within", time] = words[..] {
        within = Some(duration(time)?);
        words.truncate(words.len() - 2);
    }
    if words.first() == Some(&"task") {
        words[0] = "node";
    }
    let begins = |row: &&Row| {
        let first: Vec<&str> = row.words.split(' ').collect();
        words.starts_with(&first)
    };
    let Some(row) = ROWS.iter().find(begins) else {
        let name = words[..words.len().min(2)].join(" ");
        let instead = suggest(&name, ROWS.iter().map(|row| row.words));
        return Err(format!("no command '{name}'; {instead}"));
    };
    let rest = &words[row.words.split(' ').count()..];
    if !(row.count.0..=row.count.1).contains(&rest.len()) {
        return Err(format!("'{text}': expected {} {}", row.words, row.usage).trim_end().into());
    }
    let rest = rest.iter().map(|word| (*word).to_owned()).collect();
    Ok(Given { text: text.to_owned(), row, rest, within })
}

fn number(word: &str) -> Result<u32, Wrong> {
    word.parse()
        .map_err(|_| Wrong::Request(format!("'{word}' is not a number: expected 0 to 2^32-1")))
}

/// Whose allocator, or which side. Default: Linux.
fn side(word: Option<&&str>) -> Result<MadeBy, Wrong> {
    match word {
        None | Some(&"linux") => Ok(MadeBy::Linux),
        Some(&"guest") => Ok(MadeBy::Guest),
        Some(other) => Err(Wrong::Request(format!("'{other}': expected linux or guest"))),
    }
}

fn help() -> Said {
    let line = |row: &Row| {
        let call = format!("{} {}", row.words, row.usage);
        format!("{call:<52} {}\n", row.doc)
    };
    let lines: String = ROWS.iter().map(line).collect();
    let words: Vec<_> = ROWS.iter().map(|row| row.words).collect();
    let text = lines + "A command that waits may end with 'within 50ms'.";
    Said::new(text, json!({ "commands": words }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_by_its_first_words() {
        for (text, words, rest) in [
            ("open", "open", vec![]),
            ("shm get log 4096 guest", "shm get", vec!["log", "4096", "guest"]),
            ("task stop guard", "node stop", vec!["guard"]),
            ("call nap 5 within 50ms", "call", vec!["nap", "5"]),
        ] {
            let given = parse(text).expect(text);
            assert_eq!(
                (given.row.words, given.rest),
                (words, rest.into_iter().map(String::from).collect())
            );
        }
        let within = parse("sem take a within 50ms").expect("good").within;
        assert_eq!(within, Some(Duration::from_millis(50)));
    }

    #[test]
    fn what_is_no_command_is_refused_with_the_next_step() {
        let refused = |text: &str, words: &str| {
            let why = parse(text).err().expect("refused");
            assert!(why.contains(words), "expected '{words}', found '{why}'");
        };
        refused("opne", "did you mean 'open'?");
        refused("shm got a 1", "did you mean 'shm get'?");
        refused("shm get a", "expected shm get NAME BYTES [linux|guest]");
        refused("states now", "expected states");
        refused("call nap within soon", "not a duration");
    }
}
