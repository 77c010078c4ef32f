//! Dependencies between modules run down: within a crate, and within each folder of its modules, no
//! module uses one that uses it, directly or indirectly. The modules at the top of a crate are on
//! floors, which are data here. A module uses only modules on floors below its own.
//!
//! An arrow is a path that begins with `crate`, `super`, `self` or a module of the file's own, in a
//! `use` or in code. A re-export counts where it is declared. Modules below a module belong to the
//! same room as it; a part may use its own parent. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};

use super::File;

/// The modules of each crate, from the lowest floor up.
pub(crate) const FLOORS: &[(&str, &[&[&str]])] = &[
    ("crates/agent/src", &[&["boards", "desk", "ivshmem"], &["image", "keeper"], &["session"]]),
    (
        "crates/carve-out/src",
        &[&["text"], &["fault", "node", "row", "shared"], &["image", "letter"], &["registry"]],
    ),
    (
        "crates/control/src",
        &[
            &["counters", "hosts", "outside", "place", "spec", "traces"],
            &["status"],
            &["peer"],
            &["client"],
            &["server", "supervisor"],
            &["tap"],
        ],
    ),
    (
        "crates/core/src",
        &[
            &["bell", "ends", "fault", "mappings", "message", "pace"],
            &["panics", "refusal", "slots", "sys"],
            &["clock", "log", "privileges", "trace"],
            &["board", "node", "transport"],
            &["halt"],
            &["cycle"],
            &["replay"],
        ],
    ),
    (
        "crates/doctor/src",
        &[
            &["cpus", "neighbours", "root"],
            &["place"],
            &["findings"],
            &["wakeups"],
            &["cyclictest"],
            &["latency"],
            &["verdict"],
            &["show"],
        ],
    ),
    (
        "crates/figures/src",
        &[&[
            "change_points",
            "cpus",
            "distribution",
            "interval",
            "machine",
            "process",
            "short",
            "units",
            "wrap",
        ]],
    ),
    (
        "crates/flow/src",
        &[
            &["at_work", "figures", "resource", "tell", "value"],
            &["budget", "message", "pool", "spans", "values"],
            &["ends"],
            &["path"],
            &["entry"],
            &["make"],
            &["across"],
            &["testing"],
            &["crew"],
        ],
    ),
    ("crates/hosts/src", &[&["clock", "header", "in_order", "key", "sent"], &["judge", "stamps"]]),
    (
        "crates/lab/src",
        &[
            &["bar", "graph", "words"],
            &["harness", "report"],
            &["headlines", "rivals", "rounds", "show"],
            &["compare", "history", "scenario"],
            &["advise", "drill"],
        ],
    ),
    (
        "crates/link/src",
        &[
            &["memory", "message"],
            &["shape"],
            &["tuning"],
            &["cells"],
            &["region", "words"],
            &["counter", "heap", "wait"],
            &["broadcast", "latest", "queue", "semaphore"],
            &["observe", "proofs"],
        ],
    ),
    ("crates/otlp/src", &[&["context"], &["message", "sampler"], &["settings"], &["collector"]]),
    (
        "crates/plan/src",
        &[
            &["decimal", "item", "secrets", "units"],
            &["duration"],
            &["catalogue"],
            &["by_name", "plan"],
        ],
    ),
    (
        "crates/recording/src",
        &[
            &["disk", "fixture", "format", "messages", "schema"],
            &["clock", "cycle", "event", "summary"],
            &["read", "topics"],
            &["mend", "writer"],
            &["recording"],
            &["replay"],
            &["merge"],
        ],
    ),
    (
        "crates/report/src",
        &[&["chain", "links", "stats", "usage"], &["csv", "late", "requirements"], &["report"]],
    ),
    (
        "crates/runtime/src",
        &[
            &["confine", "edition", "inject", "observer", "profile", "replace"],
            &["launch"],
            &["run", "watch"],
            &["service"],
            &["kinds"],
            &["domain"],
        ],
    ),
    (
        "crates/scope/src",
        &[
            &["settings"],
            &["trace"],
            &["series"],
            &["columns", "export", "figures", "frequency", "step", "trigger"],
            &["scope"],
        ],
    ),
    (
        "crates/spec/src",
        &[
            &["diagnostic", "keys", "made", "nearest", "order"],
            &["chain", "guest", "value", "yaml"],
            &["core_only", "edit", "fields", "images"],
            &["messages", "ports"],
            &["form", "picture"],
            &["draft", "firewall", "schema"],
            &["outside", "rules"],
            &["blocks"],
            &["join"],
            &["place"],
            &["flows", "limits", "options", "requires", "shapes", "units"],
            &["hosts"],
            &["assemble"],
            &["parts"],
            &["examine"],
            &["alone"],
        ],
    ),
    (
        "crates/tune/src",
        &[&["candidates", "sides"], &["measure", "search"], &["profile"], &["show", "store"]],
    ),
    (
        "crates/view/src",
        &[
            &["news", "scene", "screen", "systemd"],
            &["theme"],
            &["fit"],
            &["plain", "rows"],
            &["live", "scope", "top"],
            &["view"],
        ],
    ),
    (
        "kinds/control/src",
        &[
            &["formula", "linear", "plant", "sections", "testing"],
            &["filter_testing"],
            &[
                "biquad",
                "cart_pendulum",
                "constant",
                "dc_motor",
                "deadband",
                "debounce",
                "derivative",
                "expression",
                "first_order",
                "hysteresis",
                "integrator",
                "limiter",
                "lowpass",
                "mux",
                "notch",
                "pid",
                "scale",
                "select",
                "signal",
                "state_machine",
                "state_space",
                "statistics",
                "sum",
                "trajectory",
                "two_mass",
                "watchdog",
            ],
            &["tuning_tests"],
        ],
    ),
    ("kinds/ethercat/src", &[&["cia402", "frame"]]),
    ("kinds/ffmpeg/src", &[&["film", "place", "sound"], &["pictures"]]),
    (
        "kinds/flows/src",
        &[
            &["json", "script", "testing", "work"],
            &["framing", "lens"],
            &["bridge", "check", "http", "path"],
            &["data"],
            &["batch", "streams"],
        ],
    ),
    (
        "kinds/robot/src",
        &[
            &["file", "kinematics", "limited", "messages", "testing", "wheels", "workspace"],
            &["arm", "path", "planar"],
            &[
                "ethercat_master",
                "ik",
                "odometry",
                "path_follower",
                "path_planner",
                "pose_limiter",
                "twist_limiter",
                "twist_select",
            ],
            &["drives", "rover", "wheeled_base"],
            &["tuning_tests"],
        ],
    ),
    ("kinds/media/src", &[&["packet", "picture", "play", "sound"]]),
    ("kinds/pictures/src", &[&["messages", "picture"], &["camera"]]),
    (
        "kinds/ros2/src",
        &[
            &["definition", "fields", "values"],
            &["messages", "settings"],
            &["picture", "session"],
            &["diagnostics", "topic", "topics", "triggers"],
            &["transforms"],
            &["node", "publisher", "subscriber"],
        ],
    ),
    (
        "kinds/services/src",
        &[&["axis_log", "hosts", "monitor", "recorder", "server"], &["dashboard", "player"]],
    ),
    (
        "kinds/zenoh/src",
        &[
            &["arrivals", "frame", "front", "news", "not_taken"],
            &["room", "send_again", "setting", "waiting"],
            &["certificate", "configuration", "inbox", "seal", "seen"],
            &["call"],
            &["say"],
            &["calls"],
            &["shared"],
            &["exchange"],
            &["line", "reach", "relayed", "renewal"],
            &["watch"],
            &["mirror"],
            &["node"],
        ],
    ),
    (
        "src",
        &[
            &["answer", "duration", "number", "part"],
            &["progress"],
            &["doctor", "load", "reach", "shell", "signals"],
            &["machine"],
            &[
                "guest",
                "import",
                "kinds",
                "lab",
                "list",
                "log",
                "new",
                "overwrite",
                "replay",
                "scope",
                "steer",
                "tap",
                "test",
                "top",
                "tune",
            ],
            &["advise", "drill", "graph", "run"],
            &["check"],
            &["cli"],
        ],
    ),
];

