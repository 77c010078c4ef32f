//! Any table of routes, one `METHOD PATH` a line, and after an empty line any requests. The table
//! is refused with reasons, or leads every request to one of its outputs, or to none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_flows::{FLOWS, RouteMatch, Routes};
use sinew_spec::{Data, Entry, Item, Span};

fuzz_target!(|text: &str| {
    let (table, requests) = text.split_once("\n\n").unwrap_or((text, ""));
    let kind = FLOWS.iter().find(|row| row.kind.name == "router").expect("the kind").kind;
    let lines: Vec<_> = table.lines().take(64).filter_map(|line| line.split_once(' ')).collect();
    let routes = lines.iter().enumerate().map(|(at, (method, path))| {
        let port = format!("out[{at}]");
        let entries = [("method", *method), ("path", *path), ("port", port.as_str())];
        item(Data::Map(entries.map(|(key, value)| entry(key, value)).into()))
    });
    let routes = match Routes::read(&item(Data::List(routes.collect())), kind) {
        Ok(routes) => routes,
        Err(refusals) => {
            assert!(!refusals.is_empty(), "refused without a reason");
            return;
        }
    };
    let first = kind.ports.len() - 1;
    for (method, path) in requests.lines().filter_map(|line| line.split_once(' ')) {
        if let RouteMatch::Route(port, params) = routes.find(method, path) {
            let (_, route) = lines[port - first];
            let signs = route.matches([':', '*', '{']).count();
            assert!(params.is_none_or(|params| params.len() <= signs), "{path:?} by {route:?}");
        }
    }
});

fn item(data: Data) -> Item {
    Item::new(Span::default(), data)
}

fn entry(key: &str, value: &str) -> Entry {
    let value = item(Data::Scalar { text: value.to_owned(), plain: false });
    Entry { key: key.to_owned(), span: Span::default(), value }
}
