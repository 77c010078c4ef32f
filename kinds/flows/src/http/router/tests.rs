//! Tests of the router: its rules by example, and its tree compared with a matcher that tries every
//! route.

use std::net::SocketAddr;

use bytes::Bytes;
use proptest::collection;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use sinew_core::Refusal;
use sinew_flow::Reply;
use sinew_spec::{Data, Entry, Item, Span};

use super::*;
use crate::http::request::Sending;
use crate::testing::{refusals, reply, try_plan};

/// Index of `out[0]`.
const OUT: usize = 2;

/// A router whose outputs lead nowhere: what it passes on is the reply.
fn graph(routes: &str) -> String {
    format!(
        "- {{kind: begin, name: begin, ports: {{out: [{{name: router, port: in}}]}}}}\n\
         - kind: router\n  name: router\n  routes: [{routes}]\n"
    )
}

const USERS: &str = "{method: GET, path: /users, port: 'out[0]'}, \
     {method: [PUT, POST], path: '/users/:id', port: 'out[1]'}, \
     {method: GET, path: '/users/{name}', port: 'out[2]'}, \
     {method: GET, path: '/users/me', port: 'out[3]'}, \
     {method: ANY, path: '/files/*rest', port: 'out[4]'}, \
     {method: GET, path: '/images/{name}.png', port: 'out[5]'}, \
     {method: GET, path: '/füße und/x', port: 'out[6]'}";

fn packet(method: &str, path: &str) -> Value {
    Value::map([("method", Value::text(method)), ("path", Value::text(path))])
}

fn ask(method: &str, path: &str) -> Reply {
    reply(&graph(USERS), packet(method, path))
}

/// The parameters that come out, as JSON; `null` for a path without.
fn params(method: &str, path: &str) -> serde_json::Value {
    let out = ask(method, path).expect("a route").expect("the packet");
    out.field("params").expect("a field").to_json().expect("JSON")
}

fn status(method: &str, path: &str) -> u16 {
    ask(method, path).expect_err("no route").status()
}

#[test]
fn a_path_gives_its_parameters_in_plain_text() {
    assert_eq!(params("GET", "/users"), serde_json::json!(null));
    assert_eq!(params("POST", "/users/7"), serde_json::json!({"id": "7"}));
    assert_eq!(params("GET", "/users/7"), serde_json::json!({"name": "7"}));
    assert_eq!(params("GET", "/users/a%2Fb%20%c3%a4"), serde_json::json!({"name": "a/b ä"}));
    assert_eq!(params("PATCH", "/files/a/b.txt"), serde_json::json!({"rest": "a/b.txt"}));
    assert_eq!(params("GET", "/images/a.b.png"), serde_json::json!({"name": "a.b"}));
}

#[test]
fn a_slash_at_the_end_and_empty_segments_count() {
    for path in ["/users/", "/users//x", "/users/7/", "/files/", "/files", "", "users", "//users"] {
        assert_eq!(status("GET", path), 404, "{path}");
    }
}

#[test]
fn an_escape_and_what_it_stands_for_are_one_path() {
    assert_eq!(params("GET", "/%75sers"), serde_json::json!(null));
    assert_eq!(params("GET", "/f%c3%bc%C3%9Fe%20und/x"), serde_json::json!(null));
    // An escaped slash does not divide segments.
    assert_eq!(status("GET", "/users%2Fme"), 404);
    for path in ["/users/%zz", "/users/%4", "/%", "/users/%ff"] {
        assert_eq!(status("GET", path), 400, "{path}");
    }
}

#[test]
fn the_most_exact_path_decides_and_then_the_method() {
    assert_eq!(params("GET", "/users/me"), serde_json::json!(null));
    let error = ask("POST", "/users/me").expect_err("only GET");
    assert_eq!(error.status(), 405);
    assert_eq!(error.headers(), [("allow".into(), "GET, HEAD, OPTIONS".into())]);
    assert_eq!(status("get", "/users/me"), 405);
}

#[test]
fn head_goes_where_get_does() {
    assert_eq!(params("HEAD", "/users/7"), serde_json::json!({"name": "7"}));
    let both = "{method: GET, path: /, port: 'out[0]'}, {method: HEAD, path: /, port: 'out[1]'}";
    let graph = graph(both)
        + "  ports: {'out[1]': [{name: head, port: in}]}\n- {kind: router, name: head, routes: \
           [{method: GET, path: /, port: 'out[0]'}]}\n";
    assert_eq!(reply(&graph, packet("HEAD", "/")), Ok(Some(packet("HEAD", "/"))));
}

