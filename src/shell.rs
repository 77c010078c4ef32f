//! `sinew completions` and `sinew man`: completion scripts and man pages for the command line, made
//! from the same tables as `--help`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use clap::{Args, Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

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

/// Prints the completions of the command line `A`.
pub(crate) fn completions<A: CommandFactory>(args: &CompletionsArgs) -> ExitCode {
    let mut text = Vec::new();
    generate(args.shell, &mut A::command(), "sinew", &mut text);
    print(&String::from_utf8_lossy(&text), ExitCode::SUCCESS)
}

/// Writes the man pages of the command line `A`.
pub(crate) fn man<A: CommandFactory>(args: &ManArgs) -> ExitCode {
    let mut command = A::command().disable_help_subcommand(true);
    command.build();
    match fs::create_dir_all(&args.folder).and_then(|()| pages(command, &args.folder)) {
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

/// Writes the page of a command, and the pages of its subcommands.
fn pages(command: Command, folder: &Path) -> io::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        pages(inner.clone(), folder)?;
    }
    let man = Man::new(command);
    let mut page = Vec::new();
    man.render(&mut page)?;
    fs::write(folder.join(man.get_filename()), sections(&String::from_utf8_lossy(&page)))
}

/// A page whose last part is divided into sections as `man` expects: examples, each on a line of
/// its own, and the exit status.
fn sections(page: &str) -> String {
    let Some((head, examples)) = page.split_once(".SH EXTRA\nExamples:\n") else {
        return page.to_owned();
    };
    let (examples, rest) = examples.split_once("\n\n").unwrap_or((examples, ""));
    let rest = format!("\n{rest}").replace("\nExit status: ", "\n.SH EXIT STATUS\n");
    format!("{head}.SH EXAMPLES\n.nf\n{examples}\n.fi\n.PP{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_with_examples_and_the_exit_status() {
        let page =
            ".SH NAME\nx\n.SH EXTRA\nExamples:\n  x a\n  x b\n\nMore.\nExit status: 0 good.\n";
        let expected = ".SH NAME\nx\n.SH EXAMPLES\n.nf\n  x a\n  x b\n.fi\n.PP\nMore.\n.SH EXIT \
                        STATUS\n0 good.\n";
        assert_eq!(sections(page), expected);
        assert_eq!(sections(".SH NAME\nx\n"), ".SH NAME\nx\n");
    }
}