/// A module: its path in its crate.
type Module = Vec<String>;

/// The modules of a crate, and which module uses which.
#[derive(Default)]
pub(crate) struct Crate {
    /// The text of each module, without comments and tests.
    texts: BTreeMap<Module, String>,
    /// The re-exports of a module: the name there, and the module that it comes from.
    exports: BTreeMap<(Module, String), Module>,
}

impl Crate {
    /// The crate whose sources are in `folder`.
    pub(crate) fn of(folder: &str, files: &[File]) -> Crate {
        let mut found = Crate::default();
        for file in files {
            let Some(path) = file.path.strip_prefix(folder).and_then(|it| it.strip_prefix('/'))
            else {
                continue;
            };
            let Some(path) = path.strip_suffix(".rs") else { continue };
            let mut module: Module = path.split('/').map(str::to_owned).collect();
            if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
                module.pop();
            }
            if module.iter().all(|part| part != "tests") {
                found.texts.insert(module, code(&file.text));
            }
        }
        let exports: Vec<_> = found
            .texts
            .iter()
            .flat_map(|(at, text)| {
                let again = uses(text).filter(|(is_public, _)| *is_public).map(|(_, path)| path);
                again
                    .filter_map(|path| {
                        let (from, rest) = found.resolve(at, &path)?;
                        Some(((at.clone(), rest.last()?.clone()), from))
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
        found.exports.extend(exports);
        found
    }

    /// The module that a path leads to, and the rest of the path. `None` for a path to another
    /// crate.
    fn resolve(&self, at: &Module, path: &[String]) -> Option<(Module, Vec<String>)> {
        let mut base = at.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => (base, rest) = (Module::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            first if self.texts.contains_key(&child(at, first)) => {}
            _ => return None,
        }
        while let Some(part) = rest.first()
            && self.texts.contains_key(&child(&base, part))
        {
            base.push(part.clone());
            rest = &rest[1..];
        }
        Some((base, rest.to_vec()))
    }

    /// Each arrow between two modules of one folder. The folder's rooms count as single modules.
    pub(crate) fn arrows(&self) -> BTreeSet<(Module, Module)> {
        let mut arrows = BTreeSet::new();
        for (at, text) in &self.texts {
            for path in uses(text).map(|(_, path)| path).chain(paths(text)) {
                let Some((mut to, rest)) = self.resolve(at, &path) else { continue };
                let name = rest.first().cloned().unwrap_or_default();
                let mut seen = BTreeSet::new();
                while let Some(from) = self.exports.get(&(to.clone(), name.clone()))
                    && seen.insert(to.clone())
                {
                    to.clone_from(from);
                }
                let same = at.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if same < at.len() && same < to.len() {
                    arrows.insert((at[..=same].to_vec(), to[..=same].to_vec()));
                }
            }
        }
        arrows
    }

    /// The modules at the top of the crate.
    fn top(&self) -> BTreeSet<&str> {
        self.texts.keys().filter_map(|module| module.first()).map(String::as_str).collect()
    }
}

fn child(at: &[String], part: &str) -> Module {
    [at, &[part.to_owned()]].concat()
}

/// What is wrong with the arrows of a crate whose modules must be on these floors.
pub(crate) fn wrong(folder: &str, floors: &[&[&str]], files: &[File]) -> Vec<String> {
    let found = Crate::of(folder, files);
    let arrows = found.arrows();
    let floor = |module: &str| floors.iter().position(|floor| floor.contains(&module));
    let mut wrong = Vec::new();
    for module in found.top() {
        if floor(module).is_none() {
            wrong.push(format!("{folder}: '{module}' stands on no floor; give it one in FLOORS"));
        }
    }
    let named = floors.iter().flat_map(|floor| floor.iter());
    for module in named.filter(|module| !found.top().contains(**module)) {
        wrong.push(format!("{folder}: there is no '{module}'; take it out of FLOORS"));
    }
    for (from, to) in arrows.iter().filter(|(from, _)| from.len() == 1) {
        if floor(&from[0]) <= floor(&to[0]) {
            wrong.push(format!("{folder}: '{}' uses '{}', which is not below", from[0], to[0]));
        }
    }
    wrong
        .extend(circles(&arrows).into_iter().map(|circle| format!("{folder}: circle of {circle}")));
    wrong
}

/// Modules that use each other. These remain if, again and again, modules are removed that use no
/// remaining module or are used by none.
fn circles(arrows: &BTreeSet<(Module, Module)>) -> Option<String> {
    let mut left = arrows.clone();
    loop {
        let users: BTreeSet<_> = left.iter().map(|(from, _)| from.clone()).collect();
        let used: BTreeSet<_> = left.iter().map(|(_, to)| to.clone()).collect();
        let before = left.len();
        left.retain(|(from, to)| used.contains(from) && users.contains(to));
        if left.len() == before {
            break;
        }
    }
    let names: BTreeSet<_> = left.iter().map(|(from, _)| from.join("::")).collect();
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join(", "))
}

/// A text without comments, and without the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let line = |line: &str| line.split("//").next().unwrap_or(line).to_owned() + "\n";
    text.lines().map(line).collect()
}

/// The paths of all `use`s, one by one, and whether each is a re-export.
fn uses(text: &str) -> impl Iterator<Item = (bool, Vec<String>)> + '_ {
    text.match_indices("use ").filter(|(at, _)| is_start(text, *at)).flat_map(|(at, _)| {
        let before = text[..at].rsplit('\n').next().unwrap_or_default();
        let tree = text[at + 4..].split(';').next().unwrap_or_default();
        let mut found = Vec::new();
        expand(&[], tree, &mut found);
        found.into_iter().map(move |path| (before.trim_start().starts_with("pub"), path))
    })
}

