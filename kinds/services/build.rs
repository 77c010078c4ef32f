//! Bundles the dashboard's page, so that it is served from the binary.
//!
//! `web/` is copied to the build folder, its npm packages are installed there as the lock file
//! says, and esbuild makes three scripts and one style sheet of it: the page, what draws the
//! arm and is fetched beside it, and what both use. The result is a Rust file that
//! `dashboard/page.rs` includes. Without node, npm or a network the build succeeds all the same:
//! then the file says in words what is missing, and the next build tries again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs, io};

/// The page's sources, seen from this crate.
const WEB: &str = "../../web";
/// What the bundle is made of; the rest of `web/` is for tests.
const SOURCES: [&str; 6] =
    ["package.json", "package-lock.json", "index.html", "app.css", "icon.svg", "src"];
/// What is served: path, content type, file.
const SERVED: [(&str, &str, &str); 6] = [
    ("/", "text/html; charset=utf-8", "index.html"),
    ("/app.js", "text/javascript; charset=utf-8", "app.js"),
    ("/drawing.js", "text/javascript; charset=utf-8", "drawing.js"),
    ("/shared.js", "text/javascript; charset=utf-8", "shared.js"),
    ("/app.css", "text/css; charset=utf-8", "app.css"),
    ("/icon.svg", "image/svg+xml", "icon.svg"),
];
/// The oldest node that esbuild and the tests run on.
const NODE_MAJOR_MIN: u32 = 20;
/// npm waits so long for an answer of the registry, ms.
const FETCH_TIMEOUT: &str = "--fetch-timeout=30000";
/// Leaves the page out: for checks that never serve it.
const WITHOUT: &str = "SINEW_WITHOUT_PAGE";

fn main() {
    println!("cargo::rerun-if-env-changed={WITHOUT}");
    println!("cargo::rerun-if-changed=build.rs");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={WEB}/{source}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names OUT_DIR"));
    let page = if env::var_os(WITHOUT).is_some() {
        Err(format!("it was built with {WITHOUT} set; unset it and build again"))
    } else {
        bundle(&out).inspect_err(|missing| {
            println!("cargo::warning=the dashboard's page is left out: {missing}");
            // A file that never exists makes cargo run this again at the next build.
            println!("cargo::rerun-if-changed={}", out.join("no page yet").display());
        })
    };
    fs::write(out.join("page.rs"), table(page)).expect("the build folder can be written");
}

/// Makes the page's files, in a folder of the build folder.
fn bundle(out: &Path) -> Result<(), String> {
    let (work, page) = (out.join("web"), out.join("page"));
    check_node()?;
    copy_sources(&work).map_err(|e| format!("{WEB} cannot be copied to {work:?}: {e}"))?;
    install(&work)?;
    fs::create_dir_all(&page).map_err(|e| format!("{page:?} cannot be made: {e}"))?;
    let outdir = format!("--outdir={}", page.display());
    let arguments = ["run", "--silent", "bundle", "--", &outdir];
    run(Command::new("npm").args(arguments).current_dir(&work))?;
    for file in ["index.html", "icon.svg"] {
        fs::copy(work.join(file), page.join(file)).map_err(|e| format!("{file}: {e}"))?;
    }
    Ok(())
}

fn check_node() -> Result<(), String> {
    let remedy = format!("install node >= {NODE_MAJOR_MIN} with npm, then build again");
    let version =
        run(Command::new("node").arg("--version")).map_err(|e| format!("{e}; {remedy}"))?;
    let major = version.trim().trim_start_matches('v').split('.').next().unwrap_or_default();
    match major.parse::<u32>() {
        Ok(major) if major >= NODE_MAJOR_MIN => {}
        _ => return Err(format!("node is {}; {remedy}", version.trim())),
    }
    run(Command::new("npm").arg("--version")).map_err(|e| format!("{e}; {remedy}"))?;
    Ok(())
}

/// Copies the sources; one that is gone from `web/` is gone from the copy too.
fn copy_sources(work: &Path) -> io::Result<()> {
    let _ = fs::remove_dir_all(work.join("src"));
    fs::create_dir_all(work.join("src"))?;
    for source in SOURCES.iter().filter(|source| **source != "src") {
        fs::copy(Path::new(WEB).join(source), work.join(source))?;
    }
    for entry in fs::read_dir(Path::new(WEB).join("src"))? {
        let path = entry?.path();
        fs::copy(&path, work.join("src").join(path.file_name().expect("an entry has a name")))?;
    }
    Ok(())
}

/// Installs the packages, unless those of the same lock file are there.
fn install(work: &Path) -> Result<(), String> {
    let lock = fs::read(work.join("package-lock.json")).map_err(|e| e.to_string())?;
    let installed = work.join("node_modules/.installed-by-lock");
    if fs::read(&installed).is_ok_and(|of| of == lock) {
        return Ok(());
    }
    let since = Instant::now();
    // No script of a package runs; one retry and an end to each wait, so that a build without a
    // network does not hang.
    let arguments = ["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"];
    let network =
        ["--prefer-offline", "--fetch-retries=1", "--fetch-retry-mintimeout=1000", FETCH_TIMEOUT];
    run(Command::new("npm").args(arguments).args(network).current_dir(work)).map_err(|e| {
        format!("{e}; connect to the npm registry (or fill npm's cache), then build again")
    })?;
    fs::write(installed, lock).map_err(|e| e.to_string())?;
    let seconds = since.elapsed().as_secs_f64();
    println!("cargo::warning=the dashboard's npm packages were installed in {seconds:.1} s");
    Ok(())
}

/// What the command printed, or why it failed, on one line.
fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let name = name.rsplit('/').next().unwrap_or_default().to_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("'{name}' cannot be run: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("'{name}' failed with {}: {}", output.status, summary(&output.stderr)))
}

/// The beginning of what a tool said of its failure, on one line, as a warning of cargo is.
fn summary(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = text.lines().filter(|line| !line.starts_with("npm warn"));
    let words = lines.map(|line| line.trim_start_matches("npm error").trim());
    words.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

/// The Rust file that `dashboard/page.rs` includes.
fn table(page: Result<(), String>) -> String {
    let mut files = String::new();
    if page.is_ok() {
        for (path, content, file) in SERVED {
            // Not the folder's own path: a build folder may be moved.
            let file = format!("concat!(env!(\"OUT_DIR\"), \"/page/{file}\")");
            let _ = writeln!(files, "    ({path:?}, {content:?}, include_bytes!({file})),");
        }
    }
    format!(
        "/// Path, content type and bytes of each file; empty if the page was left out.\n\
         pub(super) const FILES: &[(&str, &str, &[u8])] = &[\n{files}];\n\
         /// Why the page was left out, and what to do; `None` if it is there.\n\
         pub(super) const MISSING: Option<&str> = {:?};\n",
        page.err()
    )
}
