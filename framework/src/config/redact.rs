//! What of the configuration may be shown: references as they stand in the file, addresses without their passwords, and nothing of a key that names a secret.

use super::secret::Secret;

/// Stands for a secret.
const STARS: &str = "***";

/// Words in the name of a key whose value is one.
const SECRET_WORDS: [&str; 9] = [
    "password",
    "passphrase",
    "secret",
    "token",
    "credential",
    "jaas",
    ".pem",
    "private",
    "oauthbearer.config",
];

/// The text for people. `key` is its name.
pub(crate) fn redacted(key: &str, text: &Secret) -> String {
    let written = text.template();
    let key = key.to_ascii_lowercase();
    let whole = is_reference(written);
    if whole {
        return written.to_owned();
    }
    if SECRET_WORDS.iter().any(|word| key.contains(word)) {
        return STARS.to_owned();
    }
    address(written)
}

/// Whether the text is one reference and nothing else: `${file:/run/secrets/db}`.
fn is_reference(text: &str) -> bool {
    let inner = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| inner.contains(':') && !inner.contains(['{', '}']))
}

/// An address without the password of its user and those among its parameters; any other text as it is.
fn address(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    let (authority, path) =
        place.split_once('/').map_or((place, None), |(authority, path)| (authority, Some(path)));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((user, _)) => format!("{user}:{STARS}@{host}"),
            None => authority.to_owned(),
        },
        None => authority.to_owned(),
    };
    let mut shown = format!("{scheme}://{authority}");
    if let Some(path) = path {
        shown.push('/');
        shown.push_str(path);
    }
    if let Some(query) = query {
        let pairs: Vec<String> = query.split('&').map(parameter).collect();
        shown.push('?');
        shown.push_str(&pairs.join("&"));
    }
    shown
}

fn parameter(pair: &str) -> String {
    match pair.split_once('=') {
        Some((name, _)) if SECRET_WORDS.iter().any(|word| name.to_ascii_lowercase().contains(word)) => {
            format!("{name}={STARS}")
        }
        _ => pair.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_shown() {
        let environment = [("PW".to_owned(), "hunter2".to_owned())].into_iter().collect();
        for (key, written, shown) in [
            ("password", "hunter2", "***"),
            ("password", "${env:PW}", "${env:PW}"),
            ("password", "a${env:PW}", "***"),
            ("sasl.password", "hunter2", "***"),
            ("ssl.key.pem", "hunter2", "***"),
            ("sasl.oauthbearer.client.secret", "hunter2", "***"),
            ("sasl.username", "app", "app"),
            ("brokers", "k1:9093,k2:9093", "k1:9093,k2:9093"),
            (
                "url",
                "postgres://app:hunter2@h:5/d?sslmode=require",
                "postgres://app:***@h:5/d?sslmode=require",
            ),
            ("url", "postgres://app@h/d?password=hunter2&x=1", "postgres://app@h/d?password=***&x=1"),
            ("url", "postgres://app:p@hunter2@h/d", "postgres://app:***@h/d"),
            ("url", "postgres://app:${env:PW}@h/d", "postgres://app:***@h/d"),
            ("url", "postgres://h/d", "postgres://h/d"),
            ("table", "sales.${topic[1]}", "sales.${topic[1]}"),
            ("key", "id", "id"),
        ] {
            let secret = Secret::resolve(written, &environment).unwrap();
            assert_eq!(redacted(key, &secret), shown, "{key} = {written}");
        }
    }
}
