//! The events of a run that are shown while it runs, one line each. All events are in `sinew log`.

use sinew_control::status::{Event, EventKind, Events};

/// The state of what was shown so far.
#[derive(Debug, Default)]
pub struct News {
    /// Number of the last event that was handled.
    seen: u64,
    newest: Option<String>,
}

impl News {
    /// A line for each event since the last call that matters to a person who watches.
    pub fn of(&mut self, events: &Events) -> Vec<String> {
        let missed = events.missed(self.seen);
        let news = || events.after(self.seen).filter(|event| is_news(event));
        let lines = news().map(line);
        let missed = (missed > 0).then(|| format!("{missed} events came too fast to be told"));
        let lines = missed.into_iter().chain(lines).collect();
        let has_no_place = |event: &&Event| event.what != EventKind::Address;
        self.newest = news().filter(has_no_place).last().map(line);
        self.seen = events.newest();
        lines
    }

    /// The last line of the last call, returned once. It is for a live view without room for more.
    pub fn newest(&mut self) -> Option<String> {
        self.newest.take()
    }
}

/// Late cycles are reported elsewhere, and successful starts are no news.
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
        let mut news = News::default();
        assert_eq!(news.of(&events), expected);
        assert_eq!(news.newest().as_deref(), Some(expected[3]));
        events.add(EventKind::Address, Some("page"), "http://127.0.0.1:8600/");
        assert_eq!((news.of(&events).len(), news.newest()), (1, None));
    }
}
