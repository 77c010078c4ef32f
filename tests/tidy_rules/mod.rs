//! The rules that `tests/tidy.rs` applies. They read text, not syntax: rustfmt makes the text
//! regular enough.

pub(crate) mod arrows;
pub(crate) mod names;

/// Most lines of code in a file, without comments, blank lines and inline tests.
const FILE_LINES_MAX: usize = 500;
/// Most lines of inline tests; longer ones move to `foo/tests.rs`.
const TESTS_LINES_MAX: usize = 200;
/// Most lines of a function.
const FUNCTION_LINES_MAX: usize = 70;
/// Most characters of a line of Rust.
const COLUMNS_MAX: usize = 100;
/// Most lines of the pages that everybody should read.
const PAGES: [(&str, usize); 2] = [("ARCHITECTURE.md", 305), ("STYLE.md", 150)];
/// From the graph to the bytes: what a newcomer reads first.
pub(crate) const WALK: [&str; 5] = [
    "graphs/arm/arm.yaml",
    "kinds/robot/src/ik.rs",
    "crates/core/src/cycle/executor.rs",
    "crates/link/src/latest.rs",
    "kinds/robot/src/drives/mod.rs",
];
/// Most lines of code of the walk.
pub(crate) const WALK_LINES_MAX: usize = 800;
/// Where unsafe code is allowed. The fuzz target makes the memory of a link. A library in C writes
/// through pointers. Below the guest nothing else could do this work.
const UNSAFE: [&str; 6] = [
    "crates/link/",
    "crates/core/src/sys",
    "kinds/ffmpeg/src/",
    "fuzz/fuzz_targets/region.rs",
    "guest/rtos/",
    "guest/trials/",
];
/// Files that may use the lab: the lab itself, the rivals in its harness, and the commands that
/// offer it.
const LAB: [&str; 7] = [
    "crates/lab/",
    "rivals/",
    "src/advise.rs",
    "src/lab.rs",
    "src/lab/",
    "src/drill.rs",
    "src/drill/",
];
/// These files contain the words that they forbid.
const SELF: &str = "tests/tidy";

/// A word that we do not use, because we have another word for the thing.
pub(crate) struct Word {
    /// In the singular, lower case.
    pub(crate) word: &'static str,
    /// The word to use instead.
    instead: &'static str,
    /// Files or folders (with a slash at the end) where it means something else, and what it means
    /// there.
    pub(crate) exceptions: &'static [(&'static str, &'static str)],
}

const fn word(word: &'static str, instead: &'static str) -> Word {
    Word { word, instead, exceptions: &[] }
}

