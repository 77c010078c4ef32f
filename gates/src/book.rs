//! The file of figures: how many instructions each verb takes, with which tools they were counted,
//! and the reason for each figure.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde::Deserialize;

/// What must be the same so that the difference of two counts comes from the program alone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tools {
    pub(crate) compiler: String,
    pub(crate) valgrind: String,
    pub(crate) libc: String,
    pub(crate) machine: String,
}

impl Display for Tools {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Tools { compiler, valgrind, libc, machine } = self;
        write!(f, "{compiler}; {valgrind}; {libc}; {machine}")
    }
}

/// A verb's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Instructions of all repetitions of the verb.
    pub(crate) instructions: u64,
    /// The reason for this figure.
    pub(crate) why: String,
}

/// The whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Book {
    pub(crate) tools: Tools,
    pub(crate) verbs: BTreeMap<String, Row>,
}

/// The file's content as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "about")]
    _about: String,
    tools: Tools,
    verbs: Vec<WrittenRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRow {
    verb: String,
    instructions: u64,
    why: String,
}

const ABOUT: &str = "instructions of a thousand of each verb (of a plan: a thousand nodes); \
                     docs/gate.md says how a new figure gets in here: with its reason";

impl Book {
    /// Reads the file's text.
    ///
    /// # Errors
    /// What is wrong with the text, and in which line.
    pub(crate) fn read(text: &str) -> Result<Book, String> {
        let written: Written = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut verbs = BTreeMap::new();
        for WrittenRow { verb, instructions, why } in written.verbs {
            if verbs.insert(verb.clone(), Row { instructions, why }).is_some() {
                return Err(format!("'{verb}' stands there twice; take one row out"));
            }
        }
        Ok(Book { tools: written.tools, verbs })
    }

    /// The file's text: one line for each verb, so that a diff shows which verbs changed.
    pub(crate) fn write(&self) -> String {
        let Tools { compiler, valgrind, libc, machine } = &self.tools;
        let row = |(verb, Row { instructions, why }): (&String, &Row)| {
            let (verb, why) = (quoted(verb), quoted(why));
            format!(r#"    {{"verb": {verb}, "instructions": {instructions}, "why": {why}}}"#)
        };
        let verbs: Vec<_> = self.verbs.iter().map(row).collect();
        let [about, compiler, valgrind, libc, machine] =
            [ABOUT, compiler, valgrind, libc, machine].map(quoted);
        format!(
            "{{\n  \"about\": {about},\n  \"tools\": {{\n    \"compiler\": {compiler},\n    \
             \"valgrind\": {valgrind},\n    \"libc\": {libc},\n    \"machine\": {machine}\n  }},\n\
             \x20 \"verbs\": [\n{}\n  ]\n}}\n",
            verbs.join(",\n")
        )
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let row = Row { instructions: 7, why: "a \"reason\"\nin two lines".into() };
        let tools = Tools {
            compiler: "rustc 1".into(),
            valgrind: "valgrind-3".into(),
            libc: "glibc 2".into(),
            machine: "x86_64".into(),
        };
        let verbs = BTreeMap::from([("queue_send/8".to_owned(), row)]);
        let book = Book { tools, verbs };
        assert_eq!(Book::read(&book.write()), Ok(book));
    }

    #[test]
    fn a_broken_file_is_told_with_its_line() {
        const TOOLS: &str = r#"{"about": "", "tools": {"compiler": "", "valgrind": "",
            "libc": "", "machine": ""}, "verbs": ["#;
        let table = [
            (r#"{"verb": "a", "instructions": -1, "why": ""}"#, "invalid value: integer `-1`"),
            (r#"{"verb": "a", "instructions": 1}"#, "missing field `why`"),
            (r#"{"verb": "a", "instructions": 1, "why": "", "by": ""}"#, "unknown field `by`"),
            (r#"{"verb": "a", "instructions": 1, "why": ""},"#, "trailing comma"),
        ];
        for (row, expected) in table {
            let why = Book::read(&format!("{TOOLS}\n{row}]}}")).expect_err("it is broken");
            assert!(why.starts_with(expected) && why.contains(" at line 3 "), "{row}: {why}");
        }
        let row = r#"{"verb": "a", "instructions": 1, "why": ""}"#;
        let why = Book::read(&format!("{TOOLS}{row}, {row}]}}")).expect_err("it is broken");
        assert_eq!(why, "'a' stands there twice; take one row out");
        assert!(Book::read("").expect_err("it is empty").contains("line 1"));
    }
}
