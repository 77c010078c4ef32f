//! Passwords and their hashes by Argon2 (RFC 9106). Hashes are made on threads for blocking work, a
//! few at a time: each takes some tens of milliseconds and some tens of megabytes.

use std::sync::Arc;

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, Salt, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use ring::rand::{SecureRandom, SystemRandom};
use sinew_flow::{At, Error};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Most memory that a hash may ask for, in KiB, and most passes; one that wants more is refused.
pub(super) const MEMORY_KIB_MAX: u32 = 64 << 10;
pub(super) const PASSES_MAX: u32 = 10;
/// Longest password, in bytes. A longer one is never right.
pub(super) const PASSWORD_LEN_MAX: usize = 1024;
/// Units of work for a pass over one KiB.
const WORK: u64 = 5;

/// How many hashes are made at once in a process, for all nodes together: they take 256 MiB at
/// most.
static AT_ONCE: Semaphore = Semaphore::const_new(4);

/// A hash of a password, as `$argon2id$v=19$m=19456,t=2,p=1$...`.
#[derive(Clone, Debug)]
pub(super) struct Hashed {
    text: Arc<str>,
    work: u64,
}

/// What it takes to make a hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct HashCost {
    pub(super) memory_kib: u32,
    pub(super) passes: u32,
}

impl HashCost {
    fn work(self) -> u64 {
        u64::from(self.memory_kib) * u64::from(self.passes) * WORK
    }

    /// Makes the hash of a password, by Argon2id with a salt of 16 random bytes.
    ///
    /// # Errors
    /// The flow has too little work left, or too much waits for a thread (503); the kernel gives no
    /// random bytes.
    pub(super) async fn hash(self, at: At<'_>, password: &[u8]) -> Result<String, Error> {
        at.flow().spend(self.work())?;
        let turn = turn().await?;
        let password = password.to_vec();
        let made = at.pool().run_slow(move || {
            let _turn = turn;
            let mut salt = [0; Salt::RECOMMENDED_LENGTH];
            let no_salt = |_| "the kernel gives no random bytes".to_owned();
            SystemRandom::new().fill(&mut salt).map_err(no_salt)?;
            self.salted(&password, &salt)
        });
        made.await?.map_err(Error::new)
    }

    /// A hash that no password has. To check it takes as long as to check another one.
    pub(super) fn of_nobody(self) -> Hashed {
        let HashCost { memory_kib, passes } = self;
        let (salt, hash) = ("A".repeat(22), "A".repeat(43));
        let text = format!("$argon2id$v=19$m={memory_kib},t={passes},p=1${salt}${hash}");
        Hashed { text: text.into(), work: self.work() }
    }

    fn salted(self, password: &[u8], salt: &[u8]) -> Result<String, String> {
        let said = |error: &dyn std::fmt::Display| format!("no hash can be made: {error}");
        let params = Params::new(self.memory_kib, self.passes, 1, None);
        let params = params.map_err(|error| said(&error))?;
        let salt = SaltString::encode_b64(salt).map_err(|error| said(&error))?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let hash = argon2.hash_password(password, &salt).map_err(|error| said(&error))?;
        Ok(hash.to_string())
    }
}

impl Hashed {
    /// Reads a hash.
    ///
    /// # Errors
    /// It is not a hash of Argon2, or asks for too much memory or too many passes.
    pub(super) fn read(text: &str) -> Result<Hashed, String> {
        let none = |error: &dyn std::fmt::Display| format!("no hash of Argon2: {error}");
        let hash = PasswordHash::new(text).map_err(|error| none(&error))?;
        Algorithm::try_from(hash.algorithm).map_err(|error| none(&error))?;
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
        Ok(Hashed { text: text.into(), work: HashCost { memory_kib, passes }.work() })
    }

    /// Whether it is the hash of this password.
    ///
    /// # Errors
    /// The flow has too little work left, or too much waits for a thread (503).
    pub(super) async fn is_of(&self, at: At<'_>, password: &[u8]) -> Result<bool, Error> {
        at.flow().spend(self.work)?;
        let turn = turn().await?;
        let (text, password) = (Arc::clone(&self.text), password.to_vec());
        at.pool()
            .run_slow(move || {
                let _turn = turn;
                let hash = PasswordHash::new(&text);
                password.len() <= PASSWORD_LEN_MAX
                    && hash.is_ok_and(|hash| {
                        Argon2::default().verify_password(&password, &hash).is_ok()
                    })
            })
            .await
    }
}

/// Permission to make a hash. The thread that makes the hash holds it: a flow that is cancelled
/// does not end the work, and so does not give it back.
async fn turn() -> Result<SemaphorePermit<'static>, Error> {
    AT_ONCE.acquire().await.map_err(Error::new)
}
