//! The order records that everything is measured with, and their table.

/// Columns of the table, which has no key: nothing but the work of inserting is measured.
pub(crate) const COLUMNS: &str = "order_id text, customer_id bigint, amount numeric(12,2), status text, payload jsonb, created_at timestamptz";

/// The n-th record, about 280 bytes of JSON, in the order of the table's columns.
pub(crate) fn order(n: u64) -> String {
    let (whole, cents, micros) = (n % 9973, n % 100, n % 1_000_000);
    let (second, minute, hour) = (n % 60, n / 60 % 60, n / 3600 % 24);
    let status = ["created", "confirmed", "shipped", "delivered"][n as usize % 4];
    format!(
        "{{\"order_id\":\"order-{n:010}\",\"customer_id\":{},\"amount\":{whole}.{cents:02},\"status\":\"{status}\",\
         \"payload\":{{\"items\":[{{\"sku\":\"SKU-{:06}\",\"qty\":{},\"price\":\"19.99\"}},{{\"sku\":\"SKU-000002\",\"qty\":1,\"price\":\"5.00\"}}],\
         \"channel\":\"web-store-{}\"}},\"created_at\":\"2026-11-30T{hour:02}:{minute:02}:{second:02}.{micros:06}Z\"}}",
        1_000_000 + n * 7919 % 500_000,
        n % 1_000_000,
        1 + n % 5,
        n % 3,
    )
}
