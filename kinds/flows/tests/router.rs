//! What the router's table costs on the path that every request takes.

use sinew_flows::{FLOWS, Found, Routes};
use sinew_spec::{Data, Entry, Item, Span};

fn item(data: Data) -> Item {
    Item::new(Span::default(), data)
}

fn route((at, (method, path)): (usize, &(&str, &str))) -> Item {
    let entry = |(key, text): (&str, &str)| {
        let value = item(Data::Scalar { text: text.to_owned(), plain: false });
        Entry { key: key.to_owned(), span: Span::default(), value }
    };
    let port = format!("out[{at}]");
    item(Data::Map([("method", *method), ("path", *path), ("port", &port)].map(entry).into()))
}

fn table(routes: &[(&str, &str)]) -> (Routes, usize) {
    let kind = FLOWS.iter().find(|row| row.kind.name == "router").expect("the kind").kind;
    let list = item(Data::List(routes.iter().enumerate().map(route).collect()));
    (Routes::read(&list, kind).expect("routes"), kind.ports.len() - 1)
}

#[test]
fn a_route_without_parameters_allocates_nothing() {
    let (routes, first) =
        table(&[("GET", "/ping"), ("POST", "/ping"), ("ANY", "/ping/pong"), ("GET", "/:id")]);
    let mut found = Vec::with_capacity(4);
    let allocations = allocation_counter::measure(|| {
        for (method, path) in
            [("GET", "/ping"), ("HEAD", "/ping"), ("POST", "/ping"), ("PUT", "/ping/pong")]
        {
            found.push(routes.find(method, path));
        }
        assert!(matches!(routes.find("PUT", "/ping"), Found::NotAllowed(_)));
        assert!(matches!(routes.find("OPTIONS", "/ping"), Found::Options(_)));
        assert!(matches!(routes.find("GET", "/no/where"), Found::NotFound));
    });
    let expected = [0, 0, 1, 2].map(|at| Found::Route(first + at, None));
    assert_eq!(found, expected);
    assert_eq!(allocations.count_total, 0);
    // The counter does count.
    let parameters = allocation_counter::measure(|| drop(routes.find("GET", "/x")));
    assert!(parameters.count_total > 0);
}
