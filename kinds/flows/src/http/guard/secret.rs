//! A secret that two sides share: in the spec, or in a file that only its owner reads.

use std::fs;
use std::path::PathBuf;

use sinew_core::catalogue::{Parameter, ParameterType};
use sinew_core::{Parameters, Refusal};

/// Longest secret, in bytes. A longer file is no secret but another file.
const LEN_MAX: u64 = 16 << 10;

/// The secret itself.
pub(super) const SECRET: Parameter = Parameter::new("secret", ParameterType::Text)
    .or("")
    .doc("What both sides know. It stands in the spec: 'secret_file' keeps it out of there.");

/// Where it stands instead.
pub(super) const SECRET_FILE: Parameter = Parameter::new("secret_file", ParameterType::Text)
    .or("")
    .doc("In its place: a file that holds it; a line end at its end does not count.");

/// The file of the secret, if it is in one.
pub(super) fn file(parameters: &Parameters<'_>) -> Option<PathBuf> {
    let is_given = !parameters.text("secret_file").is_empty();
    is_given.then(|| parameters.path("secret_file"))
}

/// Reads it.
///
/// # Errors
/// There is none, or two; it is shorter than `len_min` bytes, or a key that everybody may know.
pub(super) fn read(parameters: &Parameters<'_>, len_min: usize) -> Result<Vec<u8>, Vec<Refusal>> {
    let given = parameters.text("secret");
    let refuse =
        |name, text: String, help: &str| vec![Refusal::new(parameters.span(name), text, help)];
    let (name, secret) = match (given.is_empty(), file(parameters)) {
        (false, None) => ("secret", given.as_bytes().to_vec()),
        (true, Some(path)) => {
            let said = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
            let failed = |text| refuse("secret_file", text, "expected a file with the secret");
            let len = fs::metadata(&path).map_err(|error| failed(said(&error)))?.len();
            if len > LEN_MAX {
                return Err(failed(said(&format_args!("{len} bytes; at most {LEN_MAX}"))));
            }
            let mut secret = fs::read(&path).map_err(|error| failed(said(&error)))?;
            while secret.last().is_some_and(|byte| b"\r\n".contains(byte)) {
                secret.pop();
            }
            ("secret_file", secret)
        }
        (true, None) => {
            let text = "there is neither 'secret' nor 'secret_file'".to_owned();
            return Err(refuse("secret", text, "write secret_file: name, beside the spec"));
        }
        (false, Some(_)) => {
            let text = "there is a 'secret' and a 'secret_file'".to_owned();
            return Err(refuse("secret_file", text, "leave one of them out"));
        }
    };
    if secret.starts_with(b"-----BEGIN") {
        let text = "the secret is a key in PEM, which others may know".to_owned();
        return Err(refuse(name, text, "a secret is random bytes that nobody else has"));
    }
    if secret.len() < len_min {
        let text = format!("the secret has {} bytes; at least {len_min} are needed", secret.len());
        return Err(refuse(name, text, "make one by 'openssl rand -base64 48'"));
    }
    Ok(secret)
}