#[test]
fn options_is_answered_where_it_has_no_route() {
    let answer = ask("OPTIONS", "/users/7").expect("an answer").expect("a value");
    let allow = "GET, HEAD, POST, PUT, OPTIONS";
    let expected = serde_json::json!({"status": 204, "header": {"allow": allow}});
    assert_eq!(answer.to_json(), Ok(expected));
    assert_eq!(params("OPTIONS", "/files/x"), serde_json::json!({"rest": "x"}));
    let all = ask("OPTIONS", "*").expect("an answer").expect("a value").to_json().expect("JSON");
    assert_eq!(all["header"]["allow"], "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE");
    assert_eq!(status("OPTIONS", "/nowhere"), 404);
}

#[test]
fn an_error_goes_to_the_error_port() {
    let graph =
        graph(USERS) + "  ports: {error: [{name: sorry, port: in}]}\n- {kind: nop, name: sorry}\n";
    let reply = reply(&graph, packet("DELETE", "/users/7")).expect("a reply").expect("a value");
    assert_eq!(reply.field("status"), Ok(Value::Integer(405)));
    assert_eq!(reply.field("node"), Ok(Value::text("router")));
}

#[test]
fn what_is_no_request_is_an_error() {
    for packet in [Value::Null, Value::Integer(3), Value::map([("method", Value::text("GET"))])] {
        let error = reply(&graph(USERS), packet).expect_err("no request");
        assert!(error.text().contains("texts 'method' and 'path'"), "{error}");
    }
}

fn request(method: &str, path: &str) -> Value {
    let request = hyper::Request::builder().method(method).uri(path).body(()).expect("a request");
    let remote = SocketAddr::from(([127, 0, 0, 1], 9));
    let request = Request::new(
        request.into_parts().0,
        Sending::Whole(Bytes::from_static(b"b")),
        "http",
        remote,
    );
    Value::Document(Arc::new(request))
}

/// The address of a value.
fn place(value: &Value) -> *const () {
    let Value::Document(document) = value else { panic!("no document") };
    Arc::as_ptr(document).cast()
}

#[test]
fn a_request_is_passed_on_in_place_and_copied_only_if_it_is_shared() {
    for path in ["/users", "/users/7"] {
        let alone = request("GET", path);
        let before = place(&alone);
        let after = reply(&graph(USERS), alone).expect("a route").expect("the packet");
        assert_eq!(place(&after), before, "{path}");
    }
    let shared = request("GET", "/users/7");
    let after = reply(&graph(USERS), shared.clone()).expect("a route").expect("the packet");
    assert_ne!(place(&after), place(&shared));
    assert_eq!(shared.field("params"), Ok(Value::map::<&str>([])));
    assert_eq!(after.field("params"), Ok(Value::map([("name", Value::text("7"))])));
    assert_eq!(after.field("remote"), shared.field("remote"));
}

/// What is wrong with a table, and the text that each refusal points at.
fn wrong(routes: &str) -> Vec<(String, String)> {
    let graph = graph(routes);
    let at = |span: Span| graph[span.start as usize..][..span.len as usize].to_owned();
    let shown = |refusal: Refusal| (at(refusal.span.expect("a place")), refusal.to_string());
    refusals(&graph).into_iter().map(shown).collect()
}

