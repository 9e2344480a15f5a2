//! `[sinks.<name>.target]`: the kind of sink, the connection, where offsets live; what is left belongs to the sink.

use std::fmt;

use super::error::Place;
use super::later;
use super::secret::Secret;
use super::section::{self, Section};
use super::tree::Table;

/// Where offsets live when nothing is said: found through the connection's search path.
/// The connection's keys; a sink may have further ones.
pub(crate) const KEYS: [&str; 4] = ["kind", "url", "password", "offsets"];

pub(crate) const OFFSETS: &str = "kafka_offsets";

/// A sink kind that a program knows.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The `kind` in `[sinks.<name>.target]`.
    pub name: &'static str,
    /// Schemes of the connection's URL, the usual one first.
    pub schemes: &'static [&'static str],
    /// A URL as people write it.
    pub example: &'static str,
    /// Looks at a URL of one of these schemes as the driver would; the message must not quote the URL.
    pub check_url: fn(&str) -> Result<(), String>,
    /// Whether one connection writes at a time: then a sink has one writer, and `writers` above 1 is refused.
    pub one_writer: bool,
}

/// `[sinks.<name>.target]`.
#[derive(Clone)]
pub struct TargetSection {
    /// The kind of sink.
    pub kind: String,
    /// The connection; may hold a password.
    pub url: Secret,
    /// The password, when it does not stand in the URL.
    pub password: Option<Secret>,
    /// The offsets table, `table` or `schema.table`.
    pub offsets: String,
    pub(crate) own: Table,
    pub(crate) at: Place,
}

impl PartialEq for TargetSection {
    /// Without places: two files that say the same are the same.
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.url == other.url
            && self.password == other.password
            && self.offsets == other.offsets
            && self.own.keys().eq(other.own.keys())
    }
}

impl TargetSection {
    /// The URL without a password and without parameters, for people.
    pub fn shown(&self) -> String {
        let url = self.url.expose();
        let Some((scheme, rest)) = url.split_once("://") else {
            // A file, sqlite:shop.db: no password and no parameters can stand in it.
            return if url.starts_with("sqlite:") { url.to_owned() } else { String::new() };
        };
        let rest = rest.split(['?', '#']).next().unwrap_or(rest);
        let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        format!("{scheme}://{place}")
    }
}

impl fmt::Debug for TargetSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TargetSection")
            .field("kind", &self.kind)
            .field("url", &self.url)
            .field("password", &self.password)
            .field("offsets", &self.offsets)
            .finish_non_exhaustive()
    }
}

pub(crate) fn read(mut section: Section<'_>, kinds: &[Kind]) -> Option<TargetSection> {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
    let kind =
        section.required("kind", "\"postgres\"", |node| section::word(node, &names).map(ToOwned::to_owned));
    let known = kind.as_ref().and_then(|kind| kinds.iter().find(|known| known.name == kind));
    let url = section.required("url", "\"postgres://app@localhost/shop\"", |node| {
        let url = section::secret(node)?;
        if let Some(known) = known {
            check_url(url.expose(), known)?;
        }
        Ok(url.clone())
    });
    let has_password = url.as_ref().is_some_and(|url| password_in(url.expose()));
    let password = section.optional("password", |node| {
        if has_password {
            return Err("there is a password in url as well; leave one of them out".to_owned());
        }
        section::secret(node).cloned()
    });
    let offsets = section.optional("offsets", |node| table_name(section::filled(node)?));
    let mut own = Table::new();
    for (key, node) in section.rest() {
        if later::key(&section.path, &key) {
            section.problems.add(&node.at, section::unknown(&key, &section.path, &[]));
        } else {
            own.insert(key, node);
        }
    }
    Some(TargetSection {
        kind: kind?,
        url: url?,
        password,
        offsets: offsets.unwrap_or_else(|| OFFSETS.to_owned()),
        own,
        at: section.at.clone(),
    })
}

/// Schemes of databases that are written without slashes as well.
const SCHEMES: [&str; 2] = ["sqlite", "file"];

fn check_url(url: &str, kind: &Kind) -> Result<(), String> {
    let example = kind.example;
    match url.split_once(':') {
        Some((scheme, _)) if kind.schemes.contains(&scheme) => (kind.check_url)(url),
        // Only what certainly is a scheme is repeated: in `user:password@host` the same place may hold a secret.
        Some((scheme, rest)) if rest.starts_with("//") || SCHEMES.contains(&scheme) => Err(format!(
            "a URL of scheme {scheme:?} does not fit kind = {:?}, which takes one like {example:?}",
            kind.name
        )),
        _ => Err(format!("this is no URL; write for instance {example:?}")),
    }
}

fn password_in(url: &str) -> bool {
    url.split_once("://")
        .and_then(|(_, rest)| rest.split(['/', '?']).next()?.rsplit_once('@'))
        .is_some_and(|(user, _)| user.contains(':'))
}

fn table_name(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() > 2 || parts.iter().any(|part| part.trim().is_empty()) {
        return Err(format!("{text:?} is no name of a table; write \"table\" or \"schema.table\""));
    }
    Ok(text.to_owned())
}
