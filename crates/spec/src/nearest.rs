//! "Did you mean": the known name that is nearest to an unknown one.

use strsim::{normalized_damerau_levenshtein, osa_distance};

/// Names longer than this are not compared; the cost is quadratic.
const NAME_LEN_MAX: usize = 64;
/// From this many letters on a name may be completed to a known one; fewer say too little.
const BEGUN_LEN_MIN: usize = 3;
/// Most names that are listed when none is near.
const LISTED_MAX: usize = 12;

/// A name from other systems, and its names here; the first known one is suggested.
const OTHERS: &[(&str, &[&str])] = &[
    ("timeout", &["deadline"]),
    ("type", &["kind"]),
    ("id", &["name"]),
    ("node", &["name"]),
    ("to", &["name"]),
    ("target", &["name"]),
    ("wires", &["ports"]),
    ("links", &["ports"]),
    ("next", &["ports"]),
    ("outputs", &["ports"]),
    ("every", &["interval", "period"]),
    ("interval", &["period"]),
    ("schedule", &["cron"]),
    ("retries", &["threshold"]),
    ("attempts", &["threshold"]),
    ("queue_size", &["capacity"]),
    ("condition", &["when"]),
    ("expression", &["when"]),
    ("source", &["code"]),
    ("address", &["host"]),
    ("function", &["snippet"]),
    ("script", &["snippet", "code"]),
    ("template", &["snippet", "code"]),
    ("lua", &["snippet"]),
    ("javascript", &["snippet"]),
    ("js", &["javascript"]),
    ("luajit", &["lua"]),
    ("http_server", &["listener"]),
    ("http_listener", &["listener"]),
    ("server", &["listener"]),
    ("webhook", &["listener"]),
    ("endpoint", &["listener"]),
    ("route", &["router"]),
    ("http_client", &["http"]),
    ("request", &["http"]),
    ("fetch", &["http"]),
    ("proxy", &["http"]),
    ("delay", &["sleep"]),
    ("wait", &["sleep"]),
    ("debug", &["print"]),
    ("log", &["print"]),
    ("foreach", &["for"]),
    ("loop", &["for"]),
    ("catch", &["try"]),
    ("cron", &["timer"]),
    ("inject", &["timer"]),
    ("database", &["sql"]),
    ("db", &["sql"]),
    ("sqlite", &["sql"]),
    ("postgres", &["sql"]),
    ("kafka", &["topic"]),
];

/// What to say about the unknown `name` where only the `known` ones are allowed.
pub fn suggest<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    if let Some(near) = near(name, known.clone()) {
        return near;
    }
    let mut all: Vec<&str> = known.collect();
    if all.len() > LISTED_MAX && name.len() <= NAME_LEN_MAX {
        // None is near: the most similar ones come first.
        let likeness = |other: &&str| normalized_damerau_levenshtein(name, other);
        all.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    }
    let listed = &all[..all.len().min(LISTED_MAX)];
    match (listed.len(), all.len()) {
        (0, _) => "there is none yet".to_owned(),
        (shown, all) if shown < all => {
            format!("known: {} and {} more", listed.join(", "), all - shown)
        }
        _ => format!("known: {}", listed.join(", ")),
    }
}

/// The same if a known name is near; otherwise `None`.
pub fn near<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    nearest(name, known).map(|near| format!("did you mean '{near}'?"))
}

/// The known name that begins like this, if there is one; otherwise the nearest one, if a typing
/// error explains the difference.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    if name.len() > NAME_LEN_MAX {
        return None;
    }
    let mut begun = known.clone().filter(|candidate| candidate.starts_with(name));
    if name.len() >= BEGUN_LEN_MIN
        && let (Some(only), None) = (begun.next(), begun.next())
    {
        return Some(only);
    }
    let is_here = |word: &&&str| known.clone().any(|candidate| candidate == **word);
    let other = OTHERS.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    if let Some(ours) = other.and_then(|(_, ours)| ours.iter().find(is_here)) {
        return Some(ours);
    }
    // Edits (insert, remove, replace, swap of neighbours), ignoring case.
    let distance = |other: &str| osa_distance(&name.to_lowercase(), &other.to_lowercase());
    let bound = 1 + name.chars().count() / 4;
    known
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= 4 * bound)
        .filter(|candidate| candidate.len() <= NAME_LEN_MAX)
        .map(|candidate| (distance(candidate), candidate))
        .filter(|&(far, _)| far <= bound)
        .min_by_key(|&(far, _)| far)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_hand_is_explained() {
        let known = ["period", "deadline", "priority", "overrun"];
        assert_eq!(suggest("peroid", known.into_iter()), "did you mean 'period'?");
        assert_eq!(suggest("Deadlin", known.into_iter()), "did you mean 'deadline'?");
        assert_eq!(suggest("proirity", known.into_iter()), "did you mean 'priority'?");
        assert_eq!(suggest("prio", known.into_iter()), "did you mean 'priority'?");
        assert!(suggest("colour", known.into_iter()).starts_with("known: period, "));
        assert_eq!(suggest("x", [].into_iter()), "there is none yet");
    }

    #[test]
    fn a_word_of_others_leads_to_ours() {
        let known = ["period", "deadline", "priority"];
        assert_eq!(suggest("timeout", known.into_iter()), "did you mean 'deadline'?");
        assert_eq!(suggest("interval", known.into_iter()), "did you mean 'period'?");
        assert!(suggest("timeout", ["a"].into_iter()).starts_with("known: "));
    }

    #[test]
    fn a_word_of_others_is_no_word_of_ours_twice() {
        for (at, (other, _)) in OTHERS.iter().enumerate() {
            assert!(OTHERS[..at].iter().all(|(word, _)| word != other), "{other} stands twice");
        }
    }

    #[test]
    fn of_many_the_likely_ones_are_named() {
        let many = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "jwt_check"];
        let said = suggest("token_check", many.into_iter());
        assert!(said.starts_with("known: jwt_check, "), "{said}");
    }
}