#[test]
fn what_is_wrong_is_said_where_it_stands() {
    for (routes, at, what) in [
        ("", "[", "a router without routes"),
        ("7", "7", "a route is a mapping"),
        ("{method: GET, path: a, port: 'out[0]'}", "a", "does not begin with '/'"),
        ("{method: GET, path: /, port: 'out[0]', x: 1}", "x", "no key 'x'"),
        ("{method: get, path: /, port: 'out[0]'}", "get", "no method is called 'get'"),
        ("{method: [], path: /, port: 'out[0]'}", "[", "without a method"),
        ("{method: GET, path: [], port: 'out[0]'}", "[", "path takes a text"),
        ("{method: GET, path: /, port: out}", "out", "'out' is not an output for a route"),
        ("{method: GET, path: /, port: error}", "error", "is not an output for a route"),
        (
            "{method: GET, path: /, port: 'out[9999]'}",
            "'out[9999]'",
            "is not an output for a route",
        ),
        ("{method: GET, path: '/:', port: 'out[0]'}", "'/:'", "not a name of a parameter"),
        ("{method: GET, path: '/:a-b', port: 'out[0]'}", "'/:a-b'", "not a name of a parameter"),
        ("{method: GET, path: '/{a', port: 'out[0]'}", "'/{a'", "has no partner"),
        ("{method: GET, path: '/a}', port: 'out[0]'}", "'/a}'", "has no partner"),
        ("{method: GET, path: '/{a}{b}', port: 'out[0]'}", "'/{a}{b}'", "two parameters in one"),
        ("{method: GET, path: '/:a/:a', port: 'out[0]'}", "'/:a/:a'", "two parameters 'a'"),
        ("{method: GET, path: '/*a/b', port: 'out[0]'}", "'/*a/b'", "nothing can follow"),
        ("{method: GET, path: '/x{*a}', port: 'out[0]'}", "'/x{*a}'", "mixes text and '*'"),
        ("{method: GET, path: '/%4', port: 'out[0]'}", "'/%4'", "a '%' without two digits"),
    ] {
        let wrong = wrong(routes);
        assert_eq!(wrong.len(), 1, "{routes}: {wrong:?}");
        assert_eq!(wrong[0].0, at, "{routes}");
        assert!(wrong[0].1.contains(what), "{routes}: {}", wrong[0].1);
    }
}

#[test]
fn all_errors_of_a_table_are_said_at_once() {
    let wrong = wrong("{method: nope, path: nope, port: nope}, {path: /}");
    assert_eq!(wrong.len(), 5, "{wrong:?}");
}

#[test]
fn two_routes_that_meet_are_both_named() {
    let same = "{method: [GET, PUT], path: '/a/:x', port: 'out[0]'}, \
                {method: PUT, path: '/a/{y}', port: 'out[1]'}";
    let wrong_same = wrong(same);
    let places: Vec<_> = wrong_same.iter().map(|(at, _)| at.as_str()).collect();
    assert_eq!(places, ["'/a/{y}'", "'/a/:x'"]);
    assert!(wrong_same[0].1.contains("route 2 takes PUT from route 1"), "{}", wrong_same[0].1);
    let unclear = "{method: GET, path: '/a/*x', port: 'out[0]'}, \
                   {method: PUT, path: '/a/:y', port: 'out[1]'}";
    let wrong = wrong(unclear);
    let places: Vec<_> = wrong.iter().map(|(at, _)| at.as_str()).collect();
    assert_eq!(places, ["'/a/:y'", "'/a/*x'"]);
    assert!(wrong[0].1.contains("route 2 and route 1 are ambiguous"), "{}", wrong[0].1);
}

#[test]
fn a_router_without_routes_does_not_compile() {
    let text = "- {kind: begin, name: begin, ports: {out: [{name: router, port: in}]}}\n\
                - {kind: router, name: router}\n";
    assert!(try_plan(text).expect_err("routes").contains("routes"));
}

fn item(data: Data) -> Item {
    Item::new(Span::default(), data)
}

fn text(text: &str) -> Item {
    item(Data::Scalar { text: text.to_owned(), plain: false })
}

fn routes_of(paths: &[(&str, String)]) -> Result<Routes, Vec<Refusal>> {
    let entry = |(key, value): (&str, String)| {
        let value = text(&value);
        Entry { key: key.to_owned(), span: Span::default(), value }
    };
    let route = |(at, (method, path)): (usize, &(&str, String))| {
        let port = format!("out[{at}]");
        let entries = [("method", (*method).to_owned()), ("path", path.clone()), ("port", port)];
        item(Data::Map(entries.map(entry).into()))
    };
    let list = paths.iter().enumerate().map(route).collect();
    Routes::read(&item(Data::List(list)), &INFO)
}

#[test]
fn a_route_without_parameters_allocates_nothing() {
    let table = [("GET", "/ping"), ("POST", "/ping"), ("ANY", "/ping/pong"), ("GET", "/:id")];
    let routes = routes_of(&table.map(|(method, path)| (method, path.to_owned()))).expect("routes");
    let mut found = Vec::with_capacity(4);
    let allocations = allocation_counter::measure(|| {
        for (method, path) in
            [("GET", "/ping"), ("HEAD", "/ping"), ("POST", "/ping"), ("PUT", "/ping/pong")]
        {
            found.push(routes.find(method, path));
        }
        assert!(matches!(routes.find("PUT", "/ping"), RouteMatch::NotAllowed(_)));
        assert!(matches!(routes.find("OPTIONS", "/ping"), RouteMatch::Options(_)));
        assert!(matches!(routes.find("GET", "/no/where"), RouteMatch::NotFound));
    });
    assert_eq!(found, [0, 0, 1, 2].map(|at| RouteMatch::Route(OUT + at, None)));
    assert_eq!(allocations.count_total, 0);
    // The counter does count allocations.
    let parameters = allocation_counter::measure(|| drop(routes.find("GET", "/x")));
    assert!(parameters.count_total > 0);
}

