//! The URL of the database, read by the driver after a look of our own.
//!
//! Why the look: the driver ignores parameters that it does not know, with a warning that tells their values. One that is misspelt must not be ignored
//! (`sslmod=verify-full`), and its value may be a secret.

use std::str::FromStr;

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;

use super::config::PostgresConfig;
use super::names::application_name;
use crate::config::Secret;
use crate::error::Failure;

/// Parameters that the driver knows, by their usual names.
const KNOWN: [&str; 12] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// Everything needed to connect as this group, with the secrets as they are now. Statements are not logged: a connector may write values into them.
pub(super) fn options(config: &PostgresConfig, group: &str) -> Result<PgConnectOptions, Failure> {
    let read = |secret: &Secret| secret.current().map_err(Failure::fatal);
    let url = read(&config.url)?;
    known_parameters(&url)?;
    // The driver's message names the flaw and quotes nothing of the URL.
    let options = PgConnectOptions::from_str(&url).map_err(|error| {
        Failure::from(error)
            .context("the url of the database is not of the form postgres://user@host/database")
    })?;
    let mut options = options.application_name(&application_name(group)).disable_statement_logging();
    if let Some(password) = &config.password {
        options = options.password(&read(password)?);
    }
    Ok(options)
}

/// Looks at a URL without connecting, so that a flaw is found where it is written.
///
/// # Errors
/// What is wrong with it, without quoting it.
pub fn check_url(url: &str) -> Result<(), String> {
    known_parameters(url).map_err(|failure| failure.message)?;
    PgConnectOptions::from_str(url)
        .map(drop)
        .map_err(|_| "this is not of the form postgres://user@host:port/database?sslmode=...".to_owned())
}

fn known_parameters(url: &str) -> Result<(), Failure> {
    let Some((_, query)) = url.split_once('?') else { return Ok(()) };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let name = pair.split('=').next().unwrap_or_default();
        if !KNOWN.contains(&name) && !name.starts_with("options[") && !name.starts_with("options%5B") {
            return Err(Failure::fatal(format!(
                "the url has an unknown parameter {name:?}; known are {}",
                KNOWN.join(", ")
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_parameter_is_refused_by_name_without_its_value() {
        let config = PostgresConfig::new("postgres://u@h/d?sslmode=require&sslrootcret=hunter2");
        let failure = options(&config, "g").unwrap_err();
        assert!(failure.message.contains("\"sslrootcret\""), "{failure}");
        assert!(!failure.message.contains("hunter2"), "{failure}");
        let config = PostgresConfig::new(
            "postgres://u@h/d?sslmode=require&options[search_path]=x&application_name=mine",
        );
        let options = options(&config, "g").unwrap();
        assert_eq!(options.get_application_name(), Some("oncesink g"));
    }
}
