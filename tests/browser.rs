//! The dashboard's page in a real browser: against made-up data, and against real runs of
//! `graphs/robot/robot.yaml`, `graphs/axis/axis.yaml` and `graphs/http/users.yaml`. The checks are
//! written in JavaScript, in `web/test`.
//!
//! Needs node and npm (with the npm registry, or its cache) and a Chromium: the one that
//! SINEW_TEST_BROWSER names, or the first in PATH. The packages are installed to `target/web-test`,
//! never beside the sources. Playwright drives the browser. axe-core, which is an independent
//! judge, says whether people with poor sight, with a screen reader or with only a keyboard can use
//! the page. SINEW_TEST_SHOTS names a folder for pictures.

#[path = "cli/program.rs"]
#[expect(dead_code, reason = "the tests of the command line use the rest of it")]
mod program;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;
use std::{env, fs, io, thread};

use rustix::process::Signal;

use program::{Running, SINEW, graph_in, is_alive, ours, skip, wait_until};

/// Names of Chromium's program.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
/// The files of `web/` that the tests need.
const SOURCES: [&str; 6] =
    ["package.json", "package-lock.json", "tsconfig.json", "app.css", "index.html", "icon.svg"];

/// The folder with the page's sources, tests and packages; or what is missing.
static PACKAGES: LazyLock<Result<PathBuf, String>> = LazyLock::new(install);

/// Only one browser at a time: each draws without a graphics card and keeps several CPUs busy. The
/// compilation waits too: while it runs, the page would look slower than it is.
static BROWSING: Mutex<()> = Mutex::new(());

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Copies `web/` to the build folder, and installs there the packages in its lock file.
fn install() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("web-test");
    let web = ours("web");
    for part in ["src", "test"] {
        copy(&web.join(part), &folder.join(part)).map_err(|e| format!("{part}: {e}"))?;
    }
    for file in SOURCES {
        fs::copy(web.join(file), folder.join(file)).map_err(|e| format!("{file}: {e}"))?;
    }
    let lock = fs::read(folder.join("package-lock.json")).map_err(|e| e.to_string())?;
    let installed = folder.join("node_modules/.installed-by-lock");
    if !fs::read(&installed).is_ok_and(|of| of == lock) {
        let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
        said(Command::new("npm").args(arguments).current_dir(&folder))?;
        fs::write(installed, lock).map_err(|e| e.to_string())?;
    }
    Ok(folder)
}

/// Everything that a program printed, if it ended with success.
fn said(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("'{name}' cannot be run ({e}); install it"))?;
    let all = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&all).into_owned();
    if output.status.success() { Ok(text) } else { Err(format!("'{name}' failed:\n{text}")) }
}

