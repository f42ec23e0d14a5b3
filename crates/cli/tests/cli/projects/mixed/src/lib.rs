//! The server's side.

pub fn price(amount: f64) -> String {
    format!("{} ct", (amount * 100.0).round() as i64)
}
