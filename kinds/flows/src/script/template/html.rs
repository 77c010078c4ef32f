//! Text as part of a page.

/// Why text after the beginning of a page would not be safe there, and what to write instead.
pub(super) fn unsafe_at(before: &str) -> Option<(&'static str, &'static str)> {
    let lower = before.to_ascii_lowercase();
    let is_within = |tag: &str| {
        let opened = lower.rmatch_indices(tag).find(|(at, _)| lower[..*at].ends_with('<'));
        opened.is_some_and(|(at, _)| !lower[at..].contains(&format!("</{tag}")))
    };
    if is_within("script") || is_within("style") {
        let help = "put the value into an attribute, such as data-user=\"{{ packet.user }}\", and \
                    read it from there; or write three braces, if nobody else chooses it";
        return Some(("text in a script or a style can do what a script can", help));
    }
    let tag = lower.rfind('<').filter(|at| !lower[*at..].contains('>'));
    let is_bare = tag.is_some() && lower.trim_end().ends_with('=');
    let help = "write quotes around it: title=\"{{ packet.title }}\"";
    is_bare.then_some(("without quotes a space in it begins another attribute", help))
}
