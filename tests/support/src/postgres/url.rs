//! Just enough of `postgres://` URLs to give one another address or another search path.

/// The byte range of `host:port`.
fn address_range(url: &str) -> std::ops::Range<usize> {
    let begin = url.find("://").expect("a URL with a scheme") + 3;
    let end = url[begin..].find(['/', '?']).map_or(url.len(), |at| begin + at);
    let begin = url[begin..end].rfind('@').map_or(begin, |at| begin + at + 1);
    begin..end
}

/// `host:port` of a URL.
pub(super) fn address(url: &str) -> &str {
    &url[address_range(url)]
}

/// The same URL with another `host:port`.
pub fn with_address(url: &str, address: &str) -> String {
    let mut changed = url.to_owned();
    changed.replace_range(address_range(url), address);
    changed
}

/// The same URL with `schema` as the search path of every session.
pub(super) fn with_search_path(url: &str, schema: &str) -> String {
    let join = if url.contains('?') { '&' } else { '?' };
    format!("{url}{join}options=-c%20search_path%3D{schema}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_is_changed() {
        let cases = [
            ("postgres://127.0.0.1:5432", "postgres://localhost:9"),
            (
                "postgres://u:p%40w@h:5432/db?options=-c%20a%3Db",
                "postgres://u:p%40w@localhost:9/db?options=-c%20a%3Db",
            ),
            ("postgres://u@[::1]:5432?x=a@b", "postgres://u@localhost:9?x=a@b"),
        ];
        for (url, wanted) in cases {
            assert_eq!(with_address(url, "localhost:9"), wanted);
        }
    }
}
