//! Which output a method and a path lead to.

use std::collections::{BTreeMap, HashMap};

use bytestring::ByteString;
use indexmap::IndexMap;
use sinew_core::Refusal;
use sinew_core::catalogue::Kind;
use sinew_flow::{Map, Value};
use sinew_spec::{Data, Item, Span};

use super::pattern::{self, Pattern, with_names};

/// The methods that a route may name.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];
/// Stands for all methods.
pub(crate) const ANY: &str = "ANY";
const KEYS: &str = "a route has 'method', 'path' and 'port', and may have 'reserved' and 'summary'";

/// A method of a path, as a description of the interface shows it.
pub(crate) struct RouteLine {
    /// As in OpenAPI: the names of the parameters are in braces.
    pub(crate) path: String,
    pub(crate) names: Vec<ByteString>,
    /// Whether the last parameter takes all that follows.
    pub(crate) has_rest: bool,
    pub(crate) method: &'static str,
    pub(crate) port: usize,
    pub(crate) summary: Option<Box<str>>,
}

/// A table of routes: paths, and the methods of each in a leaf.
pub struct Routes {
    /// Paths without parameters, as they are written in requests. They are the most exact ones. The
    /// tree would find them too, but it allocates where it may have to turn back. Ordered, because
    /// a few comparisons cost less than a hash that no client can attack.
    fixed: BTreeMap<String, Leaf>,
    /// Paths with parameters.
    tree: matchit::Router<Leaf>,
    /// All methods of the table, for `OPTIONS *`.
    allow: ByteString,
}

/// What a method and a path lead to.
#[derive(Debug, PartialEq)]
pub enum RouteMatch<'a> {
    /// An output (index into the kind's ports), with the values of the parameters, if the path has
    /// any.
    Route(usize, Option<Map>),
    /// No output: the request asks which methods there are.
    Options(&'a ByteString),
    /// No output: the path has only these methods.
    NotAllowed(&'a ByteString),
    /// No route has this path.
    NotFound,
    /// The path is not valid: it has a broken escape, or is not text.
    Malformed,
}

/// The routes of one path.
struct Leaf {
    /// As a description of the interface shows it.
    path: ByteString,
    routes: Vec<Route>,
    /// The methods that it answers.
    allow: ByteString,
}

/// A method of a path.
struct Route {
    method: &'static str,
    port: usize,
    /// Whether load must not keep it out, if the spec says so.
    reserved: Option<bool>,
    names: Vec<ByteString>,
    /// What it is for, in the words of the spec.
    summary: Option<Box<str>>,
    /// Its number in the list, from 1, and where its path is in the spec.
    number: usize,
    span: Span,
}

impl Routes {
    /// Reads the list `routes` of a node of `kind`, whose last port is `out[]`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn read(list: &Item, kind: &Kind) -> Result<Routes, Vec<Refusal>> {
        Table::read(list, kind)?.finish()
    }

    /// The same list as lines, path by path. Conflicts between paths are not looked for.
    ///
    /// # Errors
    /// As for [`Routes::read`].
    pub(crate) fn lines(list: &Item, kind: &Kind) -> Result<Vec<RouteLine>, Vec<Refusal>> {
        let table = Table::read(list, kind)?;
        let of_path = |(shape, routes): (String, Vec<Route>)| {
            let names = routes[0].names.clone();
            let path = with_names(&shape, &names);
            let has_rest = shape.contains("{*");
            let line = move |route: Route| RouteLine {
                path: path.clone(),
                names: names.clone(),
                has_rest,
                method: route.method,
                port: route.port,
                summary: route.summary,
            };
            routes.into_iter().map(line)
        };
        match table.refusals.is_empty() {
            true => Ok(table.paths.into_iter().flat_map(of_path).collect()),
            false => Err(table.refusals),
        }
    }

    /// What a method and a path lead to. Of all paths that match, the one that is most exact from
    /// the left decides; then the method decides. This allocates only for parameters and escapes.
    pub fn find(&self, method: &str, path: &str) -> RouteMatch<'_> {
        if path == "*" && method == "OPTIONS" {
            return RouteMatch::Options(&self.allow);
        }
        // Most paths come as they are written in the table, which is in the normal spelling.
        if let Some(leaf) = self.fixed.get(path) {
            return leaf.find(method);
        }
        let Some(path) = pattern::normal(path) else { return RouteMatch::Malformed };
        if let Some(leaf) = self.fixed.get(&*path) {
            return leaf.find(method);
        }
        let Ok(matched) = self.tree.at(&path) else { return RouteMatch::NotFound };
        let Some(route) = matched.value.route(method) else {
            return matched.value.without(method);
        };
        let values = matched.params.iter().map(|(_, value)| pattern::decode(value));
        let named = route.names.iter().zip(values);
        let params = named.map(|(name, value)| Some((name.clone(), Value::Text(value?))));
        match params.collect::<Option<Map>>() {
            Some(params) => RouteMatch::Route(route.port, Some(params)),
            None => RouteMatch::Malformed,
        }
    }

    /// The output of a method and a path, if there is one, and whether the spec reserves it.
    pub(super) fn foresee(&self, method: &str, path: &str) -> Option<(usize, Option<bool>)> {
        self.leaf(path)?.route(method).map(|route| (route.port, route.reserved))
    }

    /// The path in the table that matches this one.
    pub(super) fn path_of(&self, path: &str) -> Option<ByteString> {
        self.leaf(path).map(|leaf| leaf.path.clone())
    }

    fn leaf(&self, path: &str) -> Option<&Leaf> {
        let path = pattern::normal(path)?;
        match self.fixed.get(&*path) {
            Some(leaf) => Some(leaf),
            None => self.tree.at(&path).ok().map(|matched| matched.value),
        }
    }
}

