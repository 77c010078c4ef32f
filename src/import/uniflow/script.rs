//! JavaScript: uniflow takes a module that exports a function. A graph takes the body of a function
//! that sees `packet`.

use super::cel::{self, Rewritten};

/// Words that have no meaning in a script here, and what to do.
const MISSING: &[(&str, &str)] = &[
    ("async ", "a script cannot wait: put what it awaits into a separate node"),
    ("await ", "a script cannot wait: put what it awaits into a separate node"),
    ("require(", "there are no modules: write out what is needed of it"),
    ("import ", "there are no modules: write out what is needed of it"),
    ("console.", "there is no console: a node of the kind 'print' writes a line"),
    ("setTimeout", "there are no timers: a node of the kind 'sleep' waits"),
    ("Promise", "a script cannot wait: put what it awaits into a separate node"),
    ("process.", "there is no process: env.NAME is a variable of the environment"),
];

/// How a module marks its export.
const EXPORTS: [&str; 3] = ["export default", "module.exports =", "module.exports="];

/// Rewrites a script.
pub(super) fn rewrite(code: &str) -> Rewritten {
    let mut made = Rewritten::default();
    for (word, help) in MISSING {
        if let Some(at) = find(code, word) {
            let what = word.trim_end_matches([' ', '(', '.']);
            made.left.push((at, format!("'{what}' does not exist in a script"), *help));
        }
    }
    let Some((at, export)) = export(code) else {
        let help = "write the body of a function: what it returns is the packet that goes on";
        made.left.push((0, "the script exports no function".to_owned(), help));
        made.code = code.to_owned();
        return made;
    };
    let mut names = ["main", "script_main", "exported_main"].into_iter();
    let name = names.find(|name| find(code, name).is_none()).unwrap_or("exported_main_");
    let behind = &code[at + export.len()..];
    let parameter = parameter(behind);
    let behind = match parameter {
        // An error arrives as a mapping that contains its text.
        Some(it) if !it.is_empty() => {
            behind.replace(&format!("{it}.error()"), &format!("{it}.error"))
        }
        _ => behind.to_owned(),
    };
    made.code = format!("{}const {name} ={behind}", &code[..at]);
    made.code.truncate(made.code.trim_end().len());
    made.code += &format!("\nreturn {name}(packet);");
    for word in ["query", "header"] {
        if let Some(at) = find(code, word) {
            let message = format!("a name in '{word}' has a text here, not a list");
            let help = "take the text itself; names of headers are in lower case";
            made.notes.push((at, message, help));
        }
    }
    made
}

/// Where a module marks its export, and with which words.
fn export(code: &str) -> Option<(usize, &'static str)> {
    EXPORTS.into_iter().find_map(|export| find(code, export).map(|at| (at, export)))
}

/// Finds a word that is not part of another word and not in a comment line. A field of a request is
/// found wherever it is.
fn find(code: &str, word: &str) -> Option<usize> {
    let is_field = ["query", "header"].contains(&word);
    let ends_open = word.ends_with(|sign: char| sign.is_alphanumeric());
    let mut start = 0;
    for line in code.split_inclusive('\n') {
        let is_whole = |at: &usize| {
            let (before, behind) = (&line[..*at], &line[at + word.len()..]);
            let is_part = before.ends_with(is_in_name) || before.trim_end().ends_with('.');
            let goes_on = ends_open && behind.starts_with(is_in_name);
            is_field || !(is_part || goes_on)
        };
        let mut places = line.match_indices(word).map(|(at, _)| at);
        if !line.trim_start().starts_with("//")
            && let Some(at) = places.find(is_whole)
        {
            return Some(start + at);
        }
        start += line.len();
    }
    None
}

fn is_in_name(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_' || sign == '$'
}

/// The parameter of a function whose source is given, if there is one parameter and it is a name.
fn parameter(function: &str) -> Option<&str> {
    let rest = function.trim_start();
    let list = match rest.strip_prefix("function") {
        Some(rest) => rest.split_once('(')?.1,
        None => match rest.strip_prefix('(') {
            Some(list) => list,
            None => return rest.split_once("=>").map(|(name, _)| name.trim()),
        },
    };
    let name = list.split_once(')')?.0.trim();
    name.chars().all(is_in_name).then_some(name)
}

/// The value that a script returns if it does nothing else, and the script's name for the packet.
pub(super) fn returned(code: &str) -> Option<(String, &str)> {
    let (at, export) = export(code)?;
    let behind = code[at + export.len()..].trim().trim_end_matches(';').trim_end();
    let parameter = parameter(behind)?;
    let body = match behind.split_once("=>").filter(|_| !behind.starts_with("function")) {
        Some((_, body)) if !body.trim_start().starts_with('{') => {
            return Some((body.trim().to_owned(), parameter));
        }
        Some((_, body)) => body,
        None => behind.split_once(')')?.1,
    };
    let body = body.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let value = body.strip_prefix("return")?.trim().trim_end_matches(';').trim();
    // With a second statement, the value would be neither a list nor a text.
    let is_one = cel::entries(value).is_some() || cel::unquoted(value).is_some();
    is_one.then(|| (value.to_owned(), parameter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_becomes_the_body_of_a_function() {
        let code = "export default function (args) {\n  return args.error();\n}\n";
        let made = rewrite(code);
        let expected =
            "const main = function (args) {\n  return args.error;\n}\nreturn main(packet);";
        assert_eq!((made.code.as_str(), made.left.len()), (expected, 0));
        for (code, expected) in [
            ("export default (x) => x + 1", "const main = (x) => x + 1\nreturn main(packet);"),
            ("module.exports = x => x;", "const main = x => x;\nreturn main(packet);"),
            (
                "const main = 1;\nexport default () => main;",
                "const main = 1;\nconst script_main = () => main;\nreturn script_main(packet);",
            ),
        ] {
            assert_eq!(rewrite(code).code, expected);
        }
    }

    #[test]
    fn what_a_script_cannot_do_is_said() {
        assert_eq!(rewrite("return 1").left.len(), 1);
        let made = rewrite("export default async (x) => { await f(); console.log(x.await) }");
        assert_eq!(made.left.len(), 3, "{made:?}");
        assert_eq!(rewrite("export default (x) => x.query.a[0]").notes.len(), 1);
    }

    #[test]
    fn a_script_that_only_returns_is_known() {
        let code = "export default function (args) {\n  return [\n    'a', args.b\n  ];\n}\n";
        let (value, parameter) = returned(code).unwrap();
        assert_eq!(
            (value.split_whitespace().collect::<String>().as_str(), parameter),
            ("['a',args.b]", "args")
        );
        assert_eq!(returned("export default (x) => ['a', x]").unwrap().1, "x");
        assert_eq!(returned("export default (x) => { f(); return ['a'] }"), None);
    }
}
