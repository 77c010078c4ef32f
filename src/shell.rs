//! `sinew completions` and `sinew man`: what a shell and `man` know of the command line, made of
//! the same tables as `--help`.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::answer::{BAD_REQUEST, print, refuse};

/// Print the completion script of a shell.
#[derive(Args, Debug)]
#[command(after_help = COMPLETIONS)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

const COMPLETIONS: &str = "\
Examples:
  sinew completions bash > ~/.local/share/bash-completion/completions/sinew
  sinew completions zsh > ~/.zfunc/_sinew
  sinew completions fish > ~/.config/fish/completions/sinew.fish

Exit status: 0 good, 2 there is no such shell.";

/// Write the man pages of all commands into a folder.
#[derive(Args, Debug)]
#[command(after_help = MAN)]
pub(crate) struct ManArgs {
    /// The folder; it is created if missing. Pages in it are overwritten.
    folder: PathBuf,
}

const MAN: &str = "\
Examples:
  sinew man ~/.local/share/man/man1
  man sinew-run

Exit status: 0 good, 2 the folder cannot be written.";

/// Prints the completions of the command line that `A` is.
pub(crate) fn completions<A: CommandFactory>(args: &CompletionsArgs) -> ExitCode {
    let mut text = Vec::new();
    generate(args.shell, &mut A::command(), "sinew", &mut text);
    print(&String::from_utf8_lossy(&text), ExitCode::SUCCESS)
}

/// Writes the pages of the command line that `A` is.
pub(crate) fn man<A: CommandFactory>(args: &ManArgs) -> ExitCode {
    let written = fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(A::command(), &args.folder));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let place = args.folder.display();
            refuse(
                &format!("cannot write {place}: {error}; name another folder"),
                BAD_REQUEST,
                false,
            )
        }
    }
}
