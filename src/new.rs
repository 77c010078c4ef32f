//! `sinew new`: makes a crate of one's own from `examples/my_machine`, which our tests build and
//! run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::answer::{BAD_REQUEST, print, refuse};

/// Create a crate for a machine of your own: a node of each sort, a message, a graph, tests.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct NewArgs {
    /// Name of the crate, its program and its graph. A folder of this name is created here
    #[arg(value_name = "NAME")]
    name: String,
    /// Use Sinew's crates from this checkout. Default: the one that this program was built from
    #[arg(long, value_name = "DIR", conflicts_with = "git")]
    path: Option<PathBuf>,
    /// Use Sinew's crates from this git repository
    #[arg(long, value_name = "URL")]
    git: Option<String>,
    /// Print one JSON object: the folder and its files
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Examples:
  sinew new my_machine && cd my_machine && cargo test && cargo run -- run graph.yaml
  sinew new my_machine --path ~/src/sinew
  sinew new my_machine --git https://example.com/sinew.git

Sinew is not in a registry: the crate depends on it by a path or by git. 'sinew new' overwrites
nothing. If it cannot write a file, it removes the folder again.

Exit status: 0 good, 2 bad name, or the folder exists or cannot be written.";

/// The name of the template. It is replaced by the new name.
const TEMPLATE: &str = "my_machine";

/// How the template's files name the place of Sinew.
const SINEW: &str = "path = \"../..";

/// Most bytes of a name. It is the limit of cargo's registry for the name of a crate.
const NAME_MAX: usize = 64;

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../examples/my_machine/", $name)))),*]
    };
}

/// The files of the template.
const FILES: &[(&str, &str)] = files![
    ".gitignore",
    "Cargo.lock",
    "Cargo.toml",
    "README.md",
    "graph.yaml",
    "src/journal.rs",
    "src/main.rs",
    "src/oven.rs",
    "src/verdict.rs",
    "tests/machine.rs",
];

/// Cargo's settings of the new crate.
const SETTINGS: &str = ".cargo/config.toml";

/// Words that no crate can have as its name: Rust's keywords, and the names of Rust's own crates
/// and of cargo's folders.
const TAKEN: &[&str] = &[
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// Carries out the command.
pub(crate) fn run(args: &NewArgs) -> ExitCode {
    match make(args) {
        Ok(files) if args.json => {
            let answer = json!({ "folder": args.name, "files": files });
            print(&format!("{answer:#}\n"), ExitCode::SUCCESS)
        }
        Ok(_) => {
            let name = &args.name;
            let text = format!(
                "made {name}: {name}/README.md says what is where\n  cd {name}\n  cargo test\n  \
                 cargo run -- run graph.yaml\n"
            );
            print(&text, ExitCode::SUCCESS)
        }
        Err(why) => refuse(&why, BAD_REQUEST, args.json),
    }
}

/// Makes the crate. Returns its files.
fn make(args: &NewArgs) -> Result<Vec<&'static str>, String> {
    let name = args.name.as_str();
    check(name)?;
    let source = source(args)?;
    // Making the folder is also the check whether it exists, so nothing can come in between.
    fs::create_dir(name).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("'{name}' exists already and is not changed; give another name")
        }
        _ => format!("cannot make the folder '{name}': {error}"),
    })?;
    write(Path::new(name), name, &source).map_err(|why| match fs::remove_dir_all(name) {
        Ok(()) => format!("{why}; the folder '{name}' was removed again"),
        Err(error) => format!("{why}; and cannot remove the folder '{name}': {error}"),
    })
}

/// Whether a crate can have this name.
fn check(name: &str) -> Result<(), String> {
    let is_known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let wrong = if name.contains(['/', '\\']) || name == "." || name == ".." {
        "a name without a path: the folder is created in the current folder"
    } else if !name.starts_with(|first: char| first.is_ascii_alphabetic())
        || !name.chars().all(is_known)
    {
        "a letter, then letters, digits, '_' and '-'"
    } else if name.len() > NAME_MAX {
        "at most 64 characters"
    } else if TAKEN.contains(&name) {
        "a name that is not a word of Rust or cargo"
    } else if FILES.iter().any(|(file, text)| *file == "Cargo.lock" && is_locked(text, name)) {
        "a name that no crate has on which it depends"
    } else {
        return Ok(());
    };
    Err(format!("'{name}' cannot be the name of a crate; expected {wrong}"))
}

