//! Databases: in uniflow a packet brings the statement to a node `sql`. In a graph each statement
//! is a node `query`.

use std::collections::HashMap;

use super::cel::{About, entries, rewrite, unquoted};
use super::parts::{duration, remove, rename, set_kind};
use super::script;
use super::sheet::{Away, Sheet, quoted, shown};
use super::workflow::{DONE, Workflow, WorkflowLink};

/// Most links that all queries of a database together get from it.
const LINKS_MAX: usize = 100_000;

/// A statement with its arguments.
#[derive(Debug, PartialEq)]
struct Statement {
    text: String,
    /// The value of `args`. `None` if the statement takes no arguments.
    args: Option<String>,
}

/// Statements that are queries now, by their nodes. Each has its database, and its text if it takes
/// no arguments.
pub(super) type Queries = HashMap<usize, (usize, Option<String>)>;

/// Rewrites a database and all nodes that send it statements.
pub(super) fn database<'t>(
    flow: &mut Workflow<'t>,
    at: usize,
    callers: &[usize],
    queries: &mut Queries,
    sheet: &mut Sheet<'t>,
) {
    place(flow, at, sheet);
    let (out, error) = (flow.nodes[at].take_links("out"), flow.nodes[at].take_links("error"));
    let name = flow.full_name(at);
    if callers.len() * (out.len() + error.len()) > LINKS_MAX {
        let help = "let one node with these links follow all queries";
        return sheet.left(flow.nodes[at].item.span, "too many links follow this database", help);
    }
    for &caller in callers {
        let node = &flow.nodes[caller];
        let is_only = matches!(node.links("out"), [link] if link.to == at);
        let statement = is_only.then(|| statement(flow, caller, sheet)).flatten();
        let Some(Statement { text, args }) = statement else {
            let help = format!(
                "write 'kind: query' with 'sql: {name}', 'text' and 'args' in place of what leads \
                 to '{name}'"
            );
            sheet.left(node.item.span, "a statement stands in the graph, not in a packet", help);
            continue;
        };
        queries.insert(caller, (at, args.is_none().then(|| text.clone())));
        set_kind(node, "query", sheet);
        duration(node, "timeout", "deadline", sheet);
        rename(node, "language", "sql", sheet);
        rename(node, "code", "text", sheet);
        if let (Some(language), Some(code)) = (node.entry("language"), node.entry("code")) {
            sheet.set(&language.value, name.clone());
            sheet.set(&code.value, text);
        }
        if args.is_some() {
            sheet.change(&node.at, "args", args);
        }
        let node = &mut flow.nodes[caller];
        node.kind = DONE;
        node.set_links("out", out.clone());
        if node.links("error").is_empty() && !error.is_empty() {
            node.set_links("error", error.clone());
        }
    }
    // What the database sent out of its block, its queries now send.
    if let Some(holder) = flow.nodes[at].holder {
        for output in &mut flow.nodes[holder].outputs {
            let count = output.links.len();
            output.links.retain(|link| link.to != at);
            if output.links.len() < count {
                let queries = callers.iter().filter(|caller| queries.contains_key(*caller));
                let name = output.name.clone();
                output.links.extend(queries.map(|&query| WorkflowLink::new(query, &name)));
            }
        }
    }
}

/// Rewrites the address of the database.
fn place<'t>(flow: &Workflow<'t>, at: usize, sheet: &mut Sheet<'t>) {
    let node = &flow.nodes[at];
    set_kind(node, "sql", sheet);
    remove(node, "isolation", "a 'transaction' holds several queries together", sheet);
    let source = node.entry("source").and_then(|entry| sheet.value(&entry.value));
    let source = source.unwrap_or_default();
    remove(node, "source", "", sheet);
    let Some(entry) = node.entry("driver") else {
        let help = "write 'database: sqlite://users.db' or another URL";
        return sheet.left(node.item.span, "the URL of the database is missing", help);
    };
    sheet.rename(entry, "database");
    let driver = sheet.value(&entry.value).unwrap_or_default();
    let is_whole = source.starts_with("{{") && source.ends_with("}}");
    let database = match driver.as_str() {
        _ if is_whole => {
            let help = "give sqlite://users.db, sqlite://:memory: or postgres://user@host/name";
            sheet.note(entry.span, "the variable holds a URL here", help);
            Some(source.clone())
        }
        "sqlite3" | "sqlite" => {
            let path = source.trim_start_matches("file:");
            let is_memory = path.contains(":memory:") || path.contains("mode=memory");
            let path = path.split('?').next().unwrap_or_default();
            let path = if is_memory { ":memory:" } else { path };
            (!path.is_empty()).then(|| format!("sqlite://{path}"))
        }
        "postgres" | "pgx" if source.starts_with("postgres") => Some(source.clone()),
        _ => None,
    };
    match database {
        Some(database) => sheet.set(&entry.value, database),
        None if driver == "internal" => {
            let help = "'sinew list', 'top' and 'log' show a run; the kind 'status' reads its \
                        state";
            sheet.left(entry.span, "a flow cannot query the state of its run by SQL", help);
        }
        None => {
            let help = "write a URL: sqlite://users.db, sqlite://:memory: or \
                        postgres://user:password@host/name";
            sheet.left(
                entry.span,
                format!("a database '{driver}' of this form is not supported"),
                help,
            );
        }
    }
}

