//! The machine that a graph is compiled for, and `--profile-machine`: which machine profile decides
//! the layout of the links between its CPUs.

use std::path::{Path, PathBuf};

use clap::Args;
use sinew_figures::Machine;
use sinew_spec::plan::{LinkProfile, TargetMachine};

use crate::load::{LoadError, this_machine};

/// What links are shaped by.
#[derive(Args, Debug)]
pub(crate) struct MachineArgs {
    /// Lay out links by this machine profile of 'sinew tune'; 'none' uses no profile. Default: the
    /// one in your cache folder, if it exists
    #[arg(long, value_name = "FILE|none")]
    profile_machine: Option<PathBuf>,
}

impl MachineArgs {
    /// This machine. A profile that the user named must be good. A bad one in the cache folder is
    /// ignored, and the plan says why.
    pub(crate) fn get(&self) -> Result<TargetMachine, LoadError> {
        let mut machine = this_machine()?;
        machine.profile = match self.profile_machine.as_deref() {
            Some(word) if word == Path::new("none") => LinkProfile::None,
            Some(file) => {
                let missing =
                    || Err("there is no such file; 'sinew tune --out FILE' writes one".into());
                links(file).and_then(|found| found.map_or_else(missing, Ok)).map_err(|why| {
                    LoadError::Request(format!("--profile-machine: '{}': {why}", file.display()))
                })?
            }
            None => cached(),
        };
        Ok(machine)
    }
}

/// What the profile in the cache folder says.
fn cached() -> LinkProfile {
    // Without a cache folder there is no profile.
    let Ok(file) = sinew_tune::cached() else { return LinkProfile::None };
    links(&file).map(Option::unwrap_or_default).unwrap_or_else(|why| {
        let file = file.display();
        LinkProfile::Refused(format!("the machine profile {file} is not used: {why}"))
    })
}

/// What a profile says about this machine's links. `None` if the file does not exist.
fn links(file: &Path) -> Result<Option<LinkProfile>, String> {
    let Some(profile) = sinew_tune::read(file)? else { return Ok(None) };
    match profile.refused_on(&Machine::read()) {
        Some(why) => Err(why),
        None => Ok(Some(profile.links(file.display().to_string()))),
    }
}