/// The path of the browser.
fn browser() -> Result<PathBuf, String> {
    if let Some(named) = env::var_os("SINEW_TEST_BROWSER") {
        return Ok(named.into());
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let all = env::split_paths(&folders).flat_map(|folder| BROWSERS.map(|name| folder.join(name)));
    let lack = "no Chromium: install it, or name one in SINEW_TEST_BROWSER";
    all.into_iter().find(|path| path.is_file()).ok_or_else(|| lack.into())
}

/// The packages and the browser; or what is missing.
fn ready() -> Result<(&'static Path, PathBuf), String> {
    let folder = PACKAGES.as_ref().map_err(Clone::clone)?;
    Ok((folder.as_path(), browser()?))
}

/// Runs the checks of a script. If they fail, the test fails with their output.
#[expect(clippy::print_stdout, reason = "what was measured is for who reads the test's output")]
fn hold(folder: &Path, browser: &Path, script: &str, argument: &str) {
    // The other test may have failed. This is no reason to fail here too.
    let _alone = BROWSING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new("node");
    command.arg(format!("test/{script}")).arg(argument).current_dir(folder);
    match said(command.env("SINEW_TEST_BROWSER", browser)) {
        Ok(text) => println!("{text}"),
        Err(text) => panic!("{text}"),
    }
}

/// A run with a dashboard. The run ends when this is dropped.
struct Shown {
    running: Running,
    address: String,
}

/// The robot's graph with more patience: a browser that draws without a graphics card makes the
/// core late. A core that stopped because of this would say nothing about the page.
fn patient(name: &str) -> String {
    let graphs = ours("graphs");
    let mut text = fs::read_to_string(graphs.join("robot/robot.yaml")).expect("the robot's graph");
    let (arm, path) = (graphs.join("arm"), graphs.join("robot/sinew.csv"));
    for (from, to) in [
        ("../arm", &*arm.to_string_lossy()),
        ("sinew.csv", &*path.to_string_lossy()),
        ("{policy: stop, consecutive_max: 50}", "{policy: count}"),
        ("after: 50", "after: 1000"),
    ] {
        assert!(text.contains(from), "the robot's graph has no '{from}' any more");
        text = text.replace(from, to);
    }
    graph_in(name, &text)
}

/// The axis with more patience, for the same reason. Stopping its core ends nothing else.
fn axis(name: &str) -> String {
    let text = fs::read_to_string(ours("graphs/axis/axis.yaml")).expect("the axis");
    let mut patient = text.replace("{policy: stop, consecutive_max: 50}", "{policy: count}");
    assert_ne!(patient, text, "the graph of the axis has no such policy any more");
    patient = patient.replace("after: 5}", "after: 1000}");
    graph_in(name, &patient.replace("name: axis\n", "name: axis\nhold: true\n"))
}

/// The API of users, with a dashboard.
fn users() -> String {
    let nodes = fs::read_to_string(ours("graphs/http/users.yaml")).expect("the graph of users");
    let head = "name: users\ndomains:\n  api: {flows: {workers: 1}}\n  dashboard: {}\ndomain: api\n\
                nodes:\n- {kind: dashboard, name: dashboard, domain: dashboard}\n";
    graph_in("browser_flows", &format!("{head}{nodes}"))
}

impl Shown {
    /// Starts a graph, and waits until it prints the address of its page.
    fn start(graph: String, sets: &[&str]) -> Shown {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let listen = free.expect("a free port of the loopback");
        let mut command = Command::new(SINEW);
        command.arg("run").arg(graph);
        command.args(["--set", &format!("dashboard.listen={listen}")]);
        for set in sets {
            command.args(["--set", set]);
        }
        let mut shown = Shown { running: Running::start(command), address: String::new() };
        wait_until("the run names its address", || {
            let said = shown.running.said();
            shown.address = said.lines().find_map(address).unwrap_or_default().into();
            !shown.address.is_empty()
        });
        shown
    }
}

impl Drop for Shown {
    #[expect(clippy::print_stdout, reason = "only a test that fails says what its run said")]
    fn drop(&mut self) {
        // A run that has ended by itself ignores the signal.
        self.running.signal(Signal::INT);
        while is_alive(self.running.pid()) {
            thread::sleep(Duration::from_millis(5));
        }
        if thread::panicking() {
            println!("the run said:\n{}", self.running.said());
        }
    }
}

/// The page's address with its token, if a line names it.
fn address(line: &str) -> Option<&str> {
    let found = &line[line.find("http://")?..];
    let end = found.find(|c: char| c.is_whitespace() || c == '\'').unwrap_or(found.len());
    found.contains("#token=").then_some(&found[..end])
}

#[test]
fn the_pages_scripts_bear_the_strict_types() {
    match PACKAGES.as_ref() {
        Err(lack) => skip(lack),
        Ok(folder) => {
            let _alone = BROWSING.lock().unwrap_or_else(PoisonError::into_inner);
            let types = ["run", "--silent", "types"];
            said(Command::new("npm").args(types).current_dir(folder))
                .unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

/// The page with its scripts, bundled for users who serve it themselves.
fn page(folder: &Path) -> PathBuf {
    let page = folder.join("page");
    let outdir = format!("--outdir={}", page.display());
    let arguments = ["run", "--silent", "bundle", "--", &outdir];
    let _alone = BROWSING.lock().unwrap_or_else(PoisonError::into_inner);
    let bundled = said(Command::new("npm").args(arguments).current_dir(folder));
    bundled.unwrap_or_else(|e| panic!("{e}"));
    for file in ["index.html", "icon.svg"] {
        fs::copy(folder.join(file), page.join(file)).expect("a file of the page");
    }
    page
}

#[test]
fn the_page_says_what_is_wrong_and_bears_hostile_words() {
    let (folder, browser) = match ready() {
        Ok(ready) => ready,
        Err(lack) => return skip(&lack),
    };
    hold(folder, &browser, "states.mjs", &page(folder).display().to_string());
}

#[test]
fn the_page_shows_every_field_and_keeps_a_layout() {
    let (folder, browser) = match ready() {
        Ok(ready) => ready,
        Err(lack) => return skip(&lack),
    };
    hold(folder, &browser, "panels.mjs", &page(folder).display().to_string());
}

#[test]
fn the_page_of_flows_shows_them_and_nothing_of_a_core() {
    let (folder, browser) = match ready() {
        Ok(ready) => ready,
        Err(lack) => return skip(&lack),
    };
    hold(folder, &browser, "flows.mjs", &page(folder).display().to_string());
}

#[test]
fn people_see_the_robot_move_and_stop_it_from_the_page() {
    let (folder, browser) = match ready() {
        Ok(ready) => ready,
        Err(lack) => return skip(&lack),
    };
    let sets =
        ["monitor.listen=127.0.0.1:0", "ethercat.lost_frames_max=100", "drives.watchdog_ms=1000"];
    let robot = Shown::start(patient("browser"), &sets);
    hold(folder, &browser, "dashboard.mjs", &robot.address);
}

#[test]
fn people_see_an_axis_on_the_scope_and_tune_it() {
    let (folder, browser) = match ready() {
        Ok(ready) => ready,
        Err(lack) => return skip(&lack),
    };
    let axis = Shown::start(axis("browser_axis"), &[]);
    hold(folder, &browser, "axis.mjs", &axis.address);
}

#[test]
fn people_see_the_flows_of_an_api_and_follow_a_packet() {
    let (folder, browser) = match ready() {
        Ok(ready) => ready,
        Err(lack) => return skip(&lack),
    };
    let api = Shown::start(users(), &["listener.port=0"]);
    hold(folder, &browser, "api.mjs", &api.address);
}

/// A page of a run of this graph over some seconds, made by `sinew replay --page`. The page's name
/// is `name`.
fn recorded(graph: &str, name: &str, sets: &[&str], trace: &str) -> PathBuf {
    let folder = Path::new(graph).with_file_name(format!("recorded_{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("our folder");
    let recorder = format!("recorder.folder={}", folder.display());
    let mut run = Command::new(SINEW);
    run.args(["run", graph, "--duration", "5s", "--set", "dashboard.listen=127.0.0.1:0"]);
    for set in sets.iter().chain([&&*recorder]) {
        run.args(["--set", set]);
    }
    said(&mut run).unwrap_or_else(|e| panic!("{e}"));
    let part = fs::read_dir(&folder).expect("our folder").next().expect("a part").expect("a part");
    let page = folder.join(format!("{name}.html"));
    let mut replay = Command::new(SINEW);
    replay.arg("replay").arg(part.path()).arg("--page").arg(&page).args(["--trace", trace]);
    // Status 1 means that something was not replayed: on a busy machine a recording has gaps.
    let output = replay.output().expect("our program");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)) && page.is_file(), "{told}");
    page
}

#[test]
fn a_recorded_run_plays_from_one_file_on_disk() {
    let (folder, browser) = match ready() {
        Ok(ready) => ready,
        Err(lack) => return skip(&lack),
    };
    let sets =
        ["monitor.listen=127.0.0.1:0", "ethercat.lost_frames_max=100", "drives.watchdog_ms=1000"];
    let robot =
        recorded(&patient("browser_recorded_arm"), "robot", &sets, "planner.path_speed_m_per_s");
    hold(folder, &browser, "recorded.mjs", &robot.display().to_string());
    let text = fs::read_to_string(axis("browser_recorded")).expect("the axis");
    let recorder = "  - {kind: recorder, name: recorder, domain: recorder}\n";
    let text = text.replace("domains:\n", "domains:\n  recorder: {}\n") + recorder;
    let axis = recorded(&graph_in("browser_recorded", &text), "axis", &[], "motor.position");
    hold(folder, &browser, "recorded.mjs", &axis.display().to_string());
}

#[test]
fn the_demo_of_the_readme_plays() {
    let (folder, browser) = match ready() {
        Ok(ready) => ready,
        Err(lack) => return skip(&lack),
    };
    hold(folder, &browser, "recorded.mjs", &ours("docs/demo.html").display().to_string());
}