/// The statement that a snippet makes, if the snippet does nothing else.
fn statement(flow: &Workflow<'_>, at: usize, sheet: &Sheet<'_>) -> Option<Statement> {
    let node = &flow.nodes[at];
    if node.kind != "snippet" {
        return None;
    }
    let code = sheet.value(&node.entry("code")?.value)?;
    let (value, parameter) = match node.item.get("language")?.text()? {
        "text" => return of(code.trim().to_owned(), None, &|_: &str| None),
        "cel" => (code.clone(), None),
        _ => script::returned(&code).map(|(value, parameter)| (value, Some(parameter)))?,
    };
    let argument = |code: &str| match parameter {
        None => Some(rewrite(code, About::Packet).code),
        Some(parameter) => path_of(code, parameter),
    };
    if let Some(text) = unquoted(&value) {
        return of(text, None, &argument);
    }
    let parts = entries(&value)?;
    let part = |at: usize| parts.get(at).map(|part| value[part.clone()].trim());
    let text = unquoted(part(0)?)?;
    if parts.len() > 2 { None } else { of(text, part(1), &argument) }
}

/// The part of the packet that a script names, or a constant, as an expression.
fn path_of(code: &str, parameter: &str) -> Option<String> {
    let is_constant = code.parse::<f64>().is_ok() || unquoted(code).is_some();
    if is_constant || matches!(code, "true" | "false" | "null") {
        return (!code.starts_with('`')).then(|| code.to_owned());
    }
    let rest = code.strip_prefix(parameter).filter(|_| !parameter.is_empty())?;
    let is_in = |sign: char| sign.is_ascii_alphanumeric() || "_.[]'\"".contains(sign);
    let is_way = rest.is_empty() || rest.starts_with(['.', '[']);
    if !is_way || !rest.chars().all(is_in) {
        return None;
    }
    // A name in `query` has a text here, not a list.
    let rest = match rest.starts_with(".query.") {
        true => rest.trim_end_matches("[0]"),
        false => rest,
    };
    Some(format!("packet{rest}"))
}

/// A statement, made of its text and the arguments that uniflow gets for it.
fn of(
    text: String,
    given: Option<&str>,
    argument: &dyn Fn(&str) -> Option<String>,
) -> Option<Statement> {
    let (new, names, count) = places(&text);
    if !names.is_empty() && count == 0 {
        let base = argument(given?)?;
        let args = names.iter().map(|name| shown(&format!("{base}.{name}")));
        let args = Some(format!("[{}]", args.collect::<Vec<_>>().join(", ")));
        return Some(Statement { text: new, args });
    }
    let Some(given) = given.filter(|given| !given.is_empty()) else {
        return (count == 0 && !text.contains("{{")).then_some(Statement { text: new, args: None });
    };
    let args = match entries(given) {
        Some(parts) => {
            let all: Option<Vec<_>> =
                parts.into_iter().map(|part| argument(given[part].trim())).collect();
            let all: Vec<_> = all?.iter().map(|code| shown(code)).collect();
            if all.is_empty() {
                return Some(Statement { text: new, args: None });
            }
            format!("[{}]", all.join(", "))
        }
        None => shown(&argument(given)?),
    };
    Some(Statement { text: new, args: Some(args) })
}