/// The synonyms of ARCHITECTURE.md that have no second honest meaning here.
pub(crate) const WORDS: &[Word] = &[
    Word {
        word: "tick",
        instead: "cycle",
        exceptions: &[
            ("crates/core/src/clock.rs", "of the time stamp counter"),
            ("crates/carve-out/src/lib.rs", "FreeRTOS's word for what its clock counts"),
            ("guest/rtos/src/agent.rs", "FreeRTOS's word for what its clock counts"),
            ("guest/rtos/src/kernel.rs", "FreeRTOS's word for what its clock counts"),
            ("guest/rtos/src/run.rs", "FreeRTOS's word for what its clock counts"),
        ],
    },
    Word {
        word: "task",
        instead: "node",
        exceptions: &[
            ("guest/rtos/src/agent.rs", "FreeRTOS's word for a thread"),
            ("guest/rtos/src/bells.rs", "FreeRTOS's word for a thread"),
            ("guest/rtos/src/kernel.rs", "FreeRTOS's word for a thread"),
            ("src/guest/commands.rs", "what the tester of the paper says for a node"),
        ],
    },
    word("operator", "node"),
    word("component", "node"),
    Word {
        word: "pin",
        instead: "port",
        exceptions: &[("crates/link/benches/layouts.rs", "the verb: a thread to a CPU")],
    },
    Word {
        word: "channel",
        instead: "link",
        exceptions: &[
            ("crates/recording/src/mend.rs", "MCAP's word for a topic"),
            ("crates/recording/src/recording.rs", "MCAP's word for a topic"),
            ("crates/recording/src/merge.rs", "MCAP's word for a topic"),
            ("crates/recording/src/merge/", "MCAP's word for a topic"),
            ("crates/recording/src/replay/player.rs", "MCAP's word for a topic"),
            ("crates/recording/src/replay/tests.rs", "MCAP's word for a topic"),
            ("crates/recording/src/summary.rs", "MCAP's word for a topic"),
            ("crates/recording/src/tests.rs", "MCAP's word for a topic"),
            ("crates/recording/src/writer.rs", "MCAP's word for a topic"),
            ("crates/scope/src/export.rs", "MCAP's word for a topic"),
            ("crates/runtime/src/domain/realtime.rs", "std::sync::mpsc, outside the cycle"),
            ("crates/runtime/src/domain/service.rs", "std::sync::mpsc, outside the cycle"),
            ("crates/flow/src/crew/reload.rs", "std::sync::mpsc, outside flows"),
            ("src/run/edits.rs", "std::sync::mpsc"),
            ("kinds/ffmpeg/", "of sound: left or right"),
            ("kinds/media/src/sound.rs", "of sound: left or right"),
            ("kinds/services/src/player/", "of sound: left or right; std::sync::mpsc"),
            ("rivals/src/rings.rs", "the names of two rivals and a function of a third"),
        ],
    },
    Word {
        word: "edge",
        instead: "link",
        exceptions: &[
            ("kinds/ethercat/src/cia402.rs", "of a bit, in the standard"),
            ("kinds/ethercat/src/cia402/tests.rs", "of a bit, in the standard"),
        ],
    },
    Word {
        word: "sample",
        instead: "message",
        exceptions: &[
            ("kinds/ffmpeg/", "of sound"),
            ("kinds/media/src/", "of sound, and of a plane of a picture"),
            ("kinds/pictures/src/picture/jpeg.rs", "of a plane of a picture"),
            ("kinds/services/src/player/", "of sound"),
        ],
    },
    word("topology", "graph"),
    word("daemon", "supervisor"),
    Word {
        word: "metric",
        instead: "counter",
        exceptions: &[
            ("kinds/services/src/monitor/exposition.rs", "a name of Prometheus' format"),
            ("kinds/services/src/monitor/figures/standing.rs", "a name of its library"),
            ("kinds/services/src/monitor/figures/tests.rs", "a name of Prometheus' format"),
            ("kinds/services/tests/monitor/readers.rs", "a name of Prometheus' format"),
            ("tests/cli/flow_figures.rs", "a name of Prometheus' format"),
        ],
    },
    word("keepalive", "heartbeat"),
    word("wcet", "execution time (observed)"),
    word("util", "the thing's own name"),
    word("utils", "the thing's own name"),
    word("helper", "the thing's own name"),
    word("misc", "the thing's own name"),
    Word {
        word: "common",
        instead: "the thing's own name",
        exceptions: &[
            ("kinds/flows/src/script/expression.rs", "a module of the crate cel"),
            ("kinds/zenoh/examples/fleet.rs", "the name in a certificate's subject"),
            ("kinds/zenoh/src/certificate.rs", "the name in a certificate's subject"),
            ("kinds/zenoh/src/configuration.rs", "the name in a certificate's subject"),
            ("kinds/zenoh/tests/mirror/tls.rs", "the name in a certificate's subject"),
        ],
    },
    Word {
        word: "manager",
        instead: "the thing's own name",
        exceptions: &[("kinds/robot/src/drives/mod.rs", "EtherCAT's sync manager")],
    },
];

/// Names in the standard library and in crates that contain such a word: we cannot change them.
const FOREIGN: [&str; 28] = [
    "container-manager",
    "daemon-reload",
    "ChannelBinding",
    "channel_binding",
    "mpsc::channel",
    "oneshot::channel",
    "watch::channel",
    "unbounded_channel",
    "as_pin_mut",
    "std::pin::{Pin, pin}",
    "std::pin::pin",
    "std::pin",
    "Box::pin",
    "Pin",
    "pin!(",
    "std::task",
    "tokio::task",
    "sync_channel",
    "http_body_util",
    "hyper_util",
    "futures_util",
    "tokio_util",
    "ffmpeg_next::util",
    "zenoh::sample::Locality",
    "zenoh::sample::Sample",
    "max_samples",
    "sample_miss_detection",
    // A folder in /proc.
    "/task",
];

