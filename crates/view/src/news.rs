//! What is told of a run's events while it runs, one line each; all of them stand in `sinew log`.

use sinew_control::status::{Event, EventKind, Events};

/// What was told so far.
#[derive(Debug, Default)]
pub struct News {
    /// Number of the last event that was looked at.
    seen: u64,
}

impl News {
    /// A line for each event since the last call that a person who watches wants to know of.
    pub fn of(&mut self, events: &Events) -> Vec<String> {
        let missed = events.missed(self.seen);
        let lines = events.after(self.seen).filter(|event| is_news(event)).map(line);
        let missed = (missed > 0).then(|| format!("{missed} events came too fast to be told"));
        let lines = missed.into_iter().chain(lines).collect();
        self.seen = events.newest();
        lines
    }
}

/// Late cycles are told elsewhere, and starts that went well are no news.
fn is_news(event: &Event) -> bool {
    !matches!(event.what, EventKind::Late | EventKind::Started | EventKind::Ready)
}

fn line(event: &Event) -> String {
    let Event { what, text, .. } = event;
    let what = what.word().replace('_', " ");
    match &event.domain {
        Some(domain) if matches!(event.what, EventKind::Address | EventKind::Log) => {
            format!("{domain}: {text}")
        }
        Some(domain) => format!("{domain}: {what}: {text}"),
        None if event.what == EventKind::Edited => format!("the graph was edited: {text}"),
        None if event.what == EventKind::EditRefused => format!("the edit is refused: {text}"),
        None => format!("{what}: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use sinew_control::status::Logged;
    use sinew_core::Level;

    use super::*;

    #[test]
    fn a_line_names_the_domain_and_what_it_is_about() {
        let mut events = Events::new();
        events.add(EventKind::GivenUp, Some("camera"), "10 restarts were not enough");
        events.add(EventKind::Started, Some("camera"), "process 7");
        events.add(EventKind::Request, None, "stop, by process 8");
        events.add(EventKind::Address, Some("page"), "http://127.0.0.1:8600/");
        let logged = Logged { node: "pid".into(), level: Level::Warning, cycle: 7 };
        events.add_logged("arm", logged, "hot");
        let told: Vec<_> = events.after(0).filter(|event| is_news(event)).map(line).collect();
        let expected = [
            "camera: given up: 10 restarts were not enough",
            "request: stop, by process 8",
            "page: http://127.0.0.1:8600/",
            "arm: warning: cycle 7: in node 'pid': hot",
        ];
        assert_eq!(told, expected);
    }
}
