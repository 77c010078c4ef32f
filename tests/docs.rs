//! The guides tell the truth: their graphs compile, and the files that they name are there.

use std::fs;
use std::path::Path;

use sinew_spec::plan::Machine;
use sinew_spec::{Source, compile, render};

/// What a path of this repository begins with.
const FOLDERS: [&str; 7] = ["crates/", "docs/", "examples/", "fuzz/", "graphs/", "src/", "tests/"];

/// Every page of `docs`, with its name.
fn pages() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let paths = fs::read_dir(folder).expect("docs").map(|entry| entry.expect("an entry").path());
    let pages = paths.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let page = |path| (format!("{path:?}"), fs::read_to_string(&path).expect("UTF-8"));
    pages.map(page).collect()
}

#[test]
fn every_graph_in_a_guide_compiles() {
    let kinds: Vec<_> =
        sinew_nodes::NODES.iter().chain(sinew_services::SERVICES).map(|row| row.kind).collect();
    let machine = Machine { cpus: vec![0, 1] };
    let mut graphs = 0;
    for (page, text) in pages() {
        let blocks = text.split("```yaml\n").skip(1);
        let blocks = blocks.map(|rest| rest.split("```").next().unwrap_or(rest));
        for text in blocks.filter(|block| block.starts_with("name:")) {
            let source = Source { file: &page, text, overrides: &[] };
            let errors = compile(&source, &kinds, &machine).err().unwrap_or_default();
            assert!(errors.is_empty(), "{}", render(&errors, text, false));
            graphs += 1;
        }
    }
    assert!(graphs > 0, "no guide shows a graph that begins with 'name:'");
}

#[test]
fn every_file_that_a_guide_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (page, text) in pages() {
        // Between backticks stands every second part.
        let quoted = text.split('`').skip(1).step_by(2);
        for path in quoted.filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder))) {
            assert!(root.join(path).exists(), "{page} names `{path}`, which is not there");
        }
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://")) {
            let (file, section) = link.split_once('#').unwrap_or((link, ""));
            let path = root.join("docs").join(file);
            assert!(path.exists(), "{page} links to {link}");
            let there = section.is_empty() || sections(&path).any(|there| there == section);
            assert!(there, "{page} links to {link}, and there is no such section");
        }
    }
}

/// The sections of a page, as links name them.
fn sections(page: &Path) -> impl Iterator<Item = String> {
    let text = fs::read_to_string(page).expect("UTF-8");
    let name = |heading: &str| heading.trim_start_matches(['#', ' ']).to_lowercase();
    let heads: Vec<_> = text.lines().filter(|line| line.starts_with('#')).map(name).collect();
    heads.into_iter().map(|head| head.replace(' ', "-"))
}