/// Marks of unfinished work.
const UNDONE: [&str; 6] = ["TODO", "FIXME", "XXX", "dbg!", "todo!", "unimplemented!"];

/// A file of the repository.
pub(crate) struct File {
    /// From the root, with slashes.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn names_what_it_forbids(&self) -> bool {
        self.path.starts_with(SELF)
    }

    fn wrong(&self, line: usize, what: impl std::fmt::Display) -> String {
        format!("{}:{line}: {what}", self.path)
    }

    /// An error if the file has more such lines than allowed.
    fn at_most(&self, line: usize, lines: usize, max: usize, what: &str) -> Vec<String> {
        let wrong = || self.wrong(line, format!("{lines} lines{what}, at most {max}"));
        (lines > max).then(wrong).into_iter().collect()
    }

    /// Whether it is this file, or is anywhere in this folder. The name of a folder ends with a
    /// slash.
    pub(crate) fn is_at(&self, place: &str) -> bool {
        self.path == place || place.ends_with('/') && self.path.starts_with(place)
    }

    /// Whether the word is anywhere in the file or its name, outside of foreign names.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        words(&self.path).chain(words(&ours(&self.text))).any(|found| found == word)
    }
}

/// A rule.
pub(crate) struct Rule {
    /// What must hold.
    pub(crate) name: &'static str,
    /// Returns what is wrong with a file.
    pub(crate) check: fn(&File) -> Vec<String>,
    /// Files that must be reported: path and text.
    pub(crate) violations: &'static [(&'static str, &'static str)],
    /// Enlarges the text of a violation as much as needed.
    pub(crate) grow: fn(&str) -> String,
}

fn same(text: &str) -> String {
    text.into()
}

/// All rules.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "a file says what it is for",
        check: header,
        violations: &[("src/a.rs", "fn f() {}\n"), ("src/a.rs", "")],
        grow: same,
    },
    Rule {
        name: "a file has 500 lines of code at most",
        check: file_lines,
        violations: &[("src/a.rs", "const A: u8 = 0;\n")],
        grow: |text| text.repeat(FILE_LINES_MAX + 1),
    },
    Rule {
        name: "tests over 200 lines have a file of their own",
        check: tests_lines,
        violations: &[("src/a.rs", "    fn f() {}\n")],
        grow: |text| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", text.repeat(TESTS_LINES_MAX)),
    },
    Rule {
        name: "a function has 70 lines at most",
        check: function_lines,
        violations: &[("src/a.rs", "        f();\n")],
        grow: |text| {
            format!("    pub fn f(\n    ) {{\n{}    }}\n", text.repeat(FUNCTION_LINES_MAX))
        },
    },
    Rule {
        name: "a line has 100 columns at most",
        check: columns,
        violations: &[("src/a.rs", "µ")],
        grow: |text| text.repeat(COLUMNS_MAX + 1),
    },
    Rule {
        name: "one word for one thing",
        check: synonyms,
        violations: &[
            ("src/a.rs", "//! The tick."),
            ("src/a.rs", "let on_tick = 0;"),
            ("src/a.rs", "struct TickCount;"),
            ("src/utils.rs", ""),
            ("crates/helper/src/lib.rs", ""),
        ],
        grow: same,
    },
    Rule {
        name: "unsafe code stands where it is looked for",
        check: unsafe_code,
        violations: &[
            ("src/a.rs", "    unsafe { f() }\n"),
            ("crates/runtime/src/a.rs", "unsafe impl Send for A {}\n"),
        ],
        grow: same,
    },
    Rule {
        name: "the product does not know the lab",
        check: lab,
        violations: &[
            ("src/run.rs", "use sinew_lab::Report;\n"),
            ("src/labels.rs", "    sinew_lab::rounds::interleave();\n"),
        ],
        grow: same,
    },
    Rule {
        name: "nothing is left undone",
        check: undone,
        violations: &[("src/a.rs", "// TODO: later\n"), ("README.md", "FIXME\n")],
        grow: same,
    },
    Rule {
        name: "a dependency has a reason beside it",
        check: reasons,
        violations: &[
            ("Cargo.toml", "# Why.\n[package]\n\n[dependencies]\nclap = \"4\"\n"),
            ("crates/a/Cargo.toml", "[target.'cfg(unix)'.dev-dependencies]\nlibc = \"0.2\"\n"),
            ("Cargo.toml", "[workspace.dependencies]\n# Why.\na = \"1\"\nb = \"1\"\n"),
            ("Cargo.toml", "[dependencies.clap]\nversion = \"4\"\n"),
        ],
        grow: same,
    },
    Rule {
        name: "the pages that everybody reads stay short",
        check: pages,
        violations: &[("ARCHITECTURE.md", "a\n"), ("STYLE.md", "a\n")],
        grow: |text| text.repeat(306),
    },
];