impl Leaf {
    /// What a method leads to, where the path has no parameters.
    fn find(&self, method: &str) -> RouteMatch<'_> {
        self.route(method)
            .map_or_else(|| self.without(method), |route| RouteMatch::Route(route.port, None))
    }

    /// The route of a method: GET's serves HEAD too, and ANY's whatever no other one does.
    fn route(&self, method: &str) -> Option<&Route> {
        let of = |method: &str| self.routes.iter().find(|route| route.method == method);
        let get = || (method == "HEAD").then(|| of("GET")).flatten();
        of(method).or_else(get).or_else(|| of(ANY))
    }

    /// The result for a method that has no route.
    fn without(&self, method: &str) -> RouteMatch<'_> {
        match method {
            "OPTIONS" => RouteMatch::Options(&self.allow),
            _ => RouteMatch::NotAllowed(&self.allow),
        }
    }
}

/// A table that is being read.
#[derive(Default)]
struct Table {
    /// The routes of each shape of a path, in their order.
    paths: IndexMap<String, Vec<Route>>,
    refusals: Vec<Refusal>,
}

const EXAMPLE: &str = "write {method: GET, path: /users/:id, port: 'out[0]'}";

impl Table {
    fn read(list: &Item, kind: &Kind) -> Result<Table, Vec<Refusal>> {
        let items = match &list.data {
            Data::List(items) if !items.is_empty() => items,
            Data::List(_) => {
                return Err(vec![Refusal::new(list.span, "a router without routes", EXAMPLE)]);
            }
            _ => {
                let message = format!("routes takes a list, found {}", list.sort());
                return Err(vec![Refusal::new(list.span, message, EXAMPLE)]);
            }
        };
        let mut table = Table::default();
        for (at, item) in items.iter().enumerate() {
            table.add(at + 1, item, kind);
        }
        Ok(table)
    }

    fn add(&mut self, number: usize, item: &Item, kind: &Kind) {
        let Data::Map(entries) = &item.data else {
            let message = format!("a route is a mapping, found {}", item.sort());
            self.refusals.push(Refusal::new(item.span, message, EXAMPLE));
            return;
        };
        for entry in entries {
            if !["method", "path", "port", "reserved", "summary"].contains(&entry.key.as_str()) {
                let message = format!("a route has no key '{}'", entry.key);
                self.refusals.push(Refusal::new(entry.span, message, KEYS));
            }
        }
        let get = |key| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
        let need = |key| {
            let without = || Refusal::new(item.span, format!("a route without '{key}'"), EXAMPLE);
            get(key).ok_or_else(without)
        };
        let methods = need("method").and_then(methods);
        let pattern = need("path").and_then(|item| Ok((item.span, pattern(item)?)));
        let port = need("port").and_then(|item| port(item, kind));
        let reserved = get("reserved").map(is_reserved).transpose();
        let summary = get("summary").map(|item| text(item, "summary")).transpose();
        match (methods, pattern, port, reserved, summary) {
            (Ok(methods), Ok((span, pattern)), Ok(port), Ok(reserved), Ok(summary)) => {
                let Pattern { shape, names } = pattern;
                for method in methods {
                    let (names, summary) = (names.clone(), summary.map(Box::from));
                    let route = Route { method, port, reserved, names, summary, number, span };
                    self.insert(&shape, route);
                }
            }
            (methods, pattern, port, reserved, summary) => {
                let wrong =
                    [methods.err(), pattern.err(), port.err(), reserved.err(), summary.err()];
                self.refusals.extend(wrong.into_iter().flatten());
            }
        }
    }