/// Whether a crate other than the template has this name in the lock file.
fn is_locked(lock: &str, name: &str) -> bool {
    name != TEMPLATE && lock.contains(&format!("\nname = \"{name}\"\n"))
}

/// What replaces `path = "../..` in Cargo.toml.
enum Source {
    /// The path of the checkout.
    Path(String),
    /// The address of the git repository.
    Git(String),
}

fn source(args: &NewArgs) -> Result<Source, String> {
    if let Some(url) = &args.git {
        return Ok(Source::Git(url.clone()));
    }
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = args.path.as_deref().unwrap_or(built_from);
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    if !manifest.contains("\nname = \"sinew\"\n") {
        let folder = folder.display();
        return Err(match args.path {
            Some(_) => format!("--path: '{folder}' is not a checkout of Sinew; name its folder"),
            None => format!(
                "the checkout that this program was built from, '{folder}', does not exist; say \
                 where Sinew's crates are with --path DIR or --git URL"
            ),
        });
    }
    let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
    let Some(text) = folder.to_str() else {
        return Err(format!("the path '{}' is not UTF-8, as Cargo.toml must be", folder.display()));
    };
    Ok(Source::Path(text.into()))
}

fn write(folder: &Path, name: &str, source: &Source) -> Result<Vec<&'static str>, String> {
    let settings = settings(source).map(|text| (SETTINGS, text));
    let files = FILES.iter().map(|(file, text)| {
        let text = text.replace(TEMPLATE, name);
        // The path or address of Sinew may contain the template's name, so it is put in last.
        (*file, if *file == "Cargo.toml" { manifest(&text, source) } else { text })
    });
    let written = files.chain(settings).map(|(file, text)| {
        let path = folder.join(file);
        let parent = path.parent().unwrap_or(folder);
        let written = fs::create_dir_all(parent).and_then(|()| fs::write(&path, text));
        written.map_err(|error| format!("cannot write '{}': {error}", path.display()))?;
        Ok(file)
    });
    written.collect()
}

/// Cargo's settings of the new crate, so that it uses again what the checkout has built. `None` for
/// a git address, and for a checkout in which nothing was built.
fn settings(source: &Source) -> Option<String> {
    let Source::Path(checkout) = source else { return None };
    let target = Path::new(checkout).join("target");
    target.is_dir().then(|| {
        format!(
            "# The packages that Sinew's own build has compiled are not compiled again.\n[build]\n\
             target-dir = {}\n",
            json!(target)
        )
    })
}

/// The template's manifest, with the right place of Sinew.
fn manifest(text: &str, source: &Source) -> String {
    // A JSON string is also a TOML string.
    let quoted = |text: &str| json!(text).to_string();
    let line = |line: &str| match (line.split_once(SINEW), source) {
        (Some((before, rest)), Source::Path(checkout)) => {
            let path = quoted(checkout);
            format!("{before}path = {}{rest}\n", &path[..path.len() - 1])
        }
        (Some((before, rest)), Source::Git(url)) => {
            let rest = rest.split_once('"').map_or("", |(_, rest)| rest);
            format!("{before}git = {}{rest}\n", quoted(url))
        }
        (None, _) => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_crate_are_refused() {
        for name in ["oven", "my_machine", "line-4", "A1"] {
            assert_eq!(check(name), Ok(()));
        }
        let rows = [
            ("", "a letter"),
            ("1st", "a letter"),
            ("_x", "a letter"),
            ("ofen ", "a letter"),
            ("öfen", "a letter"),
            ("a\"b", "a letter"),
            ("a/b", "without a path"),
            ("..", "without a path"),
            ("fn", "not a word of Rust"),
            ("deps", "not a word of Rust"),
            ("sinew-core", "no crate has on which it depends"),
            ("serde", "no crate has on which it depends"),
            (&"x".repeat(65), "64 characters"),
        ];
        for (name, expected) in rows {
            let why = check(name).expect_err(name);
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn the_crates_of_sinew_are_by_path_or_by_git() {
        let toml = "sinew = { path = \"../..\" }\nsinew-core = { path = \"../../crates/core\" }\n";
        let path = manifest(toml, &Source::Path("/a \"b\"".into()));
        assert_eq!(
            path,
            "sinew = { path = \"/a \\\"b\\\"\" }\n\
             sinew-core = { path = \"/a \\\"b\\\"/crates/core\" }\n"
        );
        let git = manifest(toml, &Source::Git("u".into()));
        assert_eq!(git, "sinew = { git = \"u\" }\nsinew-core = { git = \"u\" }\n");
    }
}