/// A statement with `$1` and so on in place of `:name` and `?`. Also the names, and the number of
/// `?`.
fn places(text: &str) -> (String, Vec<&str>, usize) {
    let (mut new, mut names, mut count) = (String::new(), Vec::new(), 0);
    let (mut at, mut quote) = (0, None);
    while let Some(sign) = text[at..].chars().next() {
        let rest = &text[at + sign.len_utf8()..];
        let is_in = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        let is_cast = rest.starts_with(':') || new.ends_with(':');
        let is_named = rest.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '_');
        at += sign.len_utf8();
        match sign {
            '\'' | '"' if quote == Some(sign) => quote = None,
            '\'' | '"' if quote.is_none() => quote = Some(sign),
            ':' if quote.is_none() && is_named && !is_cast => {
                let name = &rest[..rest.find(|sign: char| !is_in(sign)).unwrap_or(rest.len())];
                at += name.len();
                let known = names.iter().position(|known| *known == name);
                let number = known.unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                });
                new += &format!("${}", number + 1);
                continue;
            }
            '?' if quote.is_none() => {
                count += 1;
                new += &format!("${count}");
                continue;
            }
            _ => {}
        }
        new.push(sign);
    }
    (new, names, count)
}

/// Rewrites what a node starts when it is made: statements become the database's migrations,
/// anything else begins the graph.
pub(super) fn beginnings<'t>(
    flow: &mut Workflow<'t>,
    callers: &[Vec<usize>],
    queries: &Queries,
    sheet: &mut Sheet<'t>,
) {
    let mut migrations: HashMap<usize, Vec<String>> = HashMap::new();
    let serves = flow.nodes.iter().any(|node| node.kind == "listener");
    for at in 0..flow.nodes.len() {
        for port in ["begin", "init"] {
            let span = flow.nodes[at].port_span(port);
            for link in flow.nodes[at].take_links(port) {
                let number = flow.nodes[link.to].number();
                if let (Some((database, Some(text))), Some(number)) =
                    (queries.get(&link.to), number)
                    && callers[link.to] == [at]
                {
                    migrations.entry(*database).or_default().push(quoted(text));
                    sheet.leave_out(number, Away::Gone);
                    continue;
                }
                if serves || number.is_none() {
                    let help = "'migrations' of 'sql' makes tables; 'timer' begins flows; 'once' \
                                ends the run when its flow has ended";
                    let message = format!("'{port}' begins no flow in a file with other sources");
                    sheet.left(span, message, help);
                    continue;
                }
                let (name, _) = flow.add(&format!("{}_{port}", flow.nodes[at].name));
                let out = flow.hand(std::slice::from_ref(&link));
                sheet.add(format!("{{kind: once, name: {name}, ports: {{out: {out}}}}}"));
                sheet.note(span, "the run ends when that flow has ended", "");
            }
        }
        for port in ["term", "final", "end"] {
            let span = flow.nodes[at].port_span(port);
            if !flow.nodes[at].take_links(port).is_empty() {
                let help = "the end of a graph begins no flow; do it in the program that stops the \
                            run";
                sheet.left(span, format!("there is no port '{port}'"), help);
            }
        }
    }
    for (database, texts) in migrations {
        let value = format!("[{}]", texts.join(", "));
        sheet.change(&flow.nodes[database].at, "migrations", Some(value));
        let help = "each is applied once; the table 'sinew_migrations' says which were";
        sheet.note(flow.nodes[database].item.span, "its tables are made by migrations", help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_a_statement_get_numbers() {
        for (text, expected) in [
            ("SELECT 1", ("SELECT 1", vec![], 0)),
            ("VALUES (?, '?', ?)", ("VALUES ($1, '?', $2)", vec![], 2)),
            ("a = :a, b = :b, c = :a", ("a = $1, b = $2, c = $1", vec!["a", "b"], 0)),
            ("x::text, ':y', 'it''s :z'", ("x::text, ':y', 'it''s :z'", vec![], 0)),
        ] {
            let (new, names, count) = places(text);
            assert_eq!((new.as_str(), names, count), expected);
        }
    }

    #[test]
    fn what_a_script_gives_is_an_expression() {
        for (code, expected) in [
            ("a.body.name", Some("packet.body.name")),
            ("a", Some("packet")),
            ("a.query.page[0]", Some("packet.query.page")),
            ("7", Some("7")),
            ("'x'", Some("'x'")),
            ("ab.x", None),
            ("a.f(1)", None),
            ("a.x + 1", None),
        ] {
            assert_eq!(path_of(code, "a").as_deref(), expected, "{code}");
        }
    }
}