fn header(file: &File) -> Vec<String> {
    match file.is_rust() && !file.text.starts_with("//!") {
        true => vec![file.wrong(1, "expected a first line of //! that says what the file is for")],
        false => vec![],
    }
}

fn file_lines(file: &File) -> Vec<String> {
    let lines = if file.is_rust() { code_lines(&file.text).len() } else { 0 };
    file.at_most(1, lines, FILE_LINES_MAX, " of code (split the file)")
}

fn tests_lines(file: &File) -> Vec<String> {
    let (start, lines) = if file.is_rust() { inline_tests(&file.text) } else { (0, 0) };
    file.at_most(start + 1, lines, TESTS_LINES_MAX, " of tests (move them to tests.rs)")
}

fn function_lines(file: &File) -> Vec<String> {
    if !file.is_rust() {
        return vec![];
    }
    let lines: Vec<_> = file.text.lines().collect();
    let mut wrong = vec![];
    for start in (0..lines.len()).filter(|&i| is_function(lines[i])) {
        let indent = &lines[start][..lines[start].len() - lines[start].trim_start().len()];
        let opening = lines[start..].iter().position(|line| line.ends_with(['{', ';', '}']));
        let Some(opening) = opening.filter(|&i| lines[start + i].ends_with('{')) else { continue };
        let closing = lines[start + opening + 1..]
            .iter()
            .position(|line| line.strip_prefix(indent).is_some_and(|rest| rest.starts_with('}')));
        let length = opening + 2 + closing.unwrap_or_default();
        wrong.extend(file.at_most(start + 1, length, FUNCTION_LINES_MAX, " of a function"));
    }
    wrong
}

fn columns(file: &File) -> Vec<String> {
    let long = |(i, line): (usize, &str)| {
        let columns = line.chars().count();
        let what = || format!("{columns} columns, at most {COLUMNS_MAX}");
        (columns > COLUMNS_MAX).then(|| file.wrong(i + 1, what()))
    };
    let lines = file.text.lines().enumerate();
    if file.is_rust() { lines.filter_map(long).collect() } else { vec![] }
}

fn synonyms(file: &File) -> Vec<String> {
    if !file.is_rust() || file.names_what_it_forbids() {
        return vec![];
    }
    let mut wrong = vec![];
    let lines = std::iter::once(file.path.as_str()).chain(file.text.lines());
    for (i, line) in lines.enumerate() {
        for found in words(&ours(line)) {
            let banned = WORDS.iter().find(|word| word.word == found);
            let banned = banned.filter(|word| word.exceptions.iter().all(|row| !file.is_at(row.0)));
            if let Some(Word { word, instead, .. }) = banned {
                wrong.push(file.wrong(i, format!("'{word}'; we say {instead}")));
            }
        }
    }
    wrong
}

/// A line without foreign names.
fn ours(line: &str) -> String {
    FOREIGN.iter().fold(line.to_owned(), |line, name| line.replace(name, ""))
}

fn unsafe_code(file: &File) -> Vec<String> {
    if !file.is_rust() || UNSAFE.iter().any(|place| file.path.starts_with(place)) {
        return vec![];
    }
    let has = |line: &str| {
        let code = without_text(line);
        code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
    };
    let lines = file.text.lines().enumerate().filter(|(_, line)| has(line));
    lines.map(|(i, _)| file.wrong(i + 1, format!("unsafe outside {UNSAFE:?}"))).collect()
}

fn lab(file: &File) -> Vec<String> {
    if !file.is_rust() || LAB.iter().any(|place| file.path.starts_with(place)) {
        return vec![];
    }
    let lines = file.text.lines().enumerate();
    let lines = lines.filter(|(_, line)| without_text(line).contains("sinew_lab"));
    lines.map(|(i, _)| file.wrong(i + 1, format!("the lab outside {LAB:?}"))).collect()
}

