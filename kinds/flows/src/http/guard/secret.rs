//! A secret that two sides share.

use sinew_core::catalogue::{Parameter, ParameterType};
use sinew_core::{Parameters, Refusal};

/// The secret itself.
pub(super) const SECRET: Parameter = Parameter::new("secret", ParameterType::Text).or("").doc(
    "The secret that both sides know. '{{ file.NAME }}' or '{{ env.NAME }}' keeps it out of the \
     spec, and out of all output of a run.",
);

/// Reads the secret.
///
/// # Errors
/// There is none; it is shorter than `len_min` bytes; or it is a key in PEM, which others may know.
pub(super) fn read<'a>(
    parameters: &'a Parameters<'_>,
    len_min: usize,
) -> Result<&'a [u8], Vec<Refusal>> {
    let secret = parameters.text("secret");
    let refuse =
        |text: String, help: &str| Err(vec![Refusal::new(parameters.span("secret"), text, help)]);
    if secret.is_empty() {
        return refuse("there is no 'secret'".into(), "write secret: '{{ file.NAME }}'");
    }
    if secret.starts_with("-----BEGIN") {
        let text = "the secret is a key in PEM, which others may know".to_owned();
        return refuse(text, "a secret is random bytes that nobody else has");
    }
    if secret.len() < len_min {
        let text = format!("the secret has {} bytes; at least {len_min} are needed", secret.len());
        return refuse(text, "make one by 'openssl rand -base64 48'");
    }
    Ok(secret.as_bytes())
}
