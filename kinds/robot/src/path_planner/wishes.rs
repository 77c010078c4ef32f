//! The latest wishes, from the commands in the planner's mailbox. The sender is not part of the
//! core, so no command is a fault, whatever it holds.

use crate::messages::{PLANNER_CHOOSE, PLANNER_PAUSE, PLANNER_RESUME, PlannerCommand};

/// The latest wishes.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    /// The path to take.
    pub(super) chosen: usize,
    /// Whether to stand still.
    pub(super) paused: bool,
    /// Count of commands that asked for nothing that can be done.
    pub(super) ignored: u64,
    /// Number of the last command.
    sequence: u64,
}

impl Wishes {
    /// Takes a command. `paths` is the count of paths; `obeys` says whether the planner still
    /// obeys.
    pub(super) fn hear(&mut self, command: &PlannerCommand, paths: usize, obeys: bool) {
        if command.sequence == self.sequence {
            return; // the same once more
        }
        self.sequence = command.sequence;
        let path = command.path as usize;
        match command.what {
            PLANNER_CHOOSE if obeys && path < paths => self.chosen = path,
            PLANNER_PAUSE if obeys => self.paused = true,
            PLANNER_RESUME if obeys => self.paused = false,
            _ => self.ignored += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_counts_once_and_what_makes_no_sense_is_counted() {
        let mut wishes = Wishes::default();
        let mut hear = |sequence, what, path, obeys| {
            wishes.hear(&PlannerCommand { sequence, what, path }, 3, obeys);
            (wishes.chosen, wishes.paused, wishes.ignored)
        };
        assert_eq!(hear(1, PLANNER_CHOOSE, 2, true), (2, false, 0));
        assert_eq!(hear(1, PLANNER_PAUSE, 0, true), (2, false, 0), "the same sequence");
        assert_eq!(hear(2, PLANNER_PAUSE, u32::MAX, true), (2, true, 0));
        assert_eq!(hear(3, PLANNER_CHOOSE, 3, true), (2, true, 1), "there are three");
        assert_eq!(hear(4, 0, 0, true), (2, true, 2));
        assert_eq!(hear(u64::MAX, u32::MAX, u32::MAX, true), (2, true, 3));
        assert_eq!(hear(1, PLANNER_RESUME, 0, true), (2, false, 3), "a sender begins again");
        assert_eq!(hear(2, PLANNER_PAUSE, 0, false), (2, false, 4), "nobody obeys any more");
    }
}