/// How exactly a route matches a path, segment by segment: smaller is more exact. `None` if it does
/// not match.
fn exactness(route: &str, path: &str) -> Option<Vec<u8>> {
    let mut segments = path.split('/');
    let mut exactness = Vec::new();
    for part in route.split('/') {
        if part.starts_with('*') {
            let rest: Vec<_> = segments.by_ref().collect();
            exactness.push(2);
            return (!rest.join("/").is_empty()).then_some(exactness);
        }
        let segment = segments.next()?;
        match part.starts_with(':') {
            true if segment.is_empty() => return None,
            true => exactness.push(1),
            false if part == segment => exactness.push(0),
            false => return None,
        }
    }
    segments.next().is_none().then_some(exactness)
}

/// Tries every route.
fn naive(routes: &[(&str, String)], method: &str, path: &str) -> Result<usize, u16> {
    let best = routes.iter().filter_map(|(_, route)| exactness(route, path)).min();
    let best = best.ok_or(404u16)?;
    let of = |method: &str| {
        let has = |(own, route): &(&str, String)| {
            *own == method && exactness(route, path).as_ref() == Some(&best)
        };
        routes.iter().position(has)
    };
    let get = if method == "HEAD" { of("GET") } else { None };
    let options = if method == "OPTIONS" { 204 } else { 405 };
    of(method).or(get).or_else(|| of("ANY")).ok_or(options)
}

fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    (0..texts.len()).prop_map(|at| texts[at])
}

fn tables() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let segment = prop_oneof![
        4 => one_of(&["a", "b", "ab", "abc", ""]).prop_map(str::to_owned),
        2 => Just(":x".to_owned()),
        1 => Just("*x".to_owned()),
    ];
    let numbered = |segments: Vec<String>| {
        let mut path = String::new();
        for (at, segment) in segments.iter().enumerate() {
            let is_named = segment.starts_with([':', '*']);
            path += &if is_named { format!("/{segment}{at}") } else { format!("/{segment}") };
        }
        path
    };
    let path = collection::vec(segment, 1..5).prop_map(numbered);
    let method = one_of(&["GET", "HEAD", "POST", "OPTIONS", "ANY"]);
    collection::vec((method, path), 1..12)
}

proptest! {
    #[test]
    fn the_tree_finds_what_trying_every_route_finds(
        mut table in tables(),
        paths in collection::vec("(/(a|b|c|ab|abc)?){1,5}", 1..20),
        method in one_of(&["GET", "HEAD", "POST", "OPTIONS", "PUT"]),
        keep in any::<u64>(),
    ) {
        // A table that is refused loses one route after the other until it is accepted.
        let mut keep = keep as usize;
        let routes = loop {
            match routes_of(&table) {
                Ok(routes) => break routes,
                Err(_) => drop(table.swap_remove(keep % table.len())),
            }
            if table.is_empty() {
                return Ok(());
            }
            keep = keep.rotate_left(7);
        };
        for path in &paths {
            let found = match routes.find(method, path) {
                RouteMatch::Route(port, _) => Ok(port - OUT),
                RouteMatch::NotFound => Err(404),
                RouteMatch::NotAllowed(_) => Err(405),
                RouteMatch::Options(_) => Err(204),
                RouteMatch::Malformed => Err(400),
            };
            prop_assert_eq!(found, naive(&table, method, path), "{} {} {:?}", method, path, table);
        }
    }

    #[test]
    fn no_path_of_a_route_and_no_path_of_a_request_breaks_the_table(
        route in "[/:*{}%a-c]{0,12}|\\PC*",
        path in "[/:*{}%a-c0-9]{0,12}|\\PC*",
    ) {
        if let Ok(routes) = routes_of(&[("GET", route)]) {
            let _ = (routes.find("GET", &path), routes.find("PUT", &path));
        }
    }
}
