//! Passwords and their hashes by Argon2 (RFC 9106), on threads for what blocks and a few at a time:
//! each takes some tens of milliseconds and of megabytes.

use std::sync::Arc;

use argon2::password_hash::{PasswordHash, PasswordVerifier};
use argon2::{Argon2, Params};
use sinew_flow::{At, Error};
use tokio::sync::Semaphore;

/// Most memory that a hash may ask for, in KiB, and most passes; one that wants more is refused.
const MEMORY_KIB_MAX: u32 = 64 << 10;
const PASSES_MAX: u32 = 10;
/// Longest password, in bytes. A longer one is that of nobody.
const PASSWORD_LEN_MAX: usize = 1024;
/// Units of work for a pass over one KiB.
const WORK: u64 = 5;

/// So many hashes are made at once in a process, whoever asks: with most memory 256 MiB.
static AT_ONCE: Semaphore = Semaphore::const_new(4);

/// A hash of a password, as `$argon2id$v=19$m=19456,t=2,p=1$...`.
#[derive(Clone, Debug)]
pub(super) struct Hashed {
    text: Arc<str>,
    work: u64,
}

impl Hashed {
    /// Reads one.
    ///
    /// # Errors
    /// It is none, or asks for too much.
    pub(super) fn read(text: &str) -> Result<Hashed, String> {
        let none = |error: &dyn std::fmt::Display| format!("no hash of Argon2: {error}");
        let hash = PasswordHash::new(text).map_err(|error| none(&error))?;
        argon2::Algorithm::try_from(hash.algorithm).map_err(|error| none(&error))?;
        let params = Params::try_from(&hash).map_err(|error| none(&error))?;
        let (memory_kib, passes) = (params.m_cost(), params.t_cost());
        if hash.hash.is_none() || hash.salt.is_none() {
            return Err(none(&"it has no salt, or no hash"));
        }
        if memory_kib > MEMORY_KIB_MAX || passes > PASSES_MAX {
            return Err(format!(
                "a hash with {memory_kib} KiB and {passes} passes; at most {MEMORY_KIB_MAX} KiB \
                 and {PASSES_MAX}"
            ));
        }
        let work = u64::from(memory_kib) * u64::from(passes) * WORK;
        Ok(Hashed { text: text.into(), work })
    }

    /// Whether it is the hash of this password.
    ///
    /// # Errors
    /// The flow has too little work left, or too much waits for a thread (503).
    pub(super) async fn is_of(&self, at: At<'_>, password: &[u8]) -> Result<bool, Error> {
        at.flow().spend(self.work)?;
        let Ok(_turn) = AT_ONCE.acquire().await else { return Ok(false) };
        let (text, password) = (Arc::clone(&self.text), password.to_vec());
        at.pool()
            .run_slow(move || {
                let hash = PasswordHash::new(&text);
                password.len() <= PASSWORD_LEN_MAX
                    && hash.is_ok_and(|hash| {
                        Argon2::default().verify_password(&password, &hash).is_ok()
                    })
            })
            .await
    }
}
