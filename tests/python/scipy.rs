//! For the tests of more than one crate: scipy's answer to the same question.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The answer of the crate's script `tests/reference/ask.py` to `question`, given `with`. `None`,
/// with a message, if there is no scipy here; in CI this is a failure.
pub(crate) fn reference(question: &str, with: &Value) -> Option<Vec<f64>> {
    let python = std::env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let has = Command::new(&python).args(["-c", "import scipy"]).stderr(Stdio::null()).status();
    if !has.is_ok_and(|status| status.success()) {
        let lacks = format!(
            "'{python}' cannot import scipy; install tests/python/requirements.txt, or name \
             another in SINEW_TEST_PYTHON"
        );
        assert!(std::env::var_os("CI").is_none(), "{lacks}");
        let _ = writeln!(std::io::stderr(), "skipped: {lacks}");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/ask.py");
    let mut child = Command::new(&python)
        .arg(script)
        .arg(question)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    write!(child.stdin.take().expect("piped"), "{with}").expect("python reads");
    let output = child.wait_with_output().expect("python ends");
    assert!(output.status.success(), "{question} failed");
    Some(serde_json::from_slice(&output.stdout).expect("a list of numbers"))
}
