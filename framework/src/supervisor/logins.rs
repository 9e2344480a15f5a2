//! Logins that the brokers refuse: with other secrets than the client was made with, a new client is due.
//!
//! Must not: hold a login for good. A secret that is rotated on both sides is picked up without a restart.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A refusal that lasts is said this often.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// What a client was made with.
pub(crate) struct Logins {
    made_with: BTreeMap<String, String>,
    said: Option<Instant>,
}

/// What follows from a refusal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The secrets are others by now.
    Renew,
    /// They are the same; people should know.
    Say,
    /// One of them cannot be read; why.
    Unreadable(String),
    /// It was said a short while ago.
    Silence,
}

impl Logins {
    pub(crate) fn new(made_with: BTreeMap<String, String>) -> Self {
        Self { made_with, said: None }
    }

    /// A login was refused; `now` are the properties with the secrets as they are now.
    pub(crate) fn refused(&mut self, now: Result<BTreeMap<String, String>, String>, at: Instant) -> Verdict {
        let recent = self.said.is_some_and(|said| at.saturating_duration_since(said) < SAID_EVERY);
        match now {
            Ok(now) if now != self.made_with => Verdict::Renew,
            _ if recent => Verdict::Silence,
            other => {
                self.said = Some(at);
                other.map_or_else(Verdict::Unreadable, |_| Verdict::Say)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_secret_makes_a_new_client_and_an_unchanged_one_is_told_once_a_minute() {
        let with = |password: &str| -> BTreeMap<String, String> {
            [("sasl.password".to_owned(), password.to_owned())].into()
        };
        let began = Instant::now();
        let mut logins = Logins::new(with("first"));
        assert_eq!(logins.refused(Ok(with("first")), began), Verdict::Say);
        assert_eq!(logins.refused(Ok(with("first")), began + Duration::from_secs(59)), Verdict::Silence);
        assert_eq!(logins.refused(Err("gone".into()), began + Duration::from_secs(59)), Verdict::Silence);
        let later = began + SAID_EVERY;
        assert_eq!(logins.refused(Err("gone".into()), later), Verdict::Unreadable("gone".into()));
        assert_eq!(logins.refused(Ok(with("second")), later), Verdict::Renew);
    }
}