fn undone(file: &File) -> Vec<String> {
    if file.names_what_it_forbids() {
        return vec![];
    }
    let mut wrong = vec![];
    for (i, line) in file.text.lines().enumerate() {
        let has = |text: &str| match text.chars().all(char::is_alphabetic) {
            true => line.split(|c: char| !c.is_alphanumeric()).any(|word| word == text),
            false => line.contains(text),
        };
        let found = UNDONE.iter().filter(|text| has(text));
        wrong.extend(
            found.map(|text| file.wrong(i + 1, format!("'{text}': do it, or open an issue"))),
        );
    }
    wrong
}

/// Checks for a comment above a dependency, or above the section if the section has only this
/// dependency. For dependencies of the workspace the reason is in the workspace's file. Our own
/// crates need none.
fn reasons(file: &File) -> Vec<String> {
    if !file.path.ends_with("Cargo.toml") {
        return vec![];
    }
    let mut wrong = vec![];
    let (mut depends, mut reason) = (false, false);
    for (i, line) in file.text.lines().enumerate() {
        if line.starts_with('#') {
            reason = true;
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            depends = section.ends_with("dependencies");
            if section.contains("dependencies.") {
                wrong.push(file.wrong(i + 1, "write the dependency as one line below its reason"));
            }
            continue;
        }
        let ours = line.starts_with("sinew") && line.contains("path = ");
        let elsewhere = line.contains(".workspace = true");
        if depends && line.contains('=') && !reason && !ours && !elsewhere {
            wrong.push(file.wrong(i + 1, "expected the reason for it in a comment above"));
        }
        reason = false;
    }
    wrong
}

fn pages(file: &File) -> Vec<String> {
    let max = PAGES.iter().find(|(path, _)| file.path == *path).map_or(usize::MAX, |page| page.1);
    file.at_most(1, file.text.lines().count(), max, "")
}

/// The lines that are neither blank nor comments nor inline tests.
pub(crate) fn code_lines(text: &str) -> Vec<&str> {
    let (start, tests) = inline_tests(text);
    let outside = text.lines().enumerate().filter(|(i, _)| !(start..start + tests).contains(i));
    let is_code = |line: &&str| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with("//") && !line.starts_with("# ")
    };
    outside.map(|(_, line)| line).filter(is_code).collect()
}

/// First line (from 0) and number of lines of `mod tests { ... }`.
fn inline_tests(text: &str) -> (usize, usize) {
    let lines: Vec<_> = text.lines().collect();
    let Some(start) = lines.iter().position(|line| *line == "mod tests {") else { return (0, 0) };
    let length = lines[start..].iter().position(|line| *line == "}").map_or(0, |i| i + 1);
    (start, length)
}

fn is_function(line: &str) -> bool {
    let before = line.trim_start().split("fn ").next().unwrap_or_default();
    let modifier = |word: &str| {
        word.starts_with("pub") || ["const", "async", "unsafe", "extern", "\"C\""].contains(&word)
    };
    line.contains("fn ") && before.split_whitespace().all(modifier)
}

/// The code of a line, without strings and comments.
fn without_text(line: &str) -> String {
    let mut code = String::new();
    let (mut in_text, mut previous) = (false, ' ');
    for (i, c) in line.char_indices() {
        if c == '"' && previous != '\\' && previous != '\'' {
            in_text = !in_text;
        } else if !in_text && line[i..].starts_with("//") {
            break;
        } else if !in_text {
            code.push(c);
        }
        previous = c;
    }
    code
}

/// The words of a text in lower case. Names are split: `on_tick` and `OnTick` are two words.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).flat_map(|name| {
        let chars: Vec<_> = name.chars().collect();
        let begins = |i: usize| i == 0 || (chars[i].is_uppercase() && chars[i - 1].is_lowercase());
        let starts: Vec<_> = (0..chars.len()).filter(|&i| begins(i)).chain([chars.len()]).collect();
        let word =
            |pair: &[usize]| chars[pair[0]..pair[1]].iter().collect::<String>().to_lowercase();
        starts.windows(2).map(word).collect::<Vec<_>>()
    })
}
