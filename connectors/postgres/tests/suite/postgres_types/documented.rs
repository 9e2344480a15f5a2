//! The table of the documentation names exactly the types that the code writes.

#[test]
fn every_type_is_documented_and_every_documented_type_is_there() {
    let text = include_str!("../../../../../docs/types-postgres.md");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|line| !line.starts_with("| column type |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert!(rows.iter().all(|row| row.len() == 3), "{rows:?}");
    let documented: Vec<String> = rows
        .iter()
        .flat_map(|row| row[0].split(", "))
        .map(|name| name.trim_matches('`').to_owned())
        .collect();
    assert_eq!(
        documented,
        oncesink_postgres::column_types().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    );
    let readings: Vec<(String, String)> = rows
        .iter()
        .flat_map(|row| {
            row[0].split(", ").map(|name| (name.trim_matches('`').to_owned(), row[2].replace('`', "")))
        })
        .collect();
    for ((name, documented), (_, takes)) in readings.iter().zip(oncesink_postgres::column_types()) {
        let expected: Vec<_> = oncesink::value::Reading::ALL
            .into_iter()
            .filter(|(_, reading)| takes.allows(*reading))
            .map(|(name, _)| name)
            .collect();
        if !matches!(name.as_str(), "an enum" | "a domain" | "an array") {
            assert_eq!(*documented, expected.join(" "), "{name}");
        }
    }
}
