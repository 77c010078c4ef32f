//! Counts the instructions of the hot verbs and compares them with `gates/instructions.json`. Exit
//! status: 0 nothing rings, 1 something rings or nothing could be shown, 2 bad request.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program of its own: the table and what rings are what it is for"
)]

mod book;
mod compare;
mod count;
mod verbs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{fs, io, slice};

use clap::{Parser, value_parser};

use book::Book;
use compare::{Counts, Finding, blessed, change, compare, unexplained};
use verbs::{VERBS, Verb};

/// Count the instructions of the hot verbs; fail if one takes more than 2 % more than the file says
#[derive(Parser)]
#[command(name = "sinew-gates")]
struct Args {
    /// Write the figures that have changed into the file, each with this reason
    #[arg(long, value_name = "REASON", conflicts_with_all = ["only", "repeats", "mistaken"])]
    bless: Option<String>,
    /// Only verbs whose names begin so, such as queue_send; may be given several times
    #[arg(long, value_name = "BEGINNING")]
    only: Vec<String>,
    /// Count so often, compare each time, and show how far the counts lie apart
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..))]
    repeats: u32,
    /// The file of figures [default: gates/instructions.json]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Does this verb, in a process that callgrind watches
    #[arg(long, value_name = "VERB", hide = true)]
    count: Option<String>,
    /// With the mistake around it that the verb has
    #[arg(long, hide = true)]
    mistaken: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(name) = &args.count {
        return do_verb(name, args.mistaken);
    }
    let is_asked = |verb: &&Verb| {
        args.only.is_empty() || args.only.iter().any(|only| verb.name.starts_with(only.as_str()))
    };
    let verbs: Vec<_> = VERBS.iter().filter(is_asked).collect();
    let bad = if verbs.is_empty() {
        let names: Vec<_> = VERBS.iter().map(|verb| verb.name).collect();
        Some(format!("--only: no verb begins so; there are {}", names.join(", ")))
    } else {
        args.bless.as_deref().and_then(|reason| compare::check(reason).err())
    };
    if let Some(why) = bad {
        eprintln!("error: {why}");
        return ExitCode::from(2);
    }
    match gate(&args, &verbs) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Carries out a verb while callgrind counts.
fn do_verb(name: &str, mistaken: bool) -> ExitCode {
    let Some(verb) = VERBS.iter().find(|verb| verb.name == name) else {
        eprintln!("error: no verb '{name}'");
        return ExitCode::from(2);
    };
    let mut work = verb.mistaken.filter(|_| mistaken).unwrap_or(verb.make)();
    count::counted_verb(&mut work);
    ExitCode::SUCCESS
}

/// Returns whether nothing rings.
fn gate(args: &Args, verbs: &[&Verb]) -> Result<bool, String> {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json");
    let file = args.file.as_ref().unwrap_or(&usual);
    let book = read(file)?;
    let tools = count::tools()?;
    if let Some(reason) = &args.bless {
        let counts = count::counts(verbs, false)?;
        show(book.as_ref(), slice::from_ref(&counts));
        let book = blessed(book.as_ref(), &tools, &counts, reason);
        fs::write(file, book.write())
            .map_err(|error| format!("cannot write '{}': {error}", file.display()))?;
        println!("written to {}", file.display());
        return Ok(true);
    }
    let Some(book) = book else {
        let file = file.display();
        return Err(format!("'{file}' is missing; write it: --bless \"the first figures\""));
    };
    let mut is_silent = told(&earlier(file).map_or(vec![], |before| unexplained(&before, &book)));
    let mut rounds = Vec::new();
    for round in 1..=args.repeats {
        let counts = count::counts(verbs, args.mistaken)?;
        let is_asked = |name: &str| args.only.is_empty() || counts.contains_key(name);
        let is_good = told(&compare(&book, &tools, &counts, is_asked));
        if args.repeats > 1 {
            println!("{round} of {}: {}", args.repeats, if is_good { "silent" } else { "rings" });
        }
        is_silent &= is_good;
        rounds.push(counts);
    }
    show(Some(&book), &rounds);
    println!("{}", if is_silent { "nothing rings" } else { "the gate rings" });
    Ok(is_silent)
}

/// Prints the findings. Returns whether none of them rings.
fn told(findings: &[Finding]) -> bool {
    for finding in findings {
        let word = if finding.rings() { "error" } else { "note" };
        eprintln!("{word}: {finding}");
    }
    !findings.iter().any(Finding::rings)
}

/// The file. `None` if it does not exist yet.
fn read(file: &Path) -> Result<Option<Book>, String> {
    let name = file.display();
    match fs::read_to_string(file) {
        Ok(text) => Book::read(&text).map(Some).map_err(|why| format!("'{name}': {why}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot read '{name}': {error}")),
    }
}

/// The file before its last change, if git knows it. A change that is not committed yet counts too.
fn earlier(file: &Path) -> Option<Book> {
    let (folder, name) = (file.parent()?, file.file_name()?.to_str()?);
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("-C").arg(folder).args(args).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    };
    let is_committed = git(&["status", "--porcelain", "--", name])?.is_empty();
    let last = git(&["log", "-1", "--format=%H", "--", name])?;
    let before = if is_committed { format!("{}~1", last.trim()) } else { "HEAD".to_owned() };
    // The first version has no earlier one.
    Book::read(&git(&["show", &format!("{before}:./{name}")])?).ok()
}

/// A table of the counts, of one round or several.
fn show(book: Option<&Book>, rounds: &[Counts]) {
    let mut verbs: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (name, count) in rounds.iter().flatten() {
        verbs.entry(name).or_default().push(*count);
    }
    println!("{:26} {:>12} {:>12} {:>8} {:>9}", "a thousand of", "file", "now", "change", "spread");
    for (name, counts) in verbs {
        let (least, most) = (counts.iter().min(), counts.iter().max());
        let (Some(&least), Some(&most)) = (least, most) else { continue };
        let row = book.and_then(|book| book.verbs.get(name));
        let was = row.map_or("-".to_owned(), |row| row.instructions.to_string());
        let more =
            row.map_or("-".to_owned(), |row| format!("{:+.2} %", change(row.instructions, most)));
        let spread = match counts.len() {
            1 => "-".to_owned(),
            _ => format!("{:.3} %", change(least, most)),
        };
        println!("{name:26} {was:>12} {most:>12} {more:>8} {spread:>9}");
    }
}