    fn insert(&mut self, shape: &str, route: Route) {
        let routes = self.paths.entry(shape.to_owned()).or_default();
        if let Some(first) = routes.iter().find(|known| known.method == route.method) {
            let (method, other) = (route.method, first.number);
            let message = format!("route {} takes {method} from route {other}", route.number);
            let help = "the two paths match the same; remove one, or give it another method";
            self.refusals.extend(both(first.span, route.span, message, help));
            return;
        }
        routes.push(route);
    }

    fn finish(mut self) -> Result<Routes, Vec<Refusal>> {
        let (mut fixed, mut tree) = (BTreeMap::new(), matchit::Router::new());
        let all = allow(self.paths.values().flatten());
        // The leaves move into the tree, but a later conflict still has to name the route that it
        // met.
        let first = |(shape, routes): (&String, &Vec<Route>)| {
            (shape.clone(), (routes[0].number, routes[0].span))
        };
        let firsts: HashMap<String, (usize, Span)> = self.paths.iter().map(first).collect();
        for (shape, routes) in self.paths {
            let (allow, path) = (allow(routes.iter()), with_names(&shape, &routes[0].names).into());
            let is_fixed = routes[0].names.is_empty();
            let leaf = Leaf { path, routes, allow };
            if is_fixed {
                fixed.insert(pattern::literal_of(&shape), leaf);
                continue;
            }
            let Err(error) = tree.insert(&shape, leaf) else { continue };
            let (number, span) = firsts[&shape];
            let other = match &error {
                matchit::InsertError::Conflict { with } => firsts.get(with),
                _ => None,
            };
            let help =
                "of :name, *name and a {name} with text on both sides only one can stand there";
            match other {
                Some(&(other, first)) => {
                    let message = format!("route {number} and route {other} are ambiguous");
                    self.refusals.extend(both(first, span, message, help));
                }
                None => {
                    let message = format!("route {number} cannot be: {error}");
                    self.refusals.push(Refusal::new(span, message, help));
                }
            }
        }
        match self.refusals.is_empty() {
            true => Ok(Routes { fixed, tree, allow: all }),
            false => Err(self.refusals),
        }
    }
}

fn text<'a>(item: &'a Item, what: &str) -> Result<&'a str, Refusal> {
    if let Data::Scalar { text, .. } = &item.data {
        return Ok(text);
    }
    let message = format!("{what} takes a text, found {}", item.sort());
    Err(Refusal::new(item.span, message, EXAMPLE))
}

/// One method, or a list of them; none of them twice.
fn methods(item: &Item) -> Result<Vec<&'static str>, Refusal> {
    let one = std::slice::from_ref(item);
    let items = if let Data::List(items) = &item.data { items } else { one };
    if items.is_empty() {
        let help = format!("write a method, or {ANY} for all");
        return Err(Refusal::new(item.span, "a route without a method", help));
    }
    let method = |item| {
        let text = text(item, "method")?;
        let known = METHODS.into_iter().chain([ANY]).find(|known| *known == text);
        known.ok_or_else(|| {
            let message = format!("no method is called '{text}'");
            let help = format!("write one of {}, or {ANY} for all", METHODS.join(", "));
            Refusal::new(item.span, message, help)
        })
    };
    items.iter().map(method).collect()
}

fn pattern(item: &Item) -> Result<Pattern, Refusal> {
    let parsed = Pattern::parse(text(item, "path")?);
    parsed.map_err(|(message, help)| Refusal::new(item.span, message, help))
}

fn port(item: &Item, kind: &Kind) -> Result<usize, Refusal> {
    let text = text(item, "port")?;
    kind.port_index(text).filter(|port| *port >= kind.ports.len() - 1).ok_or_else(|| {
        let message = format!("'{text}' is not an output for a route");
        Refusal::new(item.span, message, "write out[0], out[1] and so on")
    })
}

fn is_reserved(item: &Item) -> Result<bool, Refusal> {
    let text = text(item, "reserved")?;
    text.parse().map_err(|_| {
        let message = format!("'reserved' is true or false, not '{text}'");
        let help = "with true, requests of this route have a place that load cannot take";
        Refusal::new(item.span, message, help)
    })
}

/// A conflict of two routes, shown at both.
fn both(first: Span, second: Span, message: String, help: &str) -> [Refusal; 2] {
    let here = format!("{message}; this is the first of the two");
    [Refusal::new(second, message, help), Refusal::new(first, here, "")]
}

/// The methods that these routes answer, as in the header `Allow`.
fn allow<'a>(routes: impl Iterator<Item = &'a Route> + Clone) -> ByteString {
    let has = |method: &str| routes.clone().any(|route| [method, ANY].contains(&route.method));
    let answers = |method: &&&str| match **method {
        "HEAD" => has("HEAD") || has("GET"),
        "OPTIONS" => true,
        method => has(method),
    };
    METHODS.iter().filter(answers).copied().collect::<Vec<_>>().join(", ").into()
}
