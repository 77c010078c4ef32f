//! The page with all its files in one, so that it needs no server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::page;

/// Scripts, by the names under which others import them; a page from disk has no paths.
const SCRIPTS: [(&str, &str); 3] =
    [("/shared.js", "./shared.js"), ("/drawing.js", "./drawing.js"), ("/app.js", "./app.js")];

/// Whether the page is part of this program.
///
/// # Errors
/// Why it was left out, and what to do.
pub(super) fn is_there() -> Result<(), String> {
    page::MISSING
        .map_or(Ok(()), |missing| Err(format!("the page is not in this program: {missing}")))
}

/// The page with a recording in it.
///
/// # Errors
/// As for [`is_there`]; or the page has an unexpected form, which is a bug.
pub(super) fn html(recording: &Value) -> Result<String, String> {
    is_there()?;
    let style = format!("<style>{}</style>", text("/app.css")?.replace("</", "<\\/"));
    let icon = format!("data:image/svg+xml;base64,{}", STANDARD.encode(text("/icon.svg")?));
    let mut imports = serde_json::Map::new();
    for (path, name) in SCRIPTS {
        let mut script = text(path)?.to_owned();
        for (_, other) in SCRIPTS {
            script = script.replace(&format!("\"{other}\""), &format!("\"{}\"", bare(other)));
        }
        let script = format!("data:text/javascript;base64,{}", STANDARD.encode(script));
        imports.insert(bare(name), Value::String(script));
    }
    let script = format!(
        "<script type=\"importmap\">{}</script>\n  <script type=\"module\">import \"{}\";</script>",
        json!({"imports": imports}),
        bare("./app.js")
    );
    // A text of a run must not end the element that contains it.
    let recording = recording.to_string().replace('<', "\\u003c");
    let recording =
        format!("<script type=\"application/json\" id=\"recording\">{recording}</script>\n</body>");
    [
        ("href=\"icon.svg\"", format!("href=\"{icon}\"")),
        ("<link rel=\"stylesheet\" href=\"app.css\">", style),
        ("<link rel=\"modulepreload\" href=\"drawing.js\">", String::new()),
        ("<link rel=\"modulepreload\" href=\"shared.js\">", String::new()),
        ("<script type=\"module\" src=\"app.js\"></script>", script),
        ("</body>", recording),
    ]
    .iter()
    .try_fold(text("/")?.to_owned(), |html, (from, to)| match html.split_once(from) {
        Some((before, after)) => Ok(format!("{before}{to}{after}")),
        None => Err(format!("a bug: the page has no '{from}'")),
    })
}

/// The name of a script where there are no paths.
fn bare(name: &str) -> String {
    name.replace("./", "sinew/")
}

fn text(path: &str) -> Result<&'static str, String> {
    let file = page::FILES.iter().find(|(it, ..)| *it == path);
    let text = file.and_then(|(.., bytes)| str::from_utf8(bytes).ok());
    text.ok_or_else(|| format!("a bug: the page has no file '{path}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_of_a_run_ends_its_element_and_nothing_is_fetched() {
        if is_there().is_err() {
            return;
        }
        let html = html(&json!({"machine": "</script><script>alert(1)</script>"})).expect("a page");
        assert!(html.contains("\\u003c/script>\\u003cscript>alert(1)"), "it is there as a text");
        assert!(!html.contains("<script>alert"));
        for gone in ["./shared.js", "./drawing.js", "src=\"", "href=\"app", "url("] {
            assert!(!html.contains(gone), "{gone}");
        }
        assert_eq!(html.matches("<script type=\"module\">").count(), 1);
    }
}
