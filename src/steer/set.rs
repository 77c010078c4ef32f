//! `sinew set`: sets parameters of the core while it runs, or lists those that can be set.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use sinew_control::status::{EventKind, Events};
use sinew_control::{Answer, Request, Tunable};

use super::{Done, Followed, SteerArgs, Steered};
use crate::reach::{Failure, choose};

/// Set parameters of nodes while the core runs, or list those that can be set.
///
/// Each new value is checked against the limits of its parameter; then the node's kind checks all
/// values of the node together. If one value is wrong, none is set. The node gets its values
/// between two cycles, all at once. The recording of an observed run has each change in its cycle,
/// so a replay is bit-identical. After a reset the core starts with the newest values.
///
/// Without NODE.PARAMETER=VALUE, 'sinew set' shows the parameters that can be set, and their
/// values.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SetArgs {
    /// The parameters to set, and their new values
    #[arg(value_name = "NODE.PARAMETER=VALUE")]
    settings: Vec<String>,
    /// Write the values to the spec, too; the rest of the file stays, with its comments
    #[arg(long, requires = "settings")]
    save: bool,
    /// Process number or graph of the run. May be left out if there is only one run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    steer: SteerArgs,
}

const EXAMPLES: &str = "\
Examples:
  sinew set
  sinew set pid.kp=2.5
  sinew set pid.kp=2.5 pid.ki=8 --save
  sinew set pid.kp=2.5 --run axis --json

Exit status: 0 all values are set, 1 none is set, 2 no such run.";

/// Carries out the command.
pub(crate) fn run(args: &SetArgs) -> ExitCode {
    args.steer.carry_out(choose(args.run.as_deref()), |steered| {
        let done = match args.settings.is_empty() {
            true => list(steered),
            false => set(steered, args),
        };
        done.map_err(Failure::run)
    })
}

fn list(steered: &mut Steered) -> Result<Done, String> {
    let answer = steered.run.connection.ask(&Request::Tunables {});
    let tunables = match answer.map_err(|error| error.to_string())? {
        Answer::Tunables(tunables) => tunables,
        Answer::Error(text) => return Err(text),
        other => return Err(format!("it answers {other:?}")),
    };
    let text = match tunables.is_empty() {
        true => format!("no parameter of {} can be set while it runs", steered.name),
        false => table(&tunables),
    };
    Ok(Done { text, fields: json!({ "tunables": tunables }), is_good: true })
}

/// One line for each parameter: name, value, limits.
fn table(tunables: &[Tunable]) -> String {
    let names: Vec<_> = tunables.iter().map(|it| format!("{}.{}", it.node, it.parameter)).collect();
    let width = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let name_width = width(&mut names.iter().map(String::len));
    let value_width = width(&mut tunables.iter().map(|it| it.value.len()));
    let line = |(name, it): (&String, &Tunable)| {
        format!("{name:name_width$}  {:>value_width$}  {}", it.value, it.takes)
    };
    names.iter().zip(tunables).map(line).collect::<Vec<_>>().join("\n")
}

/// The beginning of the event about these settings. If they are many, the text of the event is cut.
fn beginning(settings: &[String]) -> String {
    let mut text = format!("{} ", settings.join(", "));
    text.truncate(text.floor_char_boundary(Events::TEXT_MAX / 2));
    text
}

fn set(steered: &mut Steered, args: &SetArgs) -> Result<Done, String> {
    let (settings, save) = (args.settings.clone(), args.save);
    let ours = beginning(&settings);
    let cannot = |why: String| format!("nothing is set: {why}");
    let (changed, after) = steered.order(&Request::Set { settings, save }).map_err(cannot)?;
    let fields = json!({ "set": args.settings, "changed": changed, "saved": save });
    if !save {
        return Ok(Done { text: changed, fields, is_good: true });
    }
    let followed = steered.follow(after, |event| match event.what {
        EventKind::Saved if event.text.starts_with(&ours) => Some(Ok(event.text.clone())),
        EventKind::NotSaved if event.text.starts_with(&ours) => Some(Err(event.text.clone())),
        _ => None,
    })?;
    match followed {
        Followed::Seen(Ok(text)) => {
            Ok(Done { text: format!("{changed}\n{text}"), fields, is_good: true })
        }
        Followed::Seen(Err(text)) => Err(format!("{changed}; {text}")),
        Followed::Ended => Err(format!("{changed}; the run ended before it was saved")),
        Followed::TimedOut => Err(format!(
            "{changed}; it was not saved within {} s, see 'sinew log'",
            steered.timeout_s
        )),
    }
}