/// Whether a `use` begins here, instead of a word that ends like this.
fn is_start(text: &str, at: usize) -> bool {
    let before = text[..at].rsplit('\n').next().unwrap_or_default().trim();
    before.is_empty() || before == "pub" || before.starts_with("pub(") && before.ends_with(')')
}

/// The paths of a tree such as `a::{b, c::{self, D as E}}`.
fn expand(prefix: &[String], tree: &str, found: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    if let Some(inner) = tree.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
        let (mut depth, mut start) = (0, 0);
        for (at, sign) in inner.char_indices().chain([(inner.len(), ',')]) {
            match sign {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(prefix, &inner[start..at], found);
                    start = (at + 1).min(inner.len());
                }
                _ => {}
            }
        }
    } else if let Some((first, rest)) = tree.split_once("::") {
        expand(&child(prefix, first.trim()), rest, found);
    } else if let Some(name) = tree.split_whitespace().next() {
        found.push(if name == "self" { prefix.to_vec() } else { child(prefix, name) });
    }
}

/// The paths in code.
fn paths(text: &str) -> impl Iterator<Item = Vec<String>> + '_ {
    let is_sign = |sign: char| sign.is_alphanumeric() || sign == '_' || sign == ':';
    text.split(move |sign| !is_sign(sign))
        .filter(|word| word.contains("::"))
        .map(|word| word.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    const FLOORS: &[&[&str]] = &[&["a"], &["b"], &["c"]];

    #[track_caller]
    fn says(files: &[(&str, &str)], words: &str) {
        let top = [("x/src/a.rs", ""), ("x/src/b.rs", ""), ("x/src/c.rs", "")];
        let given = |path: &str| files.iter().any(|(given, _)| *given == path);
        let top = top.iter().filter(|(path, _)| !given(path));
        let files: Vec<_> = top.chain(files).map(|(path, text)| file(path, text)).collect();
        let wrong = wrong("x/src", FLOORS, &files);
        match words {
            "" => assert_eq!(wrong, Vec::<String>::new()),
            words => assert!(wrong.iter().any(|it| it.contains(words)), "'{words}': {wrong:?}"),
        }
    }

    #[test]
    fn an_arrow_down_is_good_and_one_up_is_not() {
        says(&[("x/src/b.rs", "use crate::a::A;\n")], "");
        says(&[("x/src/a.rs", "use crate::b::B;\n")], "'a' uses 'b'");
        says(&[("x/src/a.rs", "fn f() {\n    crate::c::g();\n}\n")], "'a' uses 'c'");
        says(&[("x/src/a.rs", "// as crate::c::g\n")], "");
    }

    #[test]
    fn a_circle_is_found_wherever_it_lies() {
        let (one, two) = ("use super::two::Two;\n", "use crate::c::one;\n");
        says(&[("x/src/c/one.rs", one), ("x/src/c/two.rs", two)], "circle of c::one, c::two");
        // An indirect circle, through the content of a room.
        let files = [
            ("x/src/c/one.rs", "use super::two::Two;\n"),
            ("x/src/c/two.rs", ""),
            ("x/src/c/two/deep.rs", "use crate::c::{self, three::Three};\n"),
            ("x/src/c/three.rs", "pub(super) use super::one::{\n    One,\n};\n"),
        ];
        says(&files, "circle of c::one, c::three, c::two");
    }

    #[test]
    fn what_is_exported_again_counts_where_it_is_declared() {
        let lib = ("x/src/lib.rs", "pub use c::{C, Other as D};\n");
        says(&[lib, ("x/src/a.rs", "use crate::C;\n")], "'a' uses 'c'");
    }

    #[test]
    fn a_part_may_use_its_parent_and_the_parent_its_parts() {
        says(
            &[("x/src/c.rs", "mod one;\nuse one::One;\n"), ("x/src/c/one.rs", "use super::C;\n")],
            "",
        );
    }

    #[test]
    fn every_module_stands_on_a_floor_and_every_name_is_a_module() {
        says(&[("x/src/new.rs", "")], "'new' stands on no floor");
        let none = wrong("x/src", FLOORS, &[file("x/src/a.rs", ""), file("x/src/b.rs", "")]);
        assert!(none[0].contains("there is no 'c'"), "{none:?}");
    }
}
